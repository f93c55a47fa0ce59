// The machine may go down before any file operation of the spool: whatever point, what was promised holds. And bugs that are planted are caught, so that
// a walk without a finding says something.

import { describe, expect, test } from "vitest";
import type { SpoolFiles } from "../../../../src/agent/requests/spool/spool-files.ts";
import {
  endings,
  record,
  replay,
  type Ending,
  type Expected,
  type Recording,
  type Scenario,
} from "../../../support/crash-replay.ts";
import { systemError } from "../../../support/memory-files.ts";
import type { RigPolicy, SpoolRig } from "../../../support/spool-rig.ts";

const policy: RigPolicy = {
  bytesMax: 2 ** 16,
  whenFull: "drop_oldest",
  durability: "group",
  name16: "00000000000000aa",
};
const firstLane = "0000000000000001/1";

const allEndings = Object.keys(endings) as Ending[]; // Its own keys.

/** Each point, with each ending or with two of them by turns; what is wrong as it is found. */
function* walk(
  recording: Recording,
  expected: Expected,
  endingsOf: "all" | "some",
): Generator<string> {
  for (let at = 0; at < recording.points.length; at++) {
    const turn = allEndings.filter((_, no) => no === at % 5 || no === (at + 2) % 5);
    for (const ending of endingsOf === "all" ? allEndings : turn) {
      const wrong = replay(recording, at, ending, expected);
      if (wrong !== undefined) yield wrong;
    }
  }
}

/** Two workers, batches answered and not, segments that go, an overflow, a worker that ends, an orderly restart. */
function usual(rig: SpoolRig): void {
  const [one, two] = [rig.worker(), rig.worker()];
  for (let i = 0; i < 3; i++) {
    rig.write(one, 12);
    rig.write(two, 3);
    two.accept(2);
  }
  rig.ship(firstLane, { recordsMax: 25 });
  rig.spool.persist();
  rig.ship(firstLane, { answered: false });
  rig.write(one, 5);
  one.drop(3);
  two.rest();
  rig.spool.end(two.feed);
  rig.ship(firstLane);
  rig.spool.persist();
  for (let i = 0; i < 9; i++) rig.write(one, 20);
  one.accept(4);
  rig.workers = [one];
  rig.restart();
  const three = rig.worker();
  rig.write(three, 8);
  for (let i = 0; i < 3; i++)
    for (const { lane } of rig.lanes()) rig.ship(lane, { recordsMax: 90 });
  rig.spool.persist();
  rig.write(three, 8);
}

/** The disk fails and fills up, central refuses a record. */
function unlucky(rig: SpoolRig): void {
  const one = rig.worker();
  rig.write(one, 10);
  let failures = 1;
  rig.files.fault = (operation, path) =>
    operation === "datasync" && path.endsWith(".seg") && failures-- > 0
      ? systemError("EIO")
      : undefined;
  rig.write(one, 10);
  rig.write(one, 10);
  rig.files.bytesMax = rig.files.usedBytes + 1_000;
  rig.write(one, 10);
  rig.files.bytesMax = Number.MAX_SAFE_INTEGER;
  rig.nowMs += 2_000;
  rig.write(one, 10);
  rig.central.isPoison = ({ connection }) => connection === 7;
  for (let i = 0; i < 8; i++) rig.ship(firstLane, { recordsMax: 20 });
  rig.spool.persist();
  rig.write(one, 10);
}

/** Files of room that are as large as some records. */
const roomy = { ...policy, bytesMax: 2 ** 21 };

/** The disk is full from the first record on: segments and marks are in the room that is kept, also those of a later start. */
function inRoom(rig: SpoolRig): void {
  for (let i = 0; i < 3; i++) rig.spool.tick();
  rig.files.bytesMax = rig.files.usedBytes;
  const one = rig.worker();
  for (let i = 0; i < 4; i++) {
    rig.write(one, 12);
    for (const { lane } of rig.lanes()) rig.ship(lane, { answered: i !== 1 });
    rig.spool.persist();
  }
  rig.write(one, 5);
  rig.restart();
  const two = rig.worker();
  rig.write(two, 7);
  for (const { lane } of rig.lanes()) rig.ship(lane);
  rig.spool.persist();
  rig.files.bytesMax = Number.MAX_SAFE_INTEGER;
  rig.write(two, 7);
  rig.spool.persist();
  rig.spool.tick();
}

const dropping = { reasons: ["dropped_oldest"] };

/** Some thousand starts of a spool: seconds, on a busy machine many. */
const walkMaxMs = 90_000;

