// The warnings of what runs out on a host, and of lost records.

import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import {
  droppedQuietMs,
  HostWatch,
  openFilesCounter,
  refusedQuietMs,
  type HostFacts,
} from "../../../src/agent/admin/host-watch.ts";
import { diskSpaceOf } from "../../../src/base/disk-space.ts";
import { Health } from "../../../src/base/health.ts";

const gib = 2 ** 30;
const fine: HostFacts = {
  files: { open: 100, max: 1_000 },
  refused: 0,
  uncounted: 0,
  dropped: 5,
  disk: { free: 50 * gib, size: 100 * gib },
};

function rig() {
  const health = new Health(() => new Date(0));
  const logged: string[] = [];
  const tell = (_: object, text: string): void => void logged.push(text);
  const watch = new HostWatch({ health, log: { warn: tell, info: tell } as never, dropped: 5 });
  return {
    logged,
    look: (facts: Partial<HostFacts>, nowMs = 0) => {
      watch.take({ ...fine, ...facts }, nowMs);
      return health.list().map(({ code, severity, text }) => `${severity} ${code}: ${text}`);
    },
  };
}

test("descriptors: told from 80 % on, an error from 95 %, and settled below 70 %", () => {
  const { look, logged } = rig();
  expect(look({ files: { open: 799, max: 1_000 } })).toEqual([]);
  expect(look({ files: { open: 800, max: 1_000 } })).toEqual([
    "warning descriptors_low: 800 of 1000 files are open; visitors are refused when none is left",
  ]);
  expect(look({ files: { open: 950, max: 1_000 } })[0]).toMatch(/^error descriptors_low/);
  expect(look({ files: { open: 700, max: 1_000 } })).toHaveLength(1);
  expect(look({ files: { open: 699, max: 1_000 } })).toEqual([]);
  expect(logged).toHaveLength(2);
});

test("requests that no limit had room for: a warning until there were none for long", () => {
  const { look } = rig();
  expect(look({ uncounted: 7 }, 1_000)).toEqual([
    "warning limits_full: 7 requests were let through uncounted, because the table of limits.requests was full",
  ]);
  expect(look({ uncounted: 9 }, 2_000)[0]).toContain(": 9 requests");
  expect(look({ uncounted: 9 }, 1_999 + refusedQuietMs)).toHaveLength(1);
  expect(look({ uncounted: 9 }, 2_000 + refusedQuietMs)).toEqual([]);
});

test("refused connections and lost records: those since the start, until there were none for long", () => {
  const { look } = rig();
  expect(look({ refused: 0, dropped: 5 })).toEqual([]); // Those of the process before.
  expect(look({ refused: 2, dropped: 8 }, 1_000)).toEqual([
    "error connections_refused: 2 connections of visitors were refused, because too many were open",
    "error records_dropped: 3 request records were lost since the start; central has them as gaps",
  ]);
  expect(look({ refused: 3, dropped: 8 }, 2_000)[0]).toContain(": 3 connections");
  expect(look({ refused: 3, dropped: 8 }, 1_999 + refusedQuietMs)).toHaveLength(2);
  expect(look({ refused: 3, dropped: 8 }, 2_000 + refusedQuietMs)).toHaveLength(1);
  expect(look({ refused: 3, dropped: 8 }, 1_000 + droppedQuietMs)).toEqual([]);
});

test("disk: told by how much is free, and settled when twice as much is", () => {
  const { look } = rig();
  const size = 100 * gib;
  expect(look({ disk: { free: 1 * gib, size } })).toEqual([]);
  expect(look({ disk: { free: 0.9 * gib, size } })).toEqual([
    "warning disk_low: 922 MiB are free on the disk of the state directory",
  ]);
  expect(look({ disk: { free: 0.2 * gib, size } })[0]).toMatch(/^error disk_low/);
  expect(look({ disk: { free: 1.9 * gib, size } })).toHaveLength(1);
  expect(look({ disk: { free: 2 * gib, size } })).toEqual([]);
  // A small disk is not low because it is small.
  expect(look({ disk: { free: 0.06 * gib, size: 0.1 * gib } })[0]).toMatch(/^warning/);
  expect(look({ disk: { free: 0.08 * gib, size: 0.1 * gib } })).toEqual([]);
});

test("files that can be made: told by how few, and settled when twice as many can and there is room", () => {
  const { look } = rig();
  const disk = (free: number, most = 80_000) => ({
    disk: { free: 50 * gib, size: 100 * gib, files: { free, most } },
  });
  expect(look(disk(800))).toEqual([]);
  expect(look(disk(799))).toEqual([
    "warning disk_low: 799 more files can be made on the disk of the state directory, of 80000",
  ]);
  expect(look(disk(0))[0]).toMatch(/^error disk_low: 0 more files/);
  expect(look(disk(1_599))).toHaveLength(1);
  const low = { disk: { free: 0.1 * gib, size: 100 * gib, files: { free: 1_600, most: 80_000 } } };
  expect(look(low)[0]).toMatch(/^error disk_low: 102 MiB are free/);
  expect(look(disk(1_600))).toEqual([]);
  expect(look(disk(10_000, 100_000_000))).toEqual([]);
  expect(look(disk(9_999, 100_000_000))).toHaveLength(1);
});

test("what cannot be known here raises and settles nothing; this process can be looked at", () => {
  const { look } = rig();
  look({ files: { open: 990, max: 1_000 } });
  expect(look({ files: undefined, disk: undefined })).toHaveLength(1);
  const files = openFilesCounter()();
  expect(files?.open).toBeGreaterThan(2);
  expect(files?.max).toBeGreaterThan(files?.open ?? 0);
  expect(diskSpaceOf("/")?.size).toBeGreaterThan(0);
  expect(diskSpaceOf("/no/such/directory")).toBeUndefined();
});

test("when no descriptor is left to look with, all are open; when some are free again, they are counted", () => {
  const module = new URL("../../../src/agent/admin/host-watch.ts", import.meta.url).href;
  const script = `
    import { closeSync, openSync } from "node:fs";
    const { openFilesCounter } = await import(${JSON.stringify(module)});
    const count = openFilesCounter();
    const opened = [];
    try {
      for (;;) opened.push(openSync("/dev/null", "r"));
    } catch {}
    const atMost = count();
    for (const fd of opened.slice(0, 20)) closeSync(fd);
    const fewer = count();
    console.log(JSON.stringify({ atMost, isFewer: fewer.open < fewer.max && fewer.open > 0 }));`;
  // The shell's own builtin; Node raises its soft limit to the hard one.
  const line = 'ulimit -n 128; exec "$0" --input-type=module -e "$1"';
  const { stdout, stderr } = spawnSync("sh", ["-c", line, process.execPath, script], {
    encoding: "utf8",
  });
  expect([stdout.trim(), stderr]).toEqual([
    JSON.stringify({ atMost: { open: 128, max: 128 }, isFewer: true }),
    "",
  ]);
});
