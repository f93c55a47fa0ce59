// Reading a file that others write: one state of it or nothing, whatever kind of change comes in between.

import { appendFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  readStill,
  readStillBytes,
  sourceAt,
  whileStill,
} from "../../../src/agent/viewset/still-file.ts";
import { tempDir } from "../../support/temp-dir.ts";

const { signal } = new AbortController();
const before = Buffer.alloc(3_000_000, "before ");
const after = Buffer.alloc(3_000_000, "after! ");

test.each([
  ["is overwritten", (path: string) => writeFileSync(path, after), after],
  ["grows", (path: string) => appendFileSync(path, "x"), Buffer.concat([before, Buffer.from("x")])],
  ["shrinks", (path: string) => truncateSync(path, 1_500_000), before.subarray(0, 1_500_000)],
])("a file that %s after its first piece was read is read again", async (_, change, expected) => {
  using dir = tempDir();
  const path = join(dir.path, "file");
  writeFileSync(path, before);
  const tries: Buffer[][] = [];
  const size = await whileStill(sourceAt(path), signal, async (opened) => {
    const chunks: Buffer[] = [];
    tries.push(chunks);
    return readStill(
      opened,
      10_000_000,
      (chunk) => {
        chunks.push(Buffer.from(chunk));
        if (tries.length === 1 && chunks.length === 1) change(path);
      },
      signal,
    );
  });
  expect(tries.length).toBe(2);
  expect(size).toBe(expected.length);
  expect(Buffer.concat(tries[1] ?? []).equals(expected)).toBe(true);
});

test("a file over the limit is nothing", async () => {
  using dir = tempDir();
  const path = join(dir.path, "file");
  writeFileSync(path, "12345");
  const read = async (max: number): Promise<Uint8Array | undefined> =>
    whileStill(sourceAt(path), signal, async (opened) => readStillBytes(opened, max, signal));
  expect(Buffer.from((await read(5)) ?? []).toString()).toBe("12345");
  expect(await read(4)).toBeUndefined();
});

test("a file that never holds still is opened four times, and left alone longer each time", async () => {
  using dir = tempDir();
  const path = join(dir.path, "file");
  writeFileSync(path, "12345");
  const source = sourceAt(path);
  const waits: number[] = [];
  let opened = 0;
  const taken = await whileStill(
    { name: path, open: async () => (opened++, source.open()) },
    signal,
    async () => undefined,
    async (ms) => void waits.push(ms),
  );
  const quietMs = 20; // What was written just now is waited for as well.
  expect([taken, opened]).toEqual([undefined, 4]);
  expect(waits.filter((ms) => ms !== quietMs)).toEqual([50, 100, 200]);
});

test("a file is read in pieces of a mebibyte, so that its size takes no memory", async () => {
  using dir = tempDir();
  const path = join(dir.path, "file");
  writeFileSync(path, before);
  const pieces: number[] = [];
  const size = await whileStill(sourceAt(path), signal, async (opened) =>
    readStill(opened, 10_000_000, (chunk) => void pieces.push(chunk.length), signal),
  );
  expect(size).toBe(before.length);
  expect(pieces).toEqual([2 ** 20, 2 ** 20, before.length - 2 * 2 ** 20]);
});
