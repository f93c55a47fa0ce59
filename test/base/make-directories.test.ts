// Directories with their parents, also where none can be created.

import { mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { lockStateDir } from "../../src/base/state-lock.ts";
import { tempDir } from "../support/temp-dir.ts";
import { makeDirectories } from "../../src/base/durable-file.ts";

test("what is missing is made, private; the topmost of it is told", () => {
  using dir = tempDir();
  expect(makeDirectories(join(dir.path, "a/b/c"))).toBe(join(dir.path, "a"));
  expect(statSync(join(dir.path, "a/b/c")).mode & 0o777).toBe(0o700);
  expect(makeDirectories(join(dir.path, "a/b/c"))).toBeUndefined();
  expect(makeDirectories(join(dir.path, "a/b/d"), 0o750)).toBe(join(dir.path, "a/b/d"));
  mkdirSync(join(dir.path, "real"));
  symlinkSync("real", join(dir.path, "link"));
  expect(makeDirectories(join(dir.path, "link"))).toBeUndefined();
});

test("where nothing can be created it fails; it never comes to an end otherwise", () => {
  expect(() => makeDirectories("/proc/nb/deeper")).toThrow("ENOENT");
  expect(() => lockStateDir("/proc/nb")).toThrow(
    "the state directory /proc/nb cannot be used: ENOENT",
  );
});

test("a file in the way, and a link that leads nowhere, are told", () => {
  using dir = tempDir();
  writeFileSync(join(dir.path, "file"), "");
  symlinkSync("nowhere", join(dir.path, "dangling"));
  for (const path of ["file", "file/below"])
    expect(() => makeDirectories(join(dir.path, path))).toThrow("ENOTDIR");
  expect(() => makeDirectories(join(dir.path, "dangling"))).toThrow("EEXIST");
});
