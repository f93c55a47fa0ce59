// Deletion in the background: as fast as it has to be, with rests, and out of the way of a clear.

import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ClearGone } from "../../../../src/agent/cache/clearing/clears.ts";
import { IndexKeeper } from "../../../../src/agent/cache/index/index-keeper.ts";
import { objectPath } from "../../../../src/agent/cache/index/object-files.ts";
import type { OpenIndex } from "../../../../src/agent/cache/index/open-index.ts";
import { SharedHeader } from "../../../../src/agent/cache/index/shared-header.ts";
import type { Write } from "../../../../src/agent/cache/index/writes.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { keyOf, metaOf } from "../rig.ts";
import type { IndexClock } from "../../../../src/agent/cache/index/clock.ts";
import { RowPace } from "../../../../src/agent/cache/clearing/deletions.ts";

const rows = 5_000;

/** Pieces of 44 rows that take `ms` each; how long all of them took, rests included. */
function paced(lookupsAtPiece: (no: number) => number = () => 0) {
  let nowMs = 5_000;
  let restedMs = 0;
  let done = 0;
  const rest = (ms: number): void => {
    nowMs += ms;
    restedMs += ms;
  };
  const pace = new RowPace({ elapsedMs: () => nowMs, rest }, () => lookupsAtPiece(done));
  return {
    begin: (afterMs = 0): void => {
      nowMs += afterMs;
      pace.begin();
    },
    pass: (ms: number): void => void (nowMs += ms),
    work: (pieces: number, ms: number): number => {
      const beganMs = nowMs;
      for (let piece = 0; piece < pieces; piece++) {
        nowMs += ms;
        done++;
        pace.did(44);
      }
      return nowMs - beganMs;
    },
    rested: () => restedMs,
  };
}

test("a host with time to spare is used for 44,000 rows a second, one without as it is", () => {
  const { begin, pass, work, rested } = paced();
  begin();
  expect(work(1_000, 0.4)).toBeCloseTo(1_000, 0);
  expect(rested()).toBeCloseTo(600, 0);
  begin(60_000);
  expect(work(1_000, 1.2)).toBeCloseTo(1_200, 0);
  expect(rested()).toBeCloseTo(600, 0);
  // What is behind by a fifth of a second is made up for, of a minute only half a second.
  expect(work(1_000, 0.5)).toBeCloseTo(800, 0);
  pass(60_000);
  expect(work(2_000, 0.5)).toBeCloseTo(1_500, -1);
});

test("beside visitors it is 10,000 rows a second, and nothing is made up for; without them it is fast again", () => {
  const visitedUntil = 1_000;
  const { begin, pass, work } = paced((piece) => Math.min(piece, visitedUntil));
  begin();
  expect(work(200, 0.4)).toBeGreaterThan(250);
  expect(work(500, 0.4)).toBeCloseTo((500 * 44) / 10, 0);
  pass(60_000);
  expect(work(300, 0.4)).toBeCloseTo((300 * 44) / 10, -1);
  work(300, 0.4); // The last visitor is among them.
  expect(work(1_000, 0.4)).toBeCloseTo(1_000, 0);
});

test("a step ends early for a clear that is asked for, and the next goes on from there", async () => {
  using dir = tempDir();
  const header = new SharedHeader(SharedHeader.allocate());
  let rests = 0;
  await using opened = await openFilled(dir.path, header, () => {
    rests++;
    if (rests === 3) header.noteClearAsked();
  });
  const { index } = opened;
  const gone = clearAll(index);
  index.step();
  const left = index.entries.count;
  expect(left).toBeGreaterThan(rows - 1_000);
  expect(left).toBeLessThan(rows);
  while (index.unfinishedClears > 0) {
    const before = index.entries.count;
    index.step();
    expect(index.entries.count).toBeLessThan(before);
  }
  expect(await gone).toMatchObject({ removed: rows });
});

