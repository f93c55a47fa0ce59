// What lies on disk of the cache is damaged, at the start and under a running agent: visitors are answered, what was cleared stays cleared, the cache
// works again, and the agent says what happened.

import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { DamageRig } from "../support/damage-rig.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const files = (index: string): readonly string[] =>
  ["", "-wal", "-shm"].map((suffix) => index + suffix);

function remove(index: string): void {
  for (const file of files(index)) rmSync(file, { force: true });
}

/** Every byte from a tenth on: the first page still says that it is a database of ours. */
function noise(path: string, from = 0.1): void {
  const bytes = readFileSync(path);
  for (let at = Math.floor(bytes.length * from); at < bytes.length; at++)
    bytes[at] = (at * 167 + 13) % 256;
  writeFileSync(path, bytes);
}

function checkpointed(rig: DamageRig): void {
  rig.tamper("PRAGMA wal_checkpoint(TRUNCATE)");
}

const older = ({ edge }: DamageRig): string => join(edge.dir, "older.db");

function restore(rig: DamageRig): void {
  remove(rig.index);
  copyFileSync(older(rig), rig.index);
}

type Damage = readonly [
  what: string,
  damage: (rig: DamageRig) => void,
  warning: RegExp | undefined,
];

const atStart: readonly Damage[] = [
  ["index.db is deleted", ({ index }) => remove(index), /cache_dropped: .*missing/],
  [
    "index.db is cut in half",
    (rig) => {
      checkpointed(rig);
      truncateSync(rig.index, Math.floor(statSync(rig.index).size / 2));
    },
    /cache_dropped: .*damaged/,
  ],
  [
    "index.db is empty",
    ({ index }) => {
      remove(index);
      writeFileSync(index, "");
    },
    /cache_dropped: /,
  ],
  [
    "index.db is noise",
    (rig) => {
      checkpointed(rig);
      noise(rig.index, 0);
    },
    /cache_dropped: .*damaged/,
  ],
  [
    "most of index.db is noise",
    (rig) => {
      checkpointed(rig);
      noise(rig.index);
    },
    /cache_dropped: /,
  ],
  [
    "the words of half the entries are missing",
    (rig) => rig.tamper("DELETE FROM entry_text WHERE rowid % 2 = 0"),
    undefined,
  ],
];

const running: readonly Damage[] = [
  [
    "index.db is cut in half",
    (rig) => {
      checkpointed(rig);
      truncateSync(rig.index, 4_096 * 3);
    },
    /cache_dropped: /,
  ],
  [
    "index.db is noise",
    (rig) => {
      checkpointed(rig);
      noise(rig.index, 0);
    },
    /cache_dropped: /,
  ],
  [
    "the words of all entries are gone",
    (rig) => rig.tamper("DELETE FROM entry_text"),
    /cache_dropped: /,
  ],
  [
    "the tables of the text index are gone",
    (rig) => rig.tamper("DROP TABLE entry_text"),
    /cache_dropped: /,
  ],
  [
    "bodies are missing",
    ({ cache }) => {
      for (const path of readdirSync(join(cache, "objects"), { recursive: true, encoding: "utf8" }))
        if (path.includes("/")) rmSync(join(cache, "objects", path));
    },
    undefined,
  ],
  [
    "all of objects is missing",
    ({ cache }) => rmSync(join(cache, "objects"), { recursive: true }),
    undefined,
  ],
  ["the shared memory of index.db is noise", ({ index }) => noise(`${index}-shm`, 0), undefined],
];

describe("at the start", () => {
  let rig: DamageRig;
  beforeAll(async () => {
    rig = await DamageRig.start();
  });
  afterAll(async () => {
    await rig[Symbol.asyncDispose]();
  });

  test.each(atStart)("%s", async (_, damage, warning) => {
    await rig.filled();
    const cleared = await rig.change();
    await rig.filled(cleared);
    await rig.restarted(() => damage(rig));
    await rig.visitAll(cleared);
    if (warning !== undefined) await rig.warned(warning);
    const again = await rig.change();
    await rig.visitAll(again);
    await rig.filled(again);
    expect(await rig.control("cache-check")).toMatchObject({ ok: true });
  });

  test("index.db is an older copy: nothing of it is served", async () => {
    await rig.filled();
    await rig.restarted(() => {
      checkpointed(rig);
      copyFileSync(rig.index, older(rig));
    });
    const cleared = await rig.change();
    await rig.restarted(() => restore(rig));
    await rig.visitAll(cleared);
    await rig.warned(/cache_dropped: .*older copy/);
  });
});

