// What an activation names: composed of stored views and the devlove of now, byte for byte what canonical JSON of it is, however it was composed.

import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { storeManifest } from "../../../src/central/api/activation.ts";
import { canonicalJson } from "../../../src/core/journal/canonical-json.ts";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import type { Manifest } from "../../../src/wire/manifest.ts";

function digest(bytes: Uint8Array | string): Sha256 {
  const sha256 = parseSha256(createHash("sha256").update(bytes).digest("hex"));
  if (sha256 === undefined) throw new TypeError("not a digest");
  return sha256;
}

class Blobs {
  readonly kept = new Map<Sha256, Uint8Array>();
  puts: Sha256[] = [];

  async put(bytes: Uint8Array): Promise<Sha256> {
    this.kept.set(digest(bytes), bytes);
    this.puts.push(digest(bytes));
    return digest(bytes);
  }

  async read(sha256: Sha256): Promise<Uint8Array | undefined> {
    return this.kept.get(sha256);
  }

  async write(body: AsyncIterable<Uint8Array>): Promise<Sha256> {
    return this.put(Buffer.concat(await Array.fromAsync(body)));
  }
}

const path = fc.oneof(
  fc.constantFrom('"},"files":[', '{"devlove":{"schema":"x"', "a/b", "日本"),
  fc.string({ minLength: 1, maxLength: 20 }),
);
const entries = fc
  .uniqueArray(path, { maxLength: 8 })
  .map((paths) =>
    paths.map((one) => ({ path: `d/${one}`, sha256: digest(one), size: one.length, mime: "a/b" })),
  );

test("the manifest is canonical JSON of the views and the devlove of now", async () => {
  const schemas = fc.constantFrom("devlove/1", "devlove/22", 'odd "schema"');
  const property = fc.asyncProperty(
    entries,
    schemas,
    schemas,
    fc.boolean(),
    fc.constantFrom({}, { paths_differ_in_case: true as const }),
    async (files, hadSchema, schema, isCanonical, said) => {
      const safe = files.filter(({ path: one }) => isBelow(one));
      const blobs = new Blobs();
      const had: Manifest = {
        devlove: { schema: hadSchema, sha256: digest("before") },
        files: safe,
        ...said,
      };
      const text = isCanonical ? canonicalJson(had) : JSON.stringify(had, undefined, 1);
      const filesBlob = await blobs.put(Buffer.from(text));
      const sha256 = await storeManifest(blobs, { schema, content: "{}", filesBlob });
      const now: Manifest = { devlove: { schema, sha256: digest("{}") }, files: safe, ...said };
      expect(Buffer.from(blobs.kept.get(sha256) ?? []).toString()).toBe(canonicalJson(now));
    },
  );
  await fc.assert(property);
});

function isBelow(one: string): boolean {
  const segments = one.split("/");
  return !one.includes("\0") && !segments.some((part) => ["", ".", ".."].includes(part));
}

test("a version that is activated with its own devlove is its own manifest: nothing is written", async () => {
  const blobs = new Blobs();
  const own = { devlove: { schema: "devlove/1", sha256: digest("{}") }, files: [] };
  const filesBlob = await blobs.put(Buffer.from(canonicalJson(own)));
  blobs.puts = [];
  const basis = { schema: "devlove/1", content: "{}", filesBlob };
  expect(await storeManifest(blobs, basis)).toBe(filesBlob);
  expect(blobs.puts).toEqual([digest("{}")]);
});

test("without views the manifest says so; views that are missing or broken are our fault", async () => {
  const blobs = new Blobs();
  const basis = { schema: "devlove/1", content: "{}" };
  const sha256 = await storeManifest(blobs, { ...basis, filesBlob: null });
  expect(JSON.parse(Buffer.from(blobs.kept.get(sha256) ?? []).toString())).toEqual({
    devlove: { schema: "devlove/1", sha256: digest("{}") },
    files: null,
  });
  const broken = await blobs.put(Buffer.from('{"files":[1]}'));
  for (const filesBlob of [broken, digest("nowhere"), "no digest"])
    await expect(storeManifest(blobs, { ...basis, filesBlob })).rejects.toMatchObject({
      code: "STORE_DAMAGED",
    });
});
