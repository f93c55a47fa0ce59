// Every point at which a machine may go down: a scenario is run once while its file operations are recorded; then for each prefix of them the disk is
// built anew, the power fails in several ways, another process starts on what is left, and everything is judged.
//
// What holds at a point is what had been promised before the next operation began: records that the spool had said are durable, numbers that had been
// given out, batches that central had committed.

import { expect } from "vitest";
import { totalDropped } from "../../src/agent/requests/spool/gaps.ts";
import type { SpoolFiles } from "../../src/agent/requests/spool/spool-files.ts";
import { LogCentral, type ToldGap } from "./log-central.ts";
import { MemoryFiles } from "./memory-files.ts";
import { SpoolRig, type Placed, type RigPolicy } from "./spool-rig.ts";

/** On a disk: handles are those of the first run, by the map. */
type Operation = (disk: MemoryFiles, handles: Map<number, number>) => void;
type Commit = Parameters<LogCentral["take"]>;

type Point = {
  readonly placed: ReadonlyMap<number, Placed>;
  readonly acknowledged: readonly number[];
  readonly commits: number;
  readonly epoch: number;
};

export type Recording = {
  readonly operations: readonly Operation[];
  /** One more than there are operations. */
  readonly points: readonly Point[];
  readonly commits: readonly Commit[];
  readonly policy: RigPolicy;
};

export type Scenario = {
  readonly policy: RigPolicy;
  readonly run: (rig: SpoolRig) => void;
  /** Between the spool and the disk: a bug to be caught. */
  readonly bug?: (files: SpoolFiles) => SpoolFiles;
};

export function record({ policy, run, bug = (files) => files }: Scenario): Recording {
  const operations: Operation[] = [];
  const points: Point[] = [];
  const commits: Commit[] = [];
  const central = new LogCentral();
  const take = central.take.bind(central);
  central.take = (...commit) => {
    commits.push(commit);
    return take(...commit);
  };
  const note = (rig: SpoolRig | undefined): void => {
    points.push({
      placed: new Map(rig?.placed),
      acknowledged: rig?.acknowledged() ?? [],
      commits: commits.length,
      epoch: rig?.epoch ?? 0,
    });
  };
  const late: { rig?: SpoolRig } = {};
  const wrap = (files: MemoryFiles): SpoolFiles =>
    bug(
      recorded(files, (operation) => {
        note(late.rig);
        operations.push(operation);
      }),
    );
  const rig = new SpoolRig(policy.bytesMax, policy, { central, wrap });
  late.rig = rig;
  run(rig);
  note(rig);
  return { operations, points, commits, policy };
}

function recorded(files: MemoryFiles, keep: (operation: Operation) => void): SpoolFiles {
  const known = (handles: Map<number, number>, file: number): number => handles.get(file) ?? -1;
  /** What fails is no operation: nothing of it is on the disk. */
  const done = <T>(action: () => T, operation: (result: T) => Operation): T => {
    const at: Operation[] = [];
    keep((disk, handles) => at[0]?.(disk, handles));
    const result = action();
    at.push(operation(result));
    return result;
  };
  return {
    ensureDirectory: (path) => files.ensureDirectory(path),
    list: (path) => files.list(path),
    stat: (path) => files.stat(path),
    freeBytes: (path) => files.freeBytes(path),
    widenDirectory: (path) => files.widenDirectory(path),
    read: (path, from, to) => files.read(path, from, to),
    create: (path) =>
      done(
        () => files.create(path),
        (file) => (disk, handles) => void handles.set(file, disk.create(path)),
      ),
    open: (path) =>
      done(
        () => files.open(path),
        (file) => (disk, handles) => void handles.set(file, disk.open(path)),
      ),
    write: (file, bytes, at) => {
      const copy = Uint8Array.from(bytes);
      return done(
        () => files.write(file, bytes, at),
        (count) => (disk, handles) =>
          void disk.write(known(handles, file), copy.subarray(0, count), at),
      );
    },
    truncate: (file, bytes) =>
      done(
        () => files.truncate(file, bytes),
        () => (disk, handles) => disk.truncate(known(handles, file), bytes),
      ),
    datasync: (file) =>
      done(
        () => files.datasync(file),
        () => (disk, handles) => disk.datasync(known(handles, file)),
      ),
    close: (file) => files.close(file),
    rename: (from, to) =>
      done(
        () => files.rename(from, to),
        () => (disk) => disk.rename(from, to),
      ),
    link: (path, to) =>
      done(
        () => files.link(path, to),
        () => (disk) => disk.link(path, to),
      ),
    unlink: (path) =>
      done(
        () => files.unlink(path),
        () => (disk) => disk.unlink(path),
      ),
    syncDirectory: (path) =>
      done(
        () => files.syncDirectory(path),
        () => (disk) => disk.syncDirectory(path),
      ),
  };
}

export const endings = {
  kill: (files: MemoryFiles) => files.kill(),
  "what was not synced is gone": (files: MemoryFiles) => files.powerLoss(0),
  "half of it came through": (files: MemoryFiles) => files.powerLoss(0.5),
  "names came through, bytes did not": (files: MemoryFiles) => files.powerLoss(0, { names: "all" }),
  "names and sizes came through, bytes did not": (files: MemoryFiles) =>
    files.powerLoss(1, { names: "all", zeros: true }),
} as const;
export type Ending = keyof typeof endings;

export type Expected = {
  /** Why a record that the spool had said is durable may be a gap. */
  readonly reasons: readonly string[];
  /** A central that goes down at the same moment, with the mark of its last batch on disk and the records not. */
  readonly centralTears?: boolean;
};

/** What is wrong after the power failed at this point; undefined when nothing is. */
export function replay(
  { operations, points, commits, policy }: Recording,
  at: number,
  ending: Ending,
  { reasons, centralTears = false }: Expected,
): string | undefined {
  const point = points[at];
  if (point === undefined) return `there is no point ${at}`;
  const files = new MemoryFiles();
  const handles = new Map<number, number>();
  for (const operation of operations.slice(0, at)) operation(files, handles);
  endings[ending](files);
  const central = new LogCentral();
  const committed = commits.slice(0, point.commits);
  for (const commit of committed) central.take(...commit);
  const [lane = "", firstSeq = 1, lastSeq = 0] = committed.at(-1) ?? [];
  if (centralTears)
    for (let seq = firstSeq; seq <= lastSeq; seq++) central.lane(lane).records.delete(seq);
  try {
    const rig = new SpoolRig(policy.bytesMax, policy, { ...point, files, central });
    rig.balanced();
    rig.drain();
    rig.judge();
    const late = rig.write(rig.worker(), 3);
    rig.drain();
    rig.judge();
    rig.balanced();
    expect(late).toBe(3);
    expect(rig.lanes().filter(({ live }) => !live)).toEqual([]);
    expect(rig.notices.filter(({ code }) => code === "spool_damaged")).toEqual([]);
    const unexpected = rig
      .lostAfterAll(point.acknowledged)
      .filter((reason) => !reasons.includes(reason));
    expect(unexpected).toEqual([]);
    expect(central.gaps().filter(isCorrupt)).toEqual([]);
    const { balance } = rig.spool.facts();
    expect(balance.committed).toBe(central.records().length);
    expect(totalDropped(balance.dropped) + balance.unproven).toBe(central.lost());
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    return `before operation ${at} of ${operations.length}, ${ending}: ${what}`;
  }
  return undefined;
}

function isCorrupt({ reason }: ToldGap): boolean {
  return reason === "corrupt" || reason === "released";
}
