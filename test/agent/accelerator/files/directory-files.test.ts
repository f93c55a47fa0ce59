// What stays in memory of the files of a host's own folder: only what is the same file still.

import {
  chmodSync,
  linkSync,
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
function scene(restsMs: number, memoryMax = 2 ** 20, isLocal = true, except?: string) {
  const dir = tempDir();
  const root = join(dir.path, "views");
  mkdirSync(root);
  const bodies = new BlobBodies({ blobsDir: dir.path, memoryMax });
  const now = (): number => Date.now() + restsMs;
  const ours = except === undefined ? {} : { except: join(root, except) };
  const files = new DirectoryFiles({ root, ...ours }, now, bodies, async () => isLocal);
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
    findNow: (name: string) => files.findNow(name),
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

test("a name is found at once as long as the file's bytes are in memory", async () => {
  await using site = scene(61_000);
  site.write("a.css", "one");
  const isAtOnce = (name: string): boolean => {
    const found = site.findNow(name);
    if (found === "has-to-wait") return false;
    expect(found?.held()).toBeDefined();
    return true;
  };
  await site.get("a.css");
  expect(isAtOnce("a.css")).toBe(false); // Nobody knows that its bytes are there.
  await site.get("a.css");
  const before = descriptors();
  expect([isAtOnce("a.css"), isAtOnce("a.css"), descriptors() - before]).toEqual([true, true, 0]);
  expect(isAtOnce("b.css")).toBe(false);
  const changes: readonly (() => void)[] = [
    () => site.write("a.css", "two"),
    () => rmSync(site.path("a.css")),
    () => symlinkSync("/etc/hostname", site.path("a.css")),
    () => {
      rmSync(site.path("a.css"));
      mkdirSync(site.path("a.css"));
    },
  ];
  for (const change of changes) {
    change();
    expect(isAtOnce("a.css")).toBe(false);
    await site.get("a.css");
    await site.get("a.css");
  }
  expect(descriptors() - before).toBe(0);
});

test("the file that is none of the site's is never found, whatever name leads to it", async () => {
  await using site = scene(61_000, 2 ** 20, true, "rules.json");
  site.write("rules.json", "{}");
  for (let times = 0; times < 3; times++) expect(await site.get("rules.json")).toBeUndefined();
  site.write("a.css", "one");
  for (let times = 0; times < 2; times++) await site.get("a.css");
  expect(site.findNow("a.css")).not.toBe("has-to-wait");
  rmSync(site.path("rules.json"));
  linkSync(site.path("a.css"), site.path("rules.json"));
  expect(site.findNow("a.css")).toBe("has-to-wait");
  expect(await site.get("a.css")).toBeUndefined();
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
