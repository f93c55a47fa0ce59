// What is found below a root lies there, while links and the root itself are swapped all the time.

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findBelow, findBelowNow, Root } from "../../src/base/below-root.ts";
import { tempDir } from "../support/temp-dir.ts";

let dir: ReturnType<typeof tempDir>;
let root: string;
beforeEach(() => {
  dir = tempDir();
  root = join(dir.path, "site");
  mkdirSync(join(root, "docs"), { recursive: true });
  writeFileSync(join(root, "docs/page"), "ours");
  mkdirSync(join(dir.path, "private"));
  writeFileSync(join(dir.path, "private/page"), "not ours");
});
afterEach(() => dir[Symbol.dispose]());

/** Reads it as it is found by both ways, and asserts that they agree; not while something is swapped. */
async function text(path: string, from = root): Promise<string | undefined> {
  const now = await textBy(findBelowNow, path, from);
  expect(await textBy(findBelow, path, from)).toBe(now);
  return now;
}

const ways = { findBelow, findBelowNow } as const;
const wayNames = ["findBelow", "findBelowNow"] as const;

async function textBy(
  find: (typeof ways)[keyof typeof ways],
  path: string,
  from = root,
): Promise<string | undefined> {
  using found = await find(from, path);
  if (found === undefined) return undefined;
  await using file = await found.open();
  return file.readFile("utf8");
}

/** Swaps for as long as `action` runs, in a process of its own: between any two system calls of ours. */
async function whileSwapping(
  script: string,
  action: () => Promise<void>,
  rounds = 400,
): Promise<void> {
  const { spawn } = await import("node:child_process");
  const child = spawn("sh", ["-c", `while :; do ${script}; done`], { cwd: dir.path });
  try {
    for (let i = 0; i < rounds; i++) await action();
  } finally {
    child.kill("SIGKILL");
  }
}

test.each([
  ["docs/page", "ours"],
  ["inside", "ours"],
  ["absolute", "ours"],
  ["up/site/docs/page", "ours"],
  ["out", undefined],
  ["etc/passwd", undefined],
  ["up/private/page", undefined],
  ["up/site-2/page", undefined],
])("%s: %s", async (path, expected) => {
  symlinkSync("docs/page", join(root, "inside"));
  symlinkSync(join(root, "docs/page"), join(root, "absolute"));
  symlinkSync("../private/page", join(root, "out"));
  symlinkSync("/etc", join(root, "etc"));
  symlinkSync("..", join(root, "up"));
  mkdirSync(join(dir.path, "site-2"));
  writeFileSync(join(dir.path, "site-2/page"), "a neighbour's");
  expect(await text(path)).toBe(expected);
});

test.each(wayNames)(
  "a directory that is swapped for a link out of the root gives nothing of the outside: %s",
  async (way) => {
    const seen = new Set<string | undefined>();
    // It rests where all is right: on a busy machine no read would fall between two swaps.
    await whileSwapping(
      "mv site/docs site/real; ln -s ../private site/docs; rm site/docs; mv site/real site/docs; sleep 0.002",
      async () => {
        seen.add(await textBy(ways[way], "docs/page").catch(() => undefined));
      },
    );
    expect([...seen].filter((one) => one !== undefined && one !== "ours")).toEqual([]);
    expect(seen).toContain("ours");
  },
);

test.each(wayNames)(
  "a root that is a link which moves is one release or the other, never nothing: %s",
  async (way) => {
    mkdirSync(join(dir.path, "next/docs"), { recursive: true });
    writeFileSync(join(dir.path, "next/docs/page"), "next");
    symlinkSync("site", join(dir.path, "current"));
    const seen = new Set<string | undefined>();
    await whileSwapping(
      "ln -s next new; mv -T new current; ln -s site new; mv -T new current",
      async () => {
        seen.add(await textBy(ways[way], "docs/page", join(dir.path, "current")));
      },
      2_000,
    );
    expect([...seen].filter((one) => one !== "ours" && one !== "next")).toEqual([]);
  },
);

test("a root that was opened stays the same directory when another takes its name", async () => {
  using opened = await Root.open(root);
  renameSync(root, join(dir.path, "old"));
  mkdirSync(root);
  using found = await opened.find("docs/page");
  expect(found?.place).toBe(join(dir.path, "old/docs/page"));
});

test("names that are no UTF-8 are not taken for one another", async () => {
  // Both are "a\ufffd" once decoded.
  const odd = Buffer.concat([Buffer.from(`${dir.path}/a`), Buffer.from([0xff])]);
  mkdirSync(odd);
  writeFileSync(Buffer.concat([odd, Buffer.from("/page")]), "not ours");
  const like = join(dir.path, "a\ufffd");
  mkdirSync(like);
  symlinkSync(odd, Buffer.from(join(like, "link")));
  await expect(text("link/page", like)).resolves.toBeUndefined();
});

test("what lies outside is never opened: its pipes have no reader", async () => {
  execFileSync("mkfifo", [join(dir.path, "private/pipe")]);
  symlinkSync("../private/pipe", join(root, "pipe"));
  expect(await findBelow(root, "pipe")).toBeUndefined();
  expect(findBelowNow(root, "pipe")).toBeUndefined();
  using inside = await Root.open(dir.path);
  using pipe = await inside.find("private/pipe");
  expect(pipe?.stats.isFIFO()).toBe(true);
});

test("what is not there, and a root that is not there, throw", async () => {
  const refuses = async (path: string, code: string): Promise<void> => {
    await expect(findBelow(root, path)).rejects.toMatchObject({ code });
    expect(() => findBelowNow(root, path)).toThrow(expect.objectContaining({ code }));
  };
  const before = readdirSync("/proc/self/fd").length;
  await refuses("nothing", "ENOENT");
  await refuses("docs/page/x", "ENOTDIR");
  expect(readdirSync("/proc/self/fd").length).toBe(before);
  rmSync(root, { recursive: true });
  await refuses("docs/page", "ENOENT");
});
