// A disk of its own for one program, mounted in its mount namespace, which ends with it. Needs root and unshare(1), and fsfreeze(8) for a clone.

import { spawnSync } from "node:child_process";
import { rmSync, statfsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A command that runs a program with an empty disk of so many bytes at `dir`: a tmpfs. */
export const withOwnDisk = (dir: string, bytes: number): readonly string[] =>
  mounted(dir, `mount -t tmpfs -o size=${bytes},mode=0700 tmpfs ${dir}`);

/** A command that runs a program with the disk that is in the file `image` at `dir`. It is made, an ext4 of so many bytes, if it is not there. */
export const withDiskImage = (dir: string, image: string, bytes: number): readonly string[] =>
  mounted(
    dir,
    `{ [ -e ${image} ] || { truncate -s ${bytes} ${image} && mkfs.ext4 -q ${image}; }; }`,
    // Until the program before has let go of it, which may be on its way to its end.
    `while losetup --associated ${image} | grep -q .; do sleep 0.1; done`,
    `mount -o loop ${image} ${dir}`,
    `chmod 0700 ${dir}`,
    `rm -rf ${dir}/lost+found`,
  );

const mounted = (dir: string, ...steps: readonly string[]): readonly string[] => [
  "unshare",
  "--mount",
  "sh",
  "-c",
  [`mkdir -p -m 0700 ${dir}`, ...steps, 'exec "$@"'].join(" && "),
  "sh",
];

/** Copies the image of the disk at `dir` of the process while that runs, as a machine is cloned: file by file it is the same, inodes included. */
export function cloneDiskImage(pid: number, dir: string, image: string, copy: string): void {
  const inItsPlace = ["nsenter", "--target", `${pid}`, "--mount"];
  must(...inItsPlace, "fsfreeze", "--freeze", dir);
  try {
    must("cp", "--sparse=always", image, copy);
  } finally {
    must(...inItsPlace, "fsfreeze", "--unfreeze", dir);
  }
}

function must(...[command = "", ...args]: readonly string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
}

/** Somebody else writes to the disk at `dir` of the process until so many bytes are left. */
export function fillOwnDisk(pid: number, dir: string, leftBytes: number): void {
  const path = fillPath(pid, dir);
  const { bavail, bsize } = statfsSync(dirname(path));
  try {
    writeFileSync(path, Buffer.alloc(bavail * bsize - leftBytes));
  } catch (error) {
    // The process wrote at the same time, and the disk is full.
    if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
  }
}

export function makeRoomOnOwnDisk(pid: number, dir: string): void {
  rmSync(fillPath(pid, dir));
}

/** As the process sees it: nobody else has it mounted. */
const fillPath = (pid: number, dir: string): string => join(`/proc/${pid}/root`, dir, "fill");
