// The blob store on a real directory: verified, resumed, shared, swept; and files that do not hold still.

import { execFileSync } from "node:child_process";
import {
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { appendFile, mkdir, rm, writeFile, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BlobStore, openBlobStore } from "../../../src/agent/viewset/blob-store.ts";
import { sourceAt } from "../../../src/agent/viewset/still-file.ts";
import { blobPath } from "../../../src/core/blob-path.ts";
import { blobBytesMax } from "../../../src/wire/manifest.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";
import { digest, FakeCentral } from "./fake-central.ts";

const never = new AbortController().signal;
const big = Buffer.alloc(1_000_000, "all work and no play ");

async function setUp(path: string) {
  const central = new FakeCentral();
  const store = await openBlobStore(join(path, "blobs"));
  const fetch = async (content: Buffer, signal: AbortSignal = never): Promise<void> =>
    store.fetch(
      { sha256: central.add(content), size: content.length, bytesMax: blobBytesMax },
      async (...call) => central.getBlob(...call),
      signal,
    );
  return { central, store, fetch, incoming: join(path, "blobs", "incoming") };
}

test("a blob is fetched, verified, and there under its name with a mode for us alone", async () => {
  using dir = tempDir();
  const { central, store, fetch, incoming } = await setUp(dir.path);
  await fetch(big);
  await store.settle();
  expect(readFileSync(blobPath(store.dir, digest(big))).equals(big)).toBe(true);
  expect(store.has({ sha256: digest(big), size: big.length })).toBe(true);
  expect(store.has({ sha256: digest(big), size: 1 })).toBe(false);
  expect(readdirSync(incoming)).toEqual([]);
  await fetch(big);
  expect(central.asked.length).toBe(1);
});

test("an empty blob needs no transfer", async () => {
  using dir = tempDir();
  const { central, store, fetch } = await setUp(dir.path);
  await fetch(Buffer.alloc(0));
  expect(store.has({ sha256: digest(""), size: 0 })).toBe(true);
  expect(central.asked).toEqual([]);
});

test("a transfer that broke off goes on where it was, also in the next process", async () => {
  using dir = tempDir();
  const { central, fetch } = await setUp(dir.path);
  central.cuts.set(digest(big), 300_000);
  await expect(fetch(big)).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
  const next = await openBlobStore(join(dir.path, "blobs"));
  const want = { sha256: digest(big), size: big.length, bytesMax: blobBytesMax };
  await next.fetch(want, async (...call) => central.getBlob(...call), never);
  expect(central.asked.map(({ from }) => from)).toEqual([0, 300_000]);
  expect(next.has(want)).toBe(true);
});

test("where central does no ranges a broken transfer begins again", async () => {
  using dir = tempDir();
  const { central, store, fetch } = await setUp(dir.path);
  central.cuts.set(digest(big), 300_000);
  await expect(fetch(big)).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
  central.doesRanges = false;
  await fetch(big);
  expect(store.has({ sha256: digest(big), size: big.length })).toBe(true);
});

test("a partial file that lost its content is noticed and fetched from its first byte", async () => {
  using dir = tempDir();
  const { central, store, fetch, incoming } = await setUp(dir.path);
  writeFileSync(join(incoming, `${digest(big)}.part`), Buffer.alloc(400_000));
  await fetch(big);
  expect(central.asked.map(({ from }) => from)).toEqual([400_000, 0]);
  expect(store.has({ sha256: digest(big), size: big.length })).toBe(true);
});

test("a complete partial file needs no transfer", async () => {
  using dir = tempDir();
  const { central, store, fetch, incoming } = await setUp(dir.path);
  writeFileSync(join(incoming, `${digest(big)}.part`), big);
  await fetch(big);
  expect(central.asked).toEqual([]);
  expect(store.has({ sha256: digest(big), size: big.length })).toBe(true);
});

test.each([
  ["other bytes of the same size", Buffer.alloc(big.length), true, "BLOB_MISMATCH"],
  ["another size, told", Buffer.alloc(10), true, "VIEWSET_INVALID"],
  ["more bytes, not told", Buffer.alloc(big.length + 1), false, "BLOB_MISMATCH"],
  ["fewer bytes, not told", Buffer.alloc(10), false, "CENTRAL_UNREACHABLE"],
])("%s: nothing is adopted", async (_, forged, tellsSizes, code) => {
  using dir = tempDir();
  const { central, store, fetch, incoming } = await setUp(dir.path);
  central.forged.set(digest(big), forged);
  central.tellsSizes = tellsSizes;
  await expect(fetch(big)).rejects.toMatchObject({ code });
  expect(store.has({ sha256: digest(big) })).toBe(false);
  expect(central.running).toBe(0);
  if (code !== "CENTRAL_UNREACHABLE") expect(readdirSync(incoming)).toEqual([]);
  central.forged.clear();
  await fetch(big);
  expect(store.has({ sha256: digest(big), size: big.length })).toBe(true);
});

test("of a blob that central turns out not to have nothing stays", async () => {
  using dir = tempDir();
  const { central, store, fetch, incoming } = await setUp(dir.path);
  central.cuts.set(digest(big), 300_000);
  await expect(fetch(big)).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
  expect(readdirSync(incoming)).toEqual([`${digest(big)}.part`]);
  central.blobs.clear();
  const want = { sha256: digest(big), size: big.length, bytesMax: blobBytesMax };
  const again = store.fetch(want, async (...call) => central.getBlob(...call), never);
  await expect(again).rejects.toMatchObject({ code: "NOT_FOUND" });
  expect(readdirSync(incoming)).toEqual([]);
});

test("who wants the same blob shares the transfer; it goes on while one of them waits", async () => {
  using dir = tempDir();
  const { central, fetch } = await setUp(dir.path);
  const gate = Promise.withResolvers<void>();
  central.gate = gate.promise;
  const leaver = new AbortController();
  const left = fetch(big, leaver.signal);
  const stayed = fetch(big);
  await until("the transfer runs", () => central.running === 1);
  leaver.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  gate.resolve();
  await stayed;
  expect(central.asked.length).toBe(1);
});

test("when all have left the transfer ends, and the next one goes on", async () => {
  using dir = tempDir();
  const { central, store, fetch } = await setUp(dir.path);
  const gate = Promise.withResolvers<void>();
  central.gate = gate.promise;
  const leaver = new AbortController();
  const left = fetch(big, leaver.signal);
  await until("the transfer runs", () => central.running === 1);
  leaver.abort(new Error("gone"));
  gate.resolve();
  await expect(left).rejects.toThrow("gone");
  expect(central.running).toBe(0);
  await fetch(big);
  expect(store.has({ sha256: digest(big), size: big.length })).toBe(true);
});

test("a start sweeps what is of no use and keeps what can be continued", async () => {
  using dir = tempDir();
  const { store, incoming } = await setUp(dir.path);
  await store.putBytes(Buffer.from("here"));
  const name = (content: string): string => join(incoming, `${digest(content)}.part`);
  writeFileSync(name("wanted"), "wan");
  writeFileSync(name("here"), "he");
  writeFileSync(name("old"), "o");
  utimesSync(name("old"), new Date(0), new Date(0));
  writeFileSync(join(incoming, "0123.tmp"), "half");
  await mkdir(join(incoming, "stray"));
  await openBlobStore(store.dir);
  expect(readdirSync(incoming)).toEqual([`${digest("wanted")}.part`]);
});

test("a damaged blob is deleted when it is read, so that it is fetched again", async () => {
  using dir = tempDir();
  const { store } = await setUp(dir.path);
  const { sha256 } = await store.putBytes(Buffer.from("sound"));
  expect(Buffer.from((await store.readBytes(sha256, 100)) ?? []).toString()).toBe("sound");
  await expect(store.readBytes(sha256, 4)).rejects.toMatchObject({ code: "VIEWSET_INVALID" });
  writeFileSync(blobPath(store.dir, sha256), "other");
  expect(await store.readBytes(sha256, 100)).toBeUndefined();
  expect(existsSync(blobPath(store.dir, sha256))).toBe(false);
  expect(await store.readBytes(sha256, 100)).toBeUndefined();
});

test.each([
  ["small", 1_000],
  ["large", 3_000_000],
])("a %s file is taken in as it is", async (_, size) => {
  using dir = tempDir();
  const { store, incoming } = await setUp(dir.path);
  const content = Buffer.alloc(size, "content ");
  await writeFile(join(dir.path, "file"), content);
  const expected = { sha256: digest(content), size };
  expect(await store.ingest(sourceAt(join(dir.path, "file")), never)).toEqual(expected);
  expect(await store.ingest(sourceAt(join(dir.path, "file")), never)).toEqual(expected);
  expect(readFileSync(blobPath(store.dir, expected.sha256)).equals(content)).toBe(true);
  expect(readdirSync(incoming)).toEqual([]);
});

test("of a large file each piece is written before the next is read, for both lie in the same memory", async () => {
  using dir = tempDir();
  const { store, incoming } = await setUp(dir.path);
  const content = Buffer.concat(
    Array.from({ length: 5 }, (_, piece) => Buffer.alloc(2 ** 20, `piece ${piece}. `)),
  );
  const source = sourceAt(join(dir.path, "file"));
  await writeFile(source.name, content);
  const reads: { readonly at: number; readonly written: number }[] = [];
  const watched = async (): Promise<FileHandle> => {
    const file = await source.open();
    const read = file.read.bind(file);
    return Object.assign(file, {
      read: async (buffer: Buffer, offset: number, length: number, at: number) => {
        const [staged = ""] = readdirSync(incoming);
        reads.push({ at, written: statSync(join(incoming, staged)).size });
        return read(buffer, offset, length, at);
      },
    });
  };
  const taken = await store.ingest({ name: source.name, open: watched }, never);
  expect(taken).toEqual({ sha256: digest(content), size: content.length });
  expect(reads.length).toBe(6);
  for (const { at, written } of reads) expect(written).toBe(at);
  expect(digest(readFileSync(blobPath(store.dir, taken.sha256)))).toBe(taken.sha256);
});

test("a blob that goes before it is opened is one that is not here", async () => {
  using dir = tempDir();
  class LosingStore extends BlobStore {
    override has(blob: Parameters<BlobStore["has"]>[0]): boolean {
      const isHere = super.has(blob);
      this.remove(blob.sha256);
      return isHere;
    }
  }
  const { store } = await setUp(dir.path);
  const { sha256 } = await store.putBytes(Buffer.from("content"));
  const losing = new LosingStore(store.dir, [], () => 0);
  expect(await losing.readBytes(sha256, 100)).toBeUndefined();
  expect(store.has({ sha256 })).toBe(false);
});

test("a file that is written while it is read gives one of its states, or is named", async () => {
  using dir = tempDir();
  const { store, incoming } = await setUp(dir.path);
  const path = join(dir.path, "log");
  await writeFile(path, Buffer.alloc(2_000_000));
  const done = new AbortController();
  const writer = (async (): Promise<void> => {
    while (!done.signal.aborted) await appendFile(path, "x");
  })();
  try {
    const taken = await store.ingest(sourceAt(path), never).catch((error: unknown) => error);
    // On a busy machine the writer may have paused for long enough.
    const { size } = taken as { size?: number };
    expect(taken).toEqual(
      size === undefined
        ? expect.objectContaining({
            code: "IMPORT_IMPOSSIBLE",
            message: expect.stringContaining(path) as string,
          })
        : { sha256: digest(readFileSync(path).subarray(0, size)), size },
    );
  } finally {
    done.abort();
    await writer;
  }
  expect(readdirSync(incoming)).toEqual([]);
  const whole = readFileSync(path);
  expect(await store.ingest(sourceAt(path), never)).toEqual({
    sha256: digest(whole),
    size: whole.length,
  });
});

test("what is no regular file is not taken in", async () => {
  using dir = tempDir();
  const { store } = await setUp(dir.path);
  execFileSync("mkfifo", [join(dir.path, "pipe")]);
  await expect(store.ingest(sourceAt(join(dir.path, "pipe")), never)).rejects.toMatchObject({
    code: "IMPORT_IMPOSSIBLE",
  });
  await expect(store.ingest(sourceAt(dir.path), never)).rejects.toMatchObject({
    code: "IMPORT_IMPOSSIBLE",
  });
});

test("settling fails when a directory cannot be synced, and does not forget it", async () => {
  using dir = tempDir();
  const { store } = await setUp(dir.path);
  await store.settle();
  const { sha256 } = await store.putBytes(Buffer.from("x"));
  const fan = join(store.dir, sha256.slice(0, 2));
  await rm(fan, { recursive: true });
  await expect(store.settle()).rejects.toMatchObject({ code: "ENOENT" });
  await expect(store.settle()).rejects.toMatchObject({ code: "ENOENT" });
  await mkdir(fan);
  await store.settle();
});

test("what would inflate beyond its size is left at the first byte too many, and nothing of it stays", async () => {
  using dir = tempDir();
  const { store, incoming } = await setUp(dir.path);
  const seen = { chunks: 0, hasEnded: false };
  async function* inflating(): AsyncGenerator<Uint8Array> {
    try {
      for (; ; seen.chunks++) yield Buffer.alloc(65_536);
    } finally {
      seen.hasEnded = true;
    }
  }
  const want = { sha256: digest(big), size: big.length, bytesMax: blobBytesMax, isText: true };
  const bomb = async () => ({
    from: 0,
    size: big.length,
    chunks: inflating(),
    cancel: () => undefined,
  });
  await expect(store.fetch(want, bomb, never)).rejects.toMatchObject({ code: "BLOB_MISMATCH" });
  expect(seen).toEqual({ chunks: Math.floor(big.length / 65_536), hasEnded: true });
  expect(readdirSync(incoming)).toEqual([]);
});
