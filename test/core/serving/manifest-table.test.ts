// The flat table finds exactly what the manifest holds.

import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import { encodeManifestTable, ManifestTable } from "../../../src/core/serving/manifest-table.ts";

function digest(text: string): Sha256 {
  const sha256 = parseSha256(createHash("sha256").update(text).digest("hex"));
  if (sha256 === undefined) throw new Error("no digest");
  return sha256;
}

const path = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12, unit: "binary" }),
  fc.constantFrom("a", "a/b", "a/b/c", "ä", "日本/語.html", "z"),
  // Around the memory that short paths are encoded into.
  fc.constantFrom("x".repeat(1_025), "日".repeat(341), "日".repeat(342), "日".repeat(500)),
);

test("find gives each file back and nothing else", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(
        path.filter((text) => text.isWellFormed()),
        { maxLength: 40 },
      ),
      path,
      (paths, other) => {
        const files = paths.map((name, i) => ({
          path: name,
          sha256: digest(name),
          size: i === 0 ? 5 * 2 ** 32 + 7 : i,
          mime: i % 2 === 0 ? "text/html" : "image/png",
        }));
        const table = new ManifestTable(encodeManifestTable(files));
        for (const file of files) expect(table.find(file.path)).toEqual(file);
        if (!paths.includes(other) && other.isWellFormed())
          expect(table.find(other)).toBeUndefined();
        expect([...table.files()].map((file) => file.path).sort()).toEqual([...paths].sort());
      },
    ),
  );
});

test("an empty manifest finds nothing", () => {
  expect(new ManifestTable(encodeManifestTable([])).find("")).toBeUndefined();
});

test("a table whose memory holds another by now tells so, and never gives a mixture", () => {
  const files = (text: string): Parameters<typeof encodeManifestTable>[0] =>
    ["a", "b", "c"].map((name) => ({
      path: name,
      sha256: digest(text + name),
      size: text.length,
      mime: "text/plain",
    }));
  const memory = encodeManifestTable(files("before"), () => new SharedArrayBuffer(4_096));
  const before = new ManifestTable(memory);
  expect(before.find("b")?.sha256).toBe(digest("beforeb"));
  encodeManifestTable(files("after"), () => memory);
  expect(() => before.find("b")).toThrow("another table of files");
  expect(new ManifestTable(memory).find("b")?.sha256).toBe(digest("afterb"));
});