test("a step that a clear waits for is brief, and clears without end do not stop it", async () => {
  using dir = tempDir();
  const header = new SharedHeader(SharedHeader.allocate());
  await using opened = await openFilled(dir.path, header, () => header.noteClearAsked());
  const { index, nowMs } = opened;
  const gone = clearAll(index);
  const beganMs = nowMs();
  for (let steps = 1; index.unfinishedClears > 0; steps++) {
    index.step(true);
    expect(nowMs() - beganMs).toBeLessThan(steps * 33);
    expect(steps).toBeLessThan(rows / 500);
  }
  expect(await gone).toMatchObject({ removed: rows });
});

test("files go after their rows and before it is told that all is gone", async () => {
  using dir = tempDir();
  const header = new SharedHeader(SharedHeader.allocate());
  await using opened = await openFilled(dir.path, header, () => undefined, 200);
  const { index } = opened;
  expect(filesIn(dir.path)).toBe(200);
  let isGone = false;
  const gone = clearAll(index).finally(() => (isGone = true));
  for (let step = 0; index.unfinishedClears > 0; step++) {
    await Promise.resolve();
    expect(isGone).toBe(false);
    index.step(true);
    expect(step).toBeLessThan(100);
  }
  expect(filesIn(dir.path)).toBe(0);
  expect(await gone).toMatchObject({ removed: rows });
});

function clearAll(index: OpenIndex): Promise<ClearGone> {
  const scope = { domain: "a.test", host: null };
  const ids = index.hideAll(index.servableIds(scope));
  expect(ids).toHaveLength(rows);
  const clearNo = index.record({ ...scope, clearId: "all", seq: 0, patterns: null });
  index.apply(clearNo, 0, { ids, widened: false, invisibleMs: 0 });
  const gone = index.gone(clearNo);
  if (gone === undefined) throw new Error("no deletion is under way");
  return gone;
}

/** Of its rows the first have a file. Time goes on by resting alone. */
async function openFilled(
  directory: string,
  header: SharedHeader,
  onRest: () => void,
  files = 0,
): Promise<{ readonly index: OpenIndex; readonly nowMs: () => number } & AsyncDisposable> {
  let nowMs = 0;
  const keeper = openKeeper(directory, header, {
    nowS: () => 1_900_000_000,
    elapsedMs: () => nowMs,
    rest: (ms) => {
      nowMs += ms;
      onRest();
    },
  });
  await keeper.open();
  const { index } = keeper;
  if (index === undefined) throw new Error("the index did not open");
  for (let no = 0; no < files; no++) writeFileSync(objectPath(directory, objectName(no)), "body");
  index.write(
    Array.from({ length: rows }, (_, no) => commitOf(no, index.clears.newest, no < files)),
  );
  return {
    index,
    nowMs: () => nowMs,
    [Symbol.asyncDispose]: () => keeper.close(() => Promise.resolve(true)),
  };
}

function openKeeper(directory: string, header: SharedHeader, clock: IndexClock): IndexKeeper {
  return new IndexKeeper({
    directory,
    header,
    diskMax: 2 ** 30,
    clock,
    facts: { epoch: null, clearSeq: 0, clearNo: 0, opening: null },
    events: {
      opened: () => undefined,
      dropped: (reason) => expect.unreachable(reason),
      failed: (reason) => expect.unreachable(reason),
    },
  });
}

function commitOf(no: number, sourceNo: number, hasFile: boolean): Write {
  const body = { kind: "file", object: objectName(no), digest: Buffer.alloc(32) } as const;
  const of = {
    key: keyOf({ path: `/${no}` }),
    meta: metaOf({ sourceNo }),
    size: 4,
    invalidationMark: null,
  };
  return { kind: "commit", candidate: { ...of, body: hasFile ? body : null } };
}

const objectName = (no: number): string => no.toString(16).padStart(32, "0");

function filesIn(directory: string): number {
  const entries = readdirSync(join(directory, "objects"), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).length;
}
