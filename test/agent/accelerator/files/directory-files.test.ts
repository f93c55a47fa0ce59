// What stays in memory of the files of a host's own folder: only what is the same file still.

import {
  chmodSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BlobBodies } from "../../../../src/agent/accelerator/files/bodies.ts";
import { DirectoryFiles } from "../../../../src/agent/accelerator/files/directory-files.ts";
import type { ByteRange } from "../../../../src/core/http/conditional.ts";
import { tempDir } from "../../../support/temp-dir.ts";

/** A folder whose files have rested for so long when they are looked for. */
function scene(restsMs: number, memoryMax = 2 ** 20, isLocal = true) {
  const dir = tempDir();
  const root = join(dir.path, "views");
  mkdirSync(root);
  const bodies = new BlobBodies({ blobsDir: dir.path, memoryMax });
  const now = (): number => Date.now() + restsMs;
  const files = new DirectoryFiles({ root }, now, bodies, async () => isLocal);
  return {
    write: (name: string, text: string): void => writeFileSync(join(root, name), text),
    path: (name: string): string => join(root, name),
    /** Returns the bytes as a visitor gets them, and whether they were in memory. */
    async get(name: string, range?: ByteRange) {
      await using file = await files.find(name);
      if (file === undefined) return undefined;
      const wasHeld = file.held() !== undefined;
      const body = await file.body(range);
      const pieces = body instanceof Uint8Array ? [body] : await Array.fromAsync(body);
      return { text: Buffer.concat(pieces).toString("latin1"), wasHeld };
    },
    find: async (name: string) => files.find(name),
    async [Symbol.asyncDispose]() {
      await bodies[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

const descriptors = (): number => readdirSync("/proc/self/fd").length;

test("a small file that has rested for a minute is read once, and opened no more", async () => {
  await using site = scene(61_000);
  site.write("a.css", "one");
  expect(await site.get("a.css")).toEqual({ text: "one", wasHeld: false });
  expect(await site.get("a.css")).toEqual({ text: "one", wasHeld: true });
  expect(await site.get("a.css", { first: 1, last: 2 })).toEqual({ text: "ne", wasHeld: true });
  const before = descriptors();
  await using held = await site.find("a.css");
  expect([held?.size, descriptors() - before]).toEqual([3, 0]);
});

test("a range has the whole kept", async () => {
  await using site = scene(61_000);
  site.write("a.css", "one");
  expect(await site.get("a.css", { first: 0, last: 0 })).toEqual({ text: "o", wasHeld: false });
  expect(await site.get("a.css")).toEqual({ text: "one", wasHeld: true });
});

test("whatever becomes of a file is served with the next request", async () => {
  await using site = scene(61_000);
  site.write("a.css", "one");
  const changes: readonly [text: string, change: () => void][] = [
    ["two", () => site.write("a.css", "two")],
    [
      "six",
      () => {
        site.write("b.css", "six");
        utimesSync(site.path("b.css"), 1, 1);
        renameSync(site.path("b.css"), site.path("a.css"));
      },
    ],
    ["six", () => chmodSync(site.path("a.css"), 0o600)],
    ["", () => site.write("a.css", "")],
    ["ten", () => site.write("a.css", "ten")],
  ];
  for (const [text, change] of changes) {
    await site.get("a.css");
    await site.get("a.css");
    change();
    expect(await site.get("a.css")).toEqual({ text, wasHeld: false });
  }
});

test("a file whose bytes are in memory is found without another thread, and what takes its place as ever", async () => {
  await using site = scene(61_000);
  site.write("a.css", "one");
  const isAtOnce = async (): Promise<boolean> => {
    let isDone = false;
    const found = site.find("a.css").finally(() => (isDone = true));
    for (let turns = 0; turns < 20; turns++) await Promise.resolve();
    const wasDone = isDone;
    await (await found)?.[Symbol.asyncDispose]();
    return wasDone;
  };
  await site.get("a.css");
  expect(await isAtOnce()).toBe(false); // Nobody knew that its bytes are there.
  expect(await isAtOnce()).toBe(true);
  expect(await isAtOnce()).toBe(true);
  rmSync(site.path("a.css"));
  expect(await site.get("a.css")).toBeUndefined();
  symlinkSync("/etc/hostname", site.path("a.css"));
  expect(await site.get("a.css")).toBeUndefined();
  rmSync(site.path("a.css"));
  site.write("a.css", "two");
  expect(await isAtOnce()).toBe(false);
  expect(await site.get("a.css")).toEqual({ text: "two", wasHeld: false });
  rmSync(site.path("a.css"));
  site.write("b.css", "six");
  await site.get("b.css");
  await site.get("b.css");
  rmSync(site.path("b.css"));
  symlinkSync("/etc/hostname", site.path("b.css"));
  expect(await site.get("b.css")).toBeUndefined();
});

test.each([
  ["a file that was changed within the last minute", 30_000, "one", 2 ** 20, true],
  ["a larger file", 61_000, "x".repeat(65_537), 2 ** 20, true],
  ["a file for which there is no memory", 61_000, "one", 0, true],
  ["a file of another host", 61_000, "one", 2 ** 20, false],
])("%s is read each time", async (_, restsMs, text, memoryMax, isLocal) => {
  await using site = scene(restsMs, memoryMax, isLocal);
  site.write("a.css", text);
  for (let times = 0; times < 3; times++)
    expect(await site.get("a.css")).toEqual({ text, wasHeld: false });
});