describe("at every point nothing is lost that was promised", () => {
  const scenarios: readonly [string, Scenario, Expected, "all" | "some"][] = [
    ["as usual", { policy, run: usual }, dropping, "some"],
    [
      "with a disk that fails and fills up",
      { policy, run: unlucky },
      { reasons: ["dropped_oldest", "disk_full", "poison"] },
      "all",
    ],
    [
      "on a full disk, in the room that is kept",
      { policy: roomy, run: inRoom },
      { reasons: [] },
      "all",
    ],
    [
      "synced once a second",
      { policy: { ...policy, durability: "relaxed" }, run: usual },
      { reasons: ["dropped_oldest", "crash"] },
      "some",
    ],
    [
      "keeping samples",
      { policy: { ...policy, whenFull: "sample" }, run: usual },
      { reasons: ["dropped_oldest", "sampled"] },
      "some",
    ],
  ];
  test.each(scenarios)(
    "%s",
    (_, scenario, expected, endingsOf) => {
      const recording = record(scenario);
      expect(recording.operations.length).toBeGreaterThan(50);
      expect([...walk(recording, expected, endingsOf)]).toEqual([]);
    },
    walkMaxMs,
  );
});

type Bug = (files: SpoolFiles) => SpoolFiles;

const seg = (path: string): boolean => path.endsWith(".seg");

/** Which file is behind a handle. */
function withPaths(files: SpoolFiles): { files: SpoolFiles; pathOf: (file: number) => string } {
  const paths = new Map<number, string>();
  const named = (path: string, file: number): number => {
    paths.set(file, path);
    return file;
  };
  return {
    files: {
      ...files,
      create: (path) => named(path, files.create(path)),
      open: (path) => named(path, files.open(path)),
    },
    pathOf: (file) => paths.get(file) ?? "",
  };
}

const unsynced =
  (isMeant: (path: string) => boolean): Bug =>
  (disk) => {
    const { files, pathOf } = withPaths(disk);
    return {
      ...files,
      datasync: (file) => (isMeant(pathOf(file)) ? undefined : files.datasync(file)),
    };
  };

/** What was there before is not written over with zeros. */
const withoutZeros: Bug = (files) => {
  const found = new Set<number>();
  return {
    ...files,
    open: (path) => {
      const file = files.open(path);
      found.add(file);
      return file;
    },
    write: (file, bytes, at) =>
      found.has(file) && bytes.every((byte) => byte === 0)
        ? bytes.byteLength
        : files.write(file, bytes, at),
  };
};

/** The new marks take their place only after the segments they make needless are gone. */
const unlinkFirst: Bug = (files) => {
  let waiting: (() => void)[] = [];
  const flush = (): void => {
    for (const action of waiting.splice(0)) action();
  };
  const after = <A extends unknown[], R>(action: (...args: A) => R): ((...args: A) => R) => {
    return (...args) => {
      flush();
      return action(...args);
    };
  };
  return {
    ...files,
    create: after((path: string) => files.create(path)),
    open: after((path: string) => files.open(path)),
    write: after((file: number, bytes: Uint8Array, at: number) => files.write(file, bytes, at)),
    datasync: after((file: number) => files.datasync(file)),
    rename: (from, to) => {
      if (seg(from)) files.rename(from, to);
      else waiting.push(() => files.rename(from, to));
    },
    syncDirectory: (path) => {
      if (waiting.length > 0) waiting.push(() => files.syncDirectory(path));
      else files.syncDirectory(path);
    },
    unlink: (path) => {
      if (!seg(path)) flush();
      files.unlink(path);
    },
  };
};

/** Shipping believes in an answer before it came. */
function cursorFirst(rig: SpoolRig): void {
  const take = rig.central.take.bind(rig.central);
  rig.central.take = (lane, firstSeq, lastSeq, body) => {
    rig.spool.confirm(lane, lastSeq);
    rig.spool.persist();
    return take(lane, firstSeq, lastSeq, body);
  };
  usual(rig);
}

describe("a planted bug is caught", () => {
  const planted: readonly [string, Scenario, Expected][] = [
    [
      "records acknowledged before they are synced",
      { policy, run: usual, bug: unsynced(seg) },
      dropping,
    ],
    [
      "a new segment whose name is not synced",
      { policy, run: usual, bug: (files) => ({ ...files, syncDirectory: () => undefined }) },
      dropping,
    ],
    [
      "marks that take their place before they are synced",
      { policy, run: usual, bug: unsynced((path) => path.endsWith("marks.tmp")) },
      dropping,
    ],
    [
      "segments unlinked before the marks are durable",
      { policy, run: usual, bug: unlinkFirst },
      dropping,
    ],
    [
      "a segment begun in room that still holds what was there",
      { policy: roomy, run: inRoom, bug: withoutZeros },
      { reasons: [] },
    ],
    ["the cursor moved before the data", { policy, run: cursorFirst }, dropping],
    [
      "marks and records of central in two transactions",
      { policy, run: usual },
      { ...dropping, centralTears: true },
    ],
  ];
  test.each(planted)("%s", (_, scenario, expected) => {
    expect(walk(record(scenario), expected, "all").next().done).toBe(false);
  });
});
