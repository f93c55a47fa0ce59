// The real disk behind the spool: that it is asked to be durable, and that nothing stays open.

import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { diskFiles, writeWhole } from "../../../../src/agent/requests/spool/spool-files.ts";
import { SpoolRoom } from "../../../../src/agent/requests/spool/spool-room.ts";
import { straceMissing } from "../../../support/file-trace.ts";
import { canMountDisks, SmallDisk } from "../../../support/small-disk.ts";
import { node } from "../../../support/process.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const openFiles = (): number => readdirSync("/proc/self/fd").length;

test("syncing asks the system: what is not open cannot be synced", () => {
  using dir = tempDir();
  const file = openSync(join(dir.path, "a"), "w");
  diskFiles.datasync(file);
  closeSync(file);
  expect(() => diskFiles.datasync(file)).toThrow("EBADF");
  expect(() => diskFiles.syncDirectory(join(dir.path, "none"))).toThrow("ENOENT");
});

const sourceOf = (file: string): string =>
  JSON.stringify(
    pathToFileURL(join(import.meta.dirname, "../../../../src/agent/requests/spool", file)).href,
  );
const script = `
  const { diskFiles, writeWhole } = await import(${sourceOf("spool-files.ts")});
  const { SpoolRoom } = await import(${sourceOf("spool-room.ts")});
  const root = process.argv[1];
  diskFiles.ensureDirectory(root + "/spool/deep");
  const file = diskFiles.create(root + "/spool/segment");
  writeWhole(diskFiles, file, Buffer.from("records"), 0);
  diskFiles.datasync(file);
  diskFiles.close(file);
  new SpoolRoom(diskFiles, root + "/spool", 2 ** 20).replace(root + "/spool/marks", Buffer.from("marks"));
  diskFiles.syncDirectory(root + "/spool");
`;

test.skipIf(straceMissing !== undefined)("each sync reaches the disk, in its place", () => {
  using dir = tempDir();
  const log = join(dir.path, "trace");
  const traced = ["-f", "-y", "-e", "trace=fsync,fdatasync,rename,pwrite64", "-o", log];
  const args = [node, "--input-type=module", "-e", script, dir.path];
  const { status, stderr } = spawnSync("strace", [...traced, ...args], { encoding: "utf8" });
  expect(status, stderr).toBe(0);
  const calls = readFileSync(log, "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, call, path] = /^\d+ +(\w+)\((?:\d+<)?"?([^">,]*)/.exec(line) ?? [];
      return call === undefined || path?.startsWith(dir.path) !== true
        ? []
        : [`${call} ${path.slice(dir.path.length + 1)}`];
    });
  expect(calls).toEqual([
    "fsync ", // The directory in which the first one was made.
    "pwrite64 spool/segment",
    "fdatasync spool/segment",
    "pwrite64 spool/marks.tmp",
    "fdatasync spool/marks.tmp",
    "rename spool/marks.tmp",
    "fsync spool", // Of the name that it took.
    "fsync spool",
  ]);
});

test.skipIf(!canMountDisks)("a directory that was made wide takes names on a full disk", () => {
  using dir = tempDir();
  using disk = new SmallDisk("64M", { blockBytes: 1_024 });
  disk.mount(join(dir.path, "disk"));
  const [narrow, wide] = [join(disk.at, "narrow"), join(disk.at, "wide")];
  for (const path of [narrow, wide]) diskFiles.ensureDirectory(path);
  diskFiles.widenDirectory(wide);
  expect(readdirSync(wide)).toEqual([]);
  const room = join(disk.at, "room");
  writeFileSync(room, "");
  disk.fill("for nobody");
  const namesIn = (path: string): number => {
    for (let no = 0; no < 200; no++)
      try {
        diskFiles.link(
          room,
          join(path, `579f739953c03249-17-${String(no).padStart(16, "0")}-0.seg`),
        );
      } catch {
        return no;
      }
    return 200;
  };
  expect([namesIn(narrow) < 50, namesIn(wide)]).toEqual([true, 200]);
});

test("nothing stays open, whether it succeeds or fails", () => {
  using dir = tempDir();
  const path = join(dir.path, "a");
  const inTheWay = join(dir.path, "directory");
  writeFileSync(path, "0123456789");
  mkdirSync(join(inTheWay, "full"), { recursive: true });
  const room = new SpoolRoom(diskFiles, dir.path, 2 ** 10);
  const operations: Readonly<Record<string, () => unknown>> = {
    read: () => diskFiles.read(path, 2, 5),
    "read behind the end": () => diskFiles.read(path, 20),
    "read a directory": () => expect(() => diskFiles.read(inTheWay, 0)).toThrow("EISDIR"),
    "sync a directory": () => diskFiles.syncDirectory(dir.path),
    "make a directory": () => diskFiles.ensureDirectory(join(dir.path, "b/c")),
    replace: () => room.replace(join(dir.path, "marks"), Buffer.from("new")),
    "replace what cannot be": () =>
      expect(() => room.replace(inTheWay, Buffer.from("new"))).toThrow(),
    "make room": () => room.refill(),
    "take room, and make room of it again": () => {
      const { file = -1, path = "" } = room.open() ?? {};
      diskFiles.close(file);
      expect(room.keep(path)).toBe(true);
    },
  };
  for (const [what, operate] of Object.entries(operations)) {
    const before = openFiles();
    for (let time = 0; time < 20; time++) operate();
    expect(openFiles() - before, what).toBe(0);
  }
  expect(readdirSync(dir.path).toSorted()).toEqual(["a", "b", "directory", "marks", "room"]);
});

test("a read gives what was asked for, as far as the file goes", () => {
  using dir = tempDir();
  const path = join(dir.path, "a");
  writeFileSync(path, "0123456789");
  const read = (from: number, to?: number): string =>
    Buffer.from(diskFiles.read(path, from, to)).toString();
  expect([read(0), read(3), read(3, 5), read(9, 10), read(8, 99), read(10), read(5, 5)]).toEqual([
    "0123456789",
    "3456789",
    "34",
    "9",
    "89",
    "",
    "",
  ]);
});

test("a short write is continued, one of nothing ends it", () => {
  const wrote: string[] = [];
  const slow = (bytesAtOnce: number): typeof diskFiles => ({
    ...diskFiles,
    write: (_file, bytes, at) => {
      wrote.push(`${at} ${Buffer.from(bytes).toString()}`);
      return Math.min(bytesAtOnce, bytes.byteLength);
    },
  });
  writeWhole(slow(4), 0, Buffer.from("abcdefghi"), 100);
  expect(wrote).toEqual(["100 abcdefghi", "104 efghi", "108 i"]);
  expect(() => writeWhole(slow(0), 0, Buffer.from("a"), 0)).toThrow("takes no more");
});
