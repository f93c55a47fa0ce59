// Reads of large files: a few at a time, in the order in which they were asked for.

import { open } from "node:fs/promises";
import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ReadTurns } from "../../../../src/agent/accelerator/files/read-turns.ts";
import { readInChunks, wholeRange } from "../../../../src/agent/accelerator/files/site-files.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const atOnce = 8;

function scene() {
  const turns = new ReadTurns();
  const began: number[] = [];
  const reads: { readonly resolve: (no: number) => void; readonly reject: (why: Error) => void }[] =
    [];
  const ask = async (no: number): Promise<number> =>
    turns.take(async () => {
      began.push(no);
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      reads.push({ resolve, reject });
      return promise;
    });
  return { turns, began, reads, ask };
}

it("begin a few at a time, and one that fails gives its turn to the next", async () => {
  const { began, reads, ask } = scene();
  const asked = Array.from({ length: atOnce + 3 }, async (_, no) => ask(no));
  expect(began).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  reads[5]?.resolve(5);
  expect(await asked[5]).toBe(5);
  expect(began.at(-1)).toBe(8);
  reads[0]?.reject(new Error("no disk"));
  await expect(asked[0]).rejects.toThrow("no disk");
  expect(began.at(-1)).toBe(9);
  // Who comes now waits behind who waits.
  const late = ask(11);
  reads[1]?.resolve(1);
  await asked[1];
  expect(began.slice(8)).toEqual([8, 9, 10]);
  reads[2]?.resolve(2);
  await asked[2];
  expect(began.at(-1)).toBe(11);
  for (const [no, read] of reads.entries()) read.resolve(no);
  await Promise.all([late, ...asked.slice(1)]);
  expect(began.length).toBe(atOnce + 4);
});

it("the pieces of a file wait for their turn", async () => {
  using dir = tempDir();
  const path = join(dir.path, "file");
  writeFileSync(path, "x".repeat(100_000));
  await using handle = await open(path);
  const { turns, reads, ask } = scene();
  const others = Array.from({ length: atOnce }, async (_, no) => ask(no));
  const pieces = readInChunks(handle, wholeRange(100_000), { reads: turns });
  let hasCome = false;
  const first = pieces.next().finally(() => (hasCome = true));
  await handle.read(Buffer.alloc(1)); // Longer than a piece would have taken, which was asked for before.
  await handle.read(Buffer.alloc(1));
  expect(hasCome).toBe(false);
  for (const [no, read] of reads.entries()) read.resolve(no);
  await Promise.all(others);
  expect((await first).value?.length).toBe(64 * 1024);
  expect((await pieces.next()).value?.length).toBe(100_000 - 64 * 1024);
});
