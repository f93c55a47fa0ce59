// `accel-agent why` says of a URL what its visitor meets: the same state, asked both ways.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { parseUrlArgument } from "../../src/agent/admin/url-argument.ts";
import { why } from "../../src/agent/why.ts";
import { blobPath } from "../../src/core/blob-path.ts";
import type { SiteInput } from "../../src/core/effective-devlove.ts";
import { parseSha256 } from "../../src/core/ids.ts";
import { encodeManifestTable } from "../../src/core/manifest-table.ts";
import { tempDir } from "../support/temp-dir.ts";
import { ask, host, openEdge, stateOf } from "./accelerator/edge.ts";

/** Status and body that a visitor gets, and what `why` says of the same. */
async function bothOf(site: SiteInput, path: string) {
  using dir = tempDir();
  const files = ["index.html", "gone.html"].map((name) => {
    const text = `<html>${name}</html>`;
    const sha256 = parseSha256(createHash("sha256").update(text).digest("hex"));
    if (sha256 === undefined) throw new Error("no digest");
    mkdirSync(dirname(join(blobPath(dir.path, sha256))), { recursive: true });
    writeFileSync(blobPath(dir.path, sha256), text);
    return { path: name, sha256, size: text.length, mime: "text/html" };
  });
  const views = { kind: "manifest", table: encodeManifestTable(files), prefix: "" } as const;
  await using edge = await openEdge({ blobsDir: dir.path, site, views });
  const { status, text } = await ask(edge, path);
  const keys: unknown[] = [];
  const said = await why(
    {
      index: {
        why: async (asked) => {
          keys.push(...asked.map(({ kind, path: keyPath }) => `${kind} ${keyPath}`));
          return { keys: [], clearNo: 0, anew: null };
        },
      },
      state: stateOf(1, site, views),
      blobsDir: dir.path,
      nowMs: 0,
    },
    parseUrlArgument(`http://${host}${path}`),
  );
  return { visitor: [status, text], why: Object(said).a_plain_get, keys };
}

test("a single page answers for what is neither a file nor of a backend", async () => {
  const { visitor, why: said, keys } = await bothOf({ single_page: "index.html" }, "/orders/5");
  expect(visitor).toEqual([200, "<html>index.html</html>"]);
  expect(said).toEqual({
    serves: "static",
    cache: "miss",
    text: "no file and no backend: the single page index.html, 23 bytes",
  });
  expect(keys).toContain("static index.html");
});

test("a page for what is not there is a 404", async () => {
  const { visitor, why: said } = await bothOf({ not_found: "gone.html" }, "/orders/5");
  expect(visitor).toEqual([404, "<html>gone.html</html>"]);
  expect(said).toEqual({
    serves: "nothing",
    cache: "not asked",
    text: "no file and no backend: 404 with the page gone.html",
  });
});

test.each([
  ["pages that are not there", { single_page: "no.html", not_found: "no.html" }],
  ["neither page", {}],
])("with %s it is a plain 404", async (_, site) => {
  const { visitor, why: said } = await bothOf(site, "/orders/5");
  expect(visitor[0]).toBe(404);
  expect(said).toMatchObject({ serves: "nothing", text: "no file and no backend: 404" });
});

test("a file is itself, whatever the single page", async () => {
  const { visitor, why: said } = await bothOf({ single_page: "index.html" }, "/gone.html");
  expect(visitor).toEqual([200, "<html>gone.html</html>"]);
  expect(said).toMatchObject({ serves: "static", text: "the file gone.html, 22 bytes" });
});
