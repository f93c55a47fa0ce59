// What is said of an uploaded manifest, against what follows from its objects.

import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson } from "../../src/core/journal/canonical-json.ts";
import { parseSha256, type Sha256 } from "../../src/core/ids.ts";
import { judgeManifest, pathWith } from "../../src/wire/manifest-judgement.ts";
import type { Manifest } from "../../src/wire/manifest.ts";

function digest(content: string): Sha256 {
  const sha256 = parseSha256(createHash("sha256").update(content).digest("hex"));
  if (sha256 === undefined) throw new TypeError("not a digest");
  return sha256;
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const file = (path: string, content: string, size = content.length) => ({
  path,
  sha256: digest(content),
  size,
  mime: "text/html",
});
const devlove = { schema: "devlove/1", sha256: digest("{}") };

const files = fc.array(
  fc.tuple(
    fc.constantFrom("a", "b/c", '","files":[]', "日本", "Ä/x", "é"),
    fc.nat({ max: 9 }),
    fc.constantFrom("one", "two"),
  ),
  { maxLength: 12 },
);
const schemas = fc.constantFrom("devlove/1", 'odd ","files":[] one');
const said = fc.constantFrom({}, { paths_differ_in_case: true as const });

test("what is canonical is taken with its contents, each once; what is not, is not", () => {
  fc.assert(
    fc.property(files, schemas, said, fc.nat(3), (drawn, schema, more, blanks) => {
      const paths = new Map(drawn.map(([path, no, content]) => [`${no}${path}`, content]));
      const entries = [...paths].map(([path, content]) => file(path, content));
      const manifest: Manifest = { devlove: { ...devlove, schema }, files: entries, ...more };
      const text = blanks === 0 ? canonicalJson(manifest) : JSON.stringify(manifest, null, blanks);
      const verdict = judgeManifest(bytesOf(text));
      if (blanks > 0) {
        const reason = "the manifest is not valid: it is not canonical JSON";
        expect(verdict).toEqual({ ok: false, reason });
        return;
      }
      const contents = [...new Set(paths.values())];
      expect(verdict).toEqual({
        ok: true,
        facts: {
          devlove: manifest.devlove,
          files: entries.length,
          bytes: 3 * entries.length,
          digests: new Uint8Array(Buffer.from(contents.map(digest).join(""), "hex")),
          sizes: new Float64Array(contents.map(() => 3)),
          twoSizes: null,
        },
      });
    }),
  );
});

test("without views there is nothing to count", () => {
  const verdict = judgeManifest(bytesOf(canonicalJson({ devlove, files: null })));
  expect(verdict).toMatchObject({ ok: true, facts: { files: null, bytes: 0, twoSizes: null } });
});

test.each([
  ["bytes that are no UTF-8", Uint8Array.of(0x22, 0xff, 0x22), /not valid/],
  ["no JSON", bytesOf("{"), /JSON/],
  ["another member", bytesOf(canonicalJson({ devlove, files: null, more: 1 })), /more/],
  ["what follows it", bytesOf(`${canonicalJson({ devlove, files: [] })} `), /canonical/],
  [
    "members in another order",
    bytesOf(JSON.stringify({ files: [file("a", "x")], devlove })),
    /canonical/,
  ],
  [
    "names that differ only in case, the first five of them",
    bytesOf(
      canonicalJson({
        devlove,
        files: ["a", "b", "c", "d", "e", "f", "g"].flatMap((name) => [
          file(name, "x"),
          file(name.toUpperCase(), "x"),
        ]),
      }),
    ),
    /differ only in case(?:.*differ only in case){4}; and 2 more$/,
  ],
])("%s", (_, bytes, reason) => {
  expect(judgeManifest(bytes)).toEqual({ ok: false, reason: expect.stringMatching(reason) });
});

test("one content in two sizes is told by the later path, and each size leads to its own", () => {
  const entries = [file("a", "x", 1), file("b", "y", 1), file("c", "x", 2), file("d", "x", 3)];
  const bytes = bytesOf(canonicalJson({ devlove, files: entries }));
  expect(judgeManifest(bytes)).toMatchObject({ ok: true, facts: { twoSizes: "c" } });
  expect(pathWith(bytes, digest("x"), 2)).toBe("c");
  expect(pathWith(bytes, digest("y"), 9)).toBeUndefined();
});
