// Central's collection over a real store and directory: what a version, a bot set or anybody lately names stays; the rest goes, row and file.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { collectBlobs, keptMs } from "../../../../src/central/store/content/blob-collection.ts";
import { canonicalJson } from "../../../../src/core/journal/canonical-json.ts";
import { type Sha256, sha256Of } from "../../../../src/core/ids.ts";
import { seedSite, startAgentSide } from "../../../support/agent-side.ts";

const never = new AbortController().signal;
const later = (at: Date, ms: number): Date => new Date(at.getTime() + ms);

async function setUp() {
  const side = await startAgentSide();
  const { domainId } = await seedSite(side.store);
  const directory = join(side.stateDir, "blobs");
  const put = async (text: string): Promise<Sha256> => side.blobs.put(Buffer.from(text));
  const version = async (...texts: readonly string[]) => {
    const files = [];
    for (const [no, text] of texts.entries())
      files.push({
        path: `f${no}`,
        sha256: await put(text),
        size: text.length,
        mime: "text/plain",
      });
    const devlove = { schema: "devlove/1", sha256: await put("{}") };
    return { manifest: await put(canonicalJson({ devlove, files })) };
  };
  const addVersion = async (name: string, blobs: { files?: Sha256; active?: Sha256 }) =>
    side.store
      .insertInto("viewsets")
      .values({
        domain_id: domainId,
        name,
        comment: "",
        files_blob: blobs.files ?? null,
        manifest_blob: blobs.active ?? null,
        when_created: side.clock.now().toISOString(),
        when_obsoleted: null,
      })
      .execute();
  const deps = {
    ...side,
    directory,
    randomBytes: (count: number) => new Uint8Array(count).fill(9),
  };
  const collect = async (afterMs: number, stop = never) =>
    collectBlobs(deps, later(side.clock.now(), afterMs), stop);
  const pathOf = (sha256: string): string => join(directory, sha256.slice(0, 2), sha256);
  const isHere = (text: string): boolean =>
    existsSync(pathOf(createHash("sha256").update(text).digest("hex")));
  return { side, put, version, addVersion, collect, isHere, pathOf, directory };
}

test("what versions and bot sets name stays, what nobody names goes after three days", async () => {
  const { side, put, version, addVersion, collect, isHere } = await setUp();
  await using _ = side;
  const [stored, active] = [await version("both", "stored"), await version("both", "active")];
  await version("both", "gone");
  await addVersion("one", { files: stored.manifest, active: active.manifest });
  const set = { blob: await put("set"), when_created: side.clock.now().toISOString() };
  await side.store
    .insertInto("bot_set_contents")
    .values({ digest: sha256Of("d"), ...set })
    .execute();
  expect(await collect(keptMs)).toMatchObject({ removed: 0 });
  expect(await collect(keptMs + 1)).toEqual({
    removed: 2,
    removedBytes: expect.any(Number),
    stray: 0,
  });
  const shown = ["both", "stored", "active", "gone", "set", "{}"];
  expect(shown.map(isHere)).toEqual([true, true, true, false, true, true]);
  const gone = await side.store.selectFrom("blobs").select("sha256").execute();
  expect(gone.length).toBe(7);
});

test("what an import asked about, or what was stored again, is young again", async () => {
  const { side, put, collect, isHere } = await setUp();
  await using _ = side;
  const [asked] = [await put("asked"), await put("stored"), await put("forgotten")];
  side.clock.ms += keptMs;
  expect(await side.blobs.missing([asked])).toEqual([]);
  await put("stored");
  expect(await collect(1)).toMatchObject({ removed: 1 });
  expect(["asked", "stored", "forgotten"].map(isHere)).toEqual([true, true, false]);
});

test("nothing goes where a manifest is damaged; one that the disk lost holds up nothing", async () => {
  const { side, put, version, addVersion, collect, isHere, pathOf } = await setUp();
  await using _ = side;
  const { manifest } = await version("named");
  await put("nobody's");
  await addVersion("one", { files: manifest });
  await addVersion("lost", { files: "0".repeat(64) as Sha256 });
  const size = (await side.blobs.sizeOf(manifest)) ?? 0;
  writeFileSync(pathOf(manifest), Buffer.alloc(size, "x"));
  await expect(collect(keptMs + 1)).rejects.toMatchObject({ code: "STORE_DAMAGED" });
  expect(["named", "nobody's"].map(isHere)).toEqual([true, true]);
  await side.store.deleteFrom("viewsets").where("name", "=", "one").execute();
  await collect(keptMs + 1);
  expect(["named", "nobody's"].map(isHere)).toEqual([false, false]);
});

