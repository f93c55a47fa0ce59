// Backup and restore on disks that are full or another one: told, and nothing half-done is left.

import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { BackupRig, texts } from "./rig.ts";

vi.setConfig({ testTimeout: 400_000 }); // Commands are processes.

const mount = (...args: readonly string[]): boolean => spawnSync("mount", args).status === 0;
const canMount = process.getuid?.() === 0 && spawnSync("unshare", ["--mount", "true"]).status === 0;

describe.skipIf(!canMount)("a disk that is full", () => {
  const small = async (action: (dir: string, rig: BackupRig) => Promise<void>): Promise<void> => {
    using rig = new BackupRig();
    await rig.prepare(texts);
    const dir = join(rig.dir, "small");
    mkdirSync(dir);
    if (!mount("-t", "tmpfs", "-o", "size=900k", "tmpfs", dir)) throw new Error("not mounted");
    try {
      await action(dir, rig);
    } finally {
      spawnSync("umount", ["--lazy", dir]);
    }
  };

  test("under a backup: nothing is left of it", async () => {
    await small(async (dir, rig) => {
      const { code, said } = await rig.run("backup", join(dir, "backup"));
      expect({ code, said }).toMatchObject({ code: 1 });
      expect(said).toMatch(/no backup was made in backup: .*(?:full|ENOSPC)/);
      expect(readdirSync(dir)).toEqual([]);
    });
  });

  test("under a restore: it is told before anything is written, and nothing is left of one that ran out of room", async () => {
    await small(async (dir, rig) => {
      expect(await rig.run("backup", rig.backup)).toMatchObject({ code: 0 });
      rig.writeSettings(join(dir, "restored"));
      const early = await rig.run("restore", rig.backup);
      expect(early.code).toBe(1);
      expect(early.said).toMatch(/has room for \d+ bytes, the backup has \d+/);
      expect(readdirSync(join(dir, "restored"))).toEqual(["lock"]);
      // Of a file system that promises more than it holds: many small files take whole pages.
      mount("-o", "remount,size=1100k", dir);
      const late = await rig.run("restore", rig.backup);
      expect(late.code).toBe(1);
      expect(late.said).toMatch(/was not restored: .*(?:full|ENOSPC)|has room for/);
      expect(readdirSync(join(dir, "restored"))).toEqual(["lock"]);
    });
  });
});

test("another disk: blobs are copied", async () => {
  using rig = new BackupRig();
  await rig.prepare(["a", "b"]);
  const dir = "/dev/shm";
  const target = join(dir, `accel-backup-test-${process.pid}`);
  try {
    const { code, said } = await rig.run("backup", target);
    const same = statSync(dir).dev === statSync(rig.dir).dev;
    expect(code).toBe(0);
    expect(said).toContain(`${same ? 2 : 0} of them linked`);
  } finally {
    rmSync(target, { recursive: true, force: true });
  }
});