describe("while it runs", () => {
  let rig: DamageRig;
  beforeAll(async () => {
    rig = await DamageRig.start();
  });
  afterAll(async () => {
    await rig[Symbol.asyncDispose]();
  });

  test.each(running)("%s", async (_, damage, warning) => {
    await rig.filled();
    damage(rig);
    await rig.visitAll().catch(async (error: unknown) => {
      if (!rig.edge.agent.ended) throw error;
    });
    await rig.isUp();
    const cleared = await rig.change();
    await rig.visitAll(cleared);
    if (warning !== undefined) await rig.warned(warning);
    await rig.filled(cleared);
  });

  test("an older copy is put in the place of index.db", async () => {
    await rig.filled();
    checkpointed(rig);
    copyFileSync(rig.index, older(rig));
    const before = await rig.change();
    await rig.filled(before);
    restore(rig);
    rig.killMatchers();
    const cleared = await rig.change();
    await rig.visitAll(cleared);
    await rig.warned(/cache_dropped: |clear_widened: /);
    await rig.filled(cleared);
  });

  test("index.db is deleted: what was cleared stays cleared over the next start", async () => {
    await rig.filled();
    remove(rig.index);
    const cleared = await rig.change();
    await rig.filled(cleared);
    const again = await rig.change();
    await rig.restarted(() => undefined);
    await rig.visitAll(again);
    await rig.warned(/cache_dropped: .*missing/);
    await rig.filled(again);
    expect(await rig.control("cache-check")).toMatchObject({ ok: true });
  });
});

const mount = (...args: readonly string[]): boolean => spawnSync("mount", args).status === 0;
/** Mounts a file system at a directory of the cache before the agent first sees it. */
const mounted =
  (directory: string, options: string) =>
  (rig: DamageRig): void => {
    const at = join(rig.cache, directory);
    mkdirSync(at, { recursive: true, mode: 0o700 });
    if (!mount("-t", "tmpfs", "-o", options, "tmpfs", at)) throw new Error("not mounted");
    rig.defer(() => spawnSync("umount", ["--lazy", at]));
  };
const canMount = process.getuid?.() === 0 && spawnSync("unshare", ["--mount", "true"]).status === 0;

describe.skipIf(!canMount)("a disk that refuses (as root only)", () => {
  test.each([
    ["full", "size=384k", /cache_not_stored|cache_closed|cache_dropped/],
    ["read-only", "size=32m,ro", /cache_closed/],
  ])("it is %s", async (_, options, warning) => {
    await using rig = await DamageRig.start(mounted("", options));
    await rig.warned(warning, () => rig.visitAll());
    const cleared = await rig.change();
    for (let round = 0; round < 2; round++) await rig.visitAll(cleared);
    mount("-o", "remount,rw,size=64m", rig.cache);
    await rig.filled(cleared);
    const again = await rig.change();
    await rig.visitAll(again);
    await rig.filled(again);
  });

  test("it is full for files alone: that is said as long as it is so, whatever small bodies are stored", async () => {
    await using rig = await DamageRig.start(mounted("objects", "size=16k"));
    const isTold = async (): Promise<boolean> =>
      (await rig.warnings()).includes(
        "cache_not_stored: larger responses cannot be stored: ENOSPC: no space left on device",
      );
    await until("every other page is a hit", async () => (await rig.visitAll()) === 12);
    expect(await isTold()).toBe(true);
    const cleared = await rig.change();
    await until("they are again", async () => (await rig.visitAll(cleared)) === 12);
    expect(await isTold()).toBe(true);
    mount("-o", "remount,rw,size=64m", join(rig.cache, "objects"));
    await rig.filled(cleared);
    expect(await isTold()).toBe(false);
  });
});