test("a digest that stands where two pieces of a manifest meet is found", async () => {
  const { side, put, addVersion, collect, isHere } = await setUp();
  await using _ = side;
  const devlove = { schema: "devlove/1", sha256: "0".repeat(64) };
  const textOf = (padding: number): string => {
    const files = Array.from({ length: 800 }, (_file, no) => ({
      path: no === 0 ? "x".repeat(padding + 1) : `f${no}`,
      sha256: createHash("sha256").update(`file ${no}`).digest("hex"),
      size: 8,
      mime: "text/plain",
    }));
    return canonicalJson({ devlove, files });
  };
  const piece = 64 * 1024; // Of a read stream.
  const met = /"sha256":"[0-9a-f]{20,50}$/;
  const padding = Array.from({ length: 200 }, (_padding, no) => no);
  const text = padding.map(textOf).find((one) => met.test(one.slice(0, piece))) ?? "";
  const [, digest = ""] = /"sha256":"([0-9a-f]{64})/.exec(text.slice(piece - 60)) ?? [];
  const no = Array.from({ length: 800 }, (_no, at) => at).find(
    (at) => createHash("sha256").update(`file ${at}`).digest("hex") === digest,
  );
  for (const name of [`file ${no}`, "file none"]) await put(name);
  await addVersion("one", { files: await put(text) });
  expect(await collect(keptMs + 1)).toMatchObject({ removed: 1 });
  expect([isHere(`file ${no}`), isHere("file none")]).toEqual([true, false]);
});

test("files of a crash between file and row go when they are old; other names are left alone", async () => {
  const { side, collect, pathOf, directory } = await setUp();
  await using _ = side;
  const [old, young] = ["a".repeat(64), "b".repeat(64)];
  const other = join(directory, "aa", "README");
  for (const path of [pathOf(old), pathOf(young), other]) {
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, "x");
    utimesSync(path, 0, 0);
  }
  const now = side.clock.now();
  utimesSync(pathOf(young), now, now);
  expect(await collect(1)).toMatchObject({ stray: 1 });
  expect([pathOf(old), pathOf(young), other].map((path) => existsSync(path))).toEqual([
    false,
    true,
    true,
  ]);
});

test("who stores a blob again while it is removed has it whole, row and file", async () => {
  const { side, put } = await setUp();
  await using _ = side;
  const texts = Array.from({ length: 30 }, (_text, no) => `again ${no}`);
  const digests = await Promise.all(texts.map(put));
  side.clock.ms += keptMs;
  for (let round = 0; round < 5; round++) {
    const removing = side.blobs.removeAll(digests, undefined);
    await Promise.all([removing, ...texts.map(put)]);
    const sizes = await Promise.all(digests.map(async (sha256) => side.blobs.sizeOf(sha256)));
    const rows = await side.blobs.missing(digests);
    // Whole or not at all: a row without its file would be taken for a blob that is there.
    expect(digests.filter((_digest, no) => sizes[no] === undefined)).toEqual(rows);
    await Promise.all(texts.map(put));
  }
});

test("a blob whose file was lost, and that comes again, is not removed between its file and its row", async () => {
  const { side, put, pathOf } = await setUp();
  await using _ = side;
  const sha256 = await put("lost");
  unlinkSync(pathOf(sha256));
  const again = put("lost");
  // Its row follows some milliseconds later.
  while (!existsSync(pathOf(sha256))) await setImmediate();
  expect(await side.blobs.removeAll([sha256], undefined)).toEqual([]);
  await again;
  expect(await side.blobs.sizeOf(sha256)).toBe(4);
});

test("who stores a blob that is removed without end does not wait without end", async () => {
  const { side, put } = await setUp();
  await using _ = side;
  const sha256 = await put("wanted");
  await side.blobs.remove(sha256);
  const stored = new AbortController();
  const remove = async (): Promise<void> => {
    while (!stored.signal.aborted) {
      await side.blobs.removeAll([sha256], undefined);
      await setImmediate();
    }
  };
  const removing = [remove(), remove()];
  expect(await put("wanted")).toBe(sha256);
  stored.abort();
  await Promise.all(removing);
});

test("it ends soon when it is told to, and nothing goes by half of what it knows", async () => {
  const { side, put, version, addVersion, collect, isHere } = await setUp();
  await using _ = side;
  const { manifest } = await version("named");
  await put("nobody's");
  await addVersion("one", { files: manifest });
  expect(await collect(keptMs + 1, AbortSignal.abort())).toMatchObject({ removed: 0 });
  expect(["named", "nobody's"].map(isHere)).toEqual([true, true]);
});

test("while a backup keeps all nothing goes; afterwards it does", async () => {
  const { side, put, collect, isHere } = await setUp();
  await using _ = side;
  await put("old");
  {
    using _kept = await side.blobs.keepAll();
    expect(await collect(2 * keptMs)).toEqual({ removed: 0, removedBytes: 0, stray: 0 });
    expect(isHere("old")).toBe(true);
  }
  expect(await collect(2 * keptMs)).toMatchObject({ removed: 1 });
  expect(isHere("old")).toBe(false);
});
