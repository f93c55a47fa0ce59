// Durable files: replaced whole or not at all, nothing left behind.

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ensureDirectory, renameDurable, writeDurable } from "../../src/base/durable-file.ts";
import { tempDir } from "../support/temp-dir.ts";

test("a file is made and replaced, with its mode", async () => {
  using dir = tempDir();
  const path = join(dir.path, "a");
  await writeDurable(path, "one");
  await writeDurable(path, Buffer.from("two"), 0o640);
  expect(readFileSync(path, "utf8")).toBe("two");
  expect(statSync(path).mode & 0o777).toBe(0o640);
  await writeDurable(path, "three");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(dir.path)).toEqual(["a"]);
});

test("a failed rename leaves the old content and no temporary file", async () => {
  using dir = tempDir();
  const path = join(dir.path, "a");
  mkdirSync(path);
  writeFileSync(join(path, "inside"), "old");
  await expect(writeDurable(path, "new")).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  expect(readdirSync(dir.path)).toEqual(["a"]);
  expect(readFileSync(join(path, "inside"), "utf8")).toBe("old");
});

test("a failed write leaves the old content and no temporary file", async () => {
  using dir = tempDir();
  const path = join(dir.path, "a");
  await writeDurable(path, "old");
  const noText = 5 as unknown as string; // The write fails when the temporary file was made already.
  await expect(writeDurable(path, noText)).rejects.toThrow("data");
  expect(readdirSync(dir.path)).toEqual(["a"]);
  expect(readFileSync(path, "utf8")).toBe("old");
});

test("many writers at once: one of them wins whole", async () => {
  using dir = tempDir();
  const path = join(dir.path, "a");
  const contents = Array.from({ length: 20 }, (_, i) => String(i).repeat(10_000));
  await Promise.all(contents.map(async (content) => writeDurable(path, content)));
  expect(contents).toContain(readFileSync(path, "utf8"));
  expect(readdirSync(dir.path)).toEqual(["a"]);
});

test("a rename moves the file", async () => {
  using dir = tempDir();
  writeFileSync(join(dir.path, "a"), "x");
  await renameDurable(join(dir.path, "a"), join(dir.path, "b"));
  expect(readdirSync(dir.path)).toEqual(["b"]);
});

test("directories are made with their parents, private; an existing one is left as it is", async () => {
  using dir = tempDir();
  const deep = join(dir.path, "a/b/c");
  await ensureDirectory(deep);
  for (const path of ["a", "a/b", "a/b/c"])
    expect(statSync(join(dir.path, path)).mode & 0o777).toBe(0o700);
  await ensureDirectory(deep, 0o755);
  expect(statSync(deep).mode & 0o777).toBe(0o700);
});
