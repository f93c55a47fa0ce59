// What durable files ask of the disk, and in which order: the content before the name, the name before it is done.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { writeDurable } from "../../src/base/durable-file.ts";
import { straceMissing } from "../support/file-trace.ts";
import { node } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";

const source = pathToFileURL(join(import.meta.dirname, "../../src/base/durable-file.ts")).href;

/** Syncs and renames below `root` while the script runs there; random parts of names are `*`. */
function traced(root: string, script: string): readonly string[] {
  const log = join(root, "trace");
  const text = `const { writeDurable, renameDurable, ensureDirectory } = await import(${JSON.stringify(source)}); const root = process.argv[1]; ${script}`;
  const { status, stderr } = spawnSync(
    "strace",
    [
      ..."-f -y -e trace=fsync,fdatasync,rename,renameat2 -o".split(" "),
      log,
      node,
      "--input-type=module",
      "-e",
      text,
      root,
    ],
    { encoding: "utf8", env: { ...process.env, UV_USE_IO_URING: "0" } },
  );
  expect(status, stderr).toBe(0);
  return readFileSync(log, "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, call, path] = /^\d+ +(\w+)\((?:\d+<)?"?([^">]*)/.exec(line) ?? [];
      return call === undefined || path?.startsWith(root) !== true
        ? []
        : [`${call} ${path.slice(root.length + 1).replace(/[0-9a-f]{12}/, "*")}`];
    });
}

const skipped = test.skipIf(straceMissing !== undefined);

skipped("a file is synced under another name, takes its own, and that is synced", () => {
  using dir = tempDir();
  expect(traced(dir.path, 'await writeDurable(root + "/a", "text");')).toEqual([
    "fsync a.*.tmp",
    "rename a.*.tmp",
    "fsync ",
  ]);
});

skipped("each directory that is made is synced in its parent", () => {
  using dir = tempDir();
  expect(traced(dir.path, 'await ensureDirectory(root + "/a/b/c");').toSorted()).toEqual([
    "fsync ",
    "fsync a",
    "fsync a/b",
  ]);
});

test("what could not even be begun says why itself", async () => {
  using dir = tempDir();
  const written = writeDurable(join(dir.path, "none/a"), "text");
  await expect(written).rejects.toMatchObject({ code: "ENOENT", syscall: "open" });
});
