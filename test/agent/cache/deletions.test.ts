// Deletion in the background: as fast as it has to be, with rests, and out of the way of a clear.

import { expect, test } from "vitest";
import { IndexKeeper } from "../../../src/agent/cache/index-keeper.ts";
import { RowPace } from "../../../src/agent/cache/row-pace.ts";
import { SharedHeader } from "../../../src/agent/cache/shared-header.ts";
import type { Write } from "../../../src/agent/cache/writes.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { keyOf, metaOf } from "./rig.ts";

const rows = 500;

test("a host with time to spare is used for 43,000 rows a second, one without as it is", () => {
  let nowMs = 5_000;
  let restedMs = 0;
  const pace = new RowPace({
    elapsedMs: () => nowMs,
    rest: (ms) => {
      nowMs += ms;
      restedMs += ms;
    },
  });
  const work = (pieces: number, ms: number): number => {
    const beganMs = nowMs;
    for (let piece = 0; piece < pieces; piece++) {
      nowMs += ms;
      pace.did(43);
    }
    return nowMs - beganMs;
  };
  pace.begin();
  expect(work(1_000, 0.4)).toBeCloseTo(1_000, 0);
  expect(restedMs).toBeCloseTo(600, 0);
  nowMs += 60_000;
  pace.begin();
  expect(work(1_000, 1.5)).toBeCloseTo(1_500, 0);
  expect(restedMs).toBeCloseTo(600, 0);
  // What was behind by half a second is made up for.
  expect(work(2_000, 0.5)).toBeCloseTo(1_500, 0);
});

test("a step ends early for a clear that is asked for, and the next goes on from there", async () => {
  using dir = tempDir();
  const header = new SharedHeader(SharedHeader.allocate());
  let rests = 0;
  const keeper = openKeeper(dir.path, header, () => {
    rests++;
    if (rests === 3) header.noteClearAsked();
  });
  await keeper.open();
  const { index } = keeper;
  if (index === undefined) throw new Error("the index did not open");
  index.write(Array.from({ length: rows }, (_, no) => commitOf(no, index.clears.newest)));
  const scope = { domain: "a.test", host: null };
  const ids = index.hide(scope);
  const clearNo = index.record({ ...scope, clearId: "all", seq: 0, patterns: null });
  index.apply(clearNo, 0, { ids, widened: false, invisibleMs: 0 });
  const gone = index.gone(clearNo);
  index.step();
  const left = index.entries.count;
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThan(rows);
  index.step();
  expect(index.entries.count).toBe(0);
  expect(await gone).toMatchObject({ removed: rows });
  await keeper.close(() => Promise.resolve(true));
});

/** Time goes on by resting alone. */
function openKeeper(directory: string, header: SharedHeader, onRest: () => void): IndexKeeper {
  let nowMs = 0;
  return new IndexKeeper({
    directory,
    header,
    diskMax: 2 ** 30,
    clock: {
      nowS: () => 1_900_000_000,
      elapsedMs: () => nowMs,
      rest: (ms) => {
        nowMs += ms;
        onRest();
      },
    },
    facts: { epoch: null, clearSeq: 0, clearNo: 0, opening: null },
    events: {
      opened: () => undefined,
      dropped: (reason) => expect.unreachable(reason),
      failed: (reason) => expect.unreachable(reason),
    },
  });
}

function commitOf(no: number, sourceNo: number): Write {
  const key = keyOf({ path: `/${no}` });
  return { kind: "commit", candidate: { key, meta: metaOf({ sourceNo }), body: null, size: 0 } };
}
