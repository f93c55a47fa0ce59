// The worker's end of a lane: numbers before any queue, groups, never waits, tells what it had to drop.

import { MessageChannel, receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import { afterEach, describe, expect, test, vi } from "vitest";
import { LaneWords } from "../../../../src/agent/requests/worker/lane-words.ts";
import {
  openLaneWriter,
  type LaneWriter,
} from "../../../../src/agent/requests/worker/lane-writer.ts";
import { requestRecord } from "../../../support/request-records.ts";
import { until } from "../../../support/until.ts";

type Taken = {
  type: string;
  firstSeq: number;
  count: number;
  through?: number;
  overMs?: number;
  reason?: string;
  ids?: number[];
};

const open: MessagePort[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const port of open.splice(0)) port.close();
});

/** A lane whose spool thread is this test; it is awake unless `rests`. */
function lane(
  reserved: number,
  groupMs = 5,
  blocks = false,
  rests = false,
): { writer: LaneWriter; words: LaneWords; take: () => Taken[]; port: MessagePort } {
  const { port1, port2 } = new MessageChannel();
  open.push(port1, port2);
  const shared = LaneWords.allocate();
  const words = new LaneWords(shared);
  words.reserved = reserved;
  const take = (): Taken[] => {
    const taken: Taken[] = [];
    for (
      let next = receiveMessageOnPort(port1);
      next !== undefined;
      next = receiveMessageOnPort(port1)
    ) {
      const { payload, ...message }: Taken & { payload?: Uint8Array } = next.message;
      if (payload === undefined) taken.push(message);
      else {
        words.taken += payload.byteLength;
        const lines = Buffer.from(payload).toString("utf8").trimEnd().split("\n");
        taken.push({ ...message, ids: lines.map((line) => JSON.parse(line).connection) });
      }
    }
    return taken;
  };
  const writer = openLaneWriter({ shared, groupMs, blocks }, port2);
  if (!rests) {
    words.woken = 1;
    writer.wake();
    writer.wake(); // It looks whether the first one is answered.
    expect(take()).toEqual([{ type: "wake" }]);
  }
  return { writer, words, take, port: port1 };
}

const accept = (writer: LaneWriter, from: number, to: number): void => {
  for (let id = from; id <= to; id++) writer.accept(requestRecord(id));
};

test("records of one moment are one group, numbered at once", async () => {
  const { writer, words, take } = lane(100);
  accept(writer, 1, 3);
  expect(words.accepted).toBe(3);
  const groups = await until("a group", () => {
    const taken = take();
    return taken.length > 0 && taken;
  });
  expect(groups).toEqual([{ type: "group", firstSeq: 1, count: 3, ids: [1, 2, 3] }]);
});

test("a full group does not wait", () => {
  const { writer, take } = lane(10_000, 60_000);
  accept(writer, 1, 1_100);
  const groups = take();
  expect(groups.length).toBeGreaterThanOrEqual(2);
  expect(groups.flatMap(({ ids }) => ids)).toEqual(
    Array.from({ length: groups.reduce((sum, { count }) => sum + count, 0) }, (_, i) => i + 1),
  );
  for (const { count } of groups) expect(count).toBeLessThanOrEqual(512);
});

test("beyond what is reserved records are dropped, and told of when there is room again", async () => {
  const { writer, words, take } = lane(4);
  accept(writer, 1, 9);
  expect(words.accepted).toBe(4);
  expect(words.waiting).toBe(5);
  words.reserved = 20;
  accept(writer, 10, 11);
  const taken: Taken[] = [];
  await until("everything", () => taken.push(...take()) === 3);
  expect(taken).toEqual([
    { type: "group", firstSeq: 1, count: 4, ids: [1, 2, 3, 4] },
    { type: "gap", firstSeq: 5, count: 5, reason: "behind" },
    { type: "group", firstSeq: 10, count: 2, ids: [10, 11] },
  ]);
  expect(words.accepted).toBe(11);
  expect(words.waiting).toBe(0);
});

test("what was dropped is told of even when nothing comes any more", async () => {
  const { writer, words, take } = lane(1, 1);
  accept(writer, 1, 3);
  await until("the group", () => take().length === 1);
  words.reserved = 10;
  const [gap] = await until("the gap", () => {
    const taken = take();
    return taken.length > 0 && taken;
  });
  expect(gap).toEqual({ type: "gap", firstSeq: 2, count: 2, reason: "behind" });
});

test("however long there was no room, records are handed over as soon as ever", () => {
  vi.useFakeTimers();
  const { writer, words, take } = lane(4);
  accept(writer, 1, 9);
  vi.advanceTimersByTime(20_000);
  take();
  words.reserved = 20;
  accept(writer, 10, 11);
  vi.advanceTimersByTime(5);
  expect(take()).toEqual([
    { type: "gap", firstSeq: 5, count: 5, reason: "behind" },
    { type: "group", firstSeq: 10, count: 2, ids: [10, 11] },
  ]);
});

test("however long there was no room, what was dropped is told of soon after there is", () => {
  vi.useFakeTimers();
  const { writer, words, take } = lane(4);
  accept(writer, 1, 9);
  vi.advanceTimersByTime(20_000);
  take();
  words.reserved = 20;
  vi.advanceTimersByTime(50);
  expect(take()).toEqual([{ type: "gap", firstSeq: 5, count: 5, reason: "behind" }]);
});

test("a spool thread that takes nothing costs bounded memory", () => {
  const { writer, words, take } = lane(1_000_000, 60_000);
  const large = requestRecord(1, { uri_path: `/${"x".repeat(8_000)}` });
  for (let i = 0; i < 3_000; i++) writer.accept(large);
  expect(words.accepted).toBeLessThan(2_200);
  expect(words.waiting).toBe(3_000 - words.accepted);
  take();
  writer.accept(large);
  expect(words.waiting).toBe(0);
});

test("a record that is too large for any frame becomes a gap of its own", () => {
  const { writer, take } = lane(10);
  accept(writer, 1, 1);
  writer.accept(requestRecord(2, { user_agent: "x".repeat(300_000) }));
  expect(take()).toEqual([
    { type: "group", firstSeq: 1, count: 1, ids: [1] },
    { type: "gap", firstSeq: 2, count: 1, reason: "oversize" },
  ]);
});

test("close hands over everything and waits for the spool", async () => {
  const { writer, take, port } = lane(2, 60_000);
  accept(writer, 1, 3);
  let isClosed = false;
  const closed = writer.close().then(() => (isClosed = true));
  expect(take().map(({ type, count }) => [type, count])).toEqual([
    ["group", 2],
    ["gap", 1],
    ["end", undefined],
  ]);
  expect(isClosed).toBe(false);
  port.postMessage({ type: "ended" });
  await closed;
  accept(writer, 4, 4);
});

test("a spool thread that is gone is nothing to wait for", async () => {
  const { writer, port } = lane(10);
  accept(writer, 1, 1);
  port.close();
  await expect(writer.close()).resolves.toBeUndefined();
  expect(() => accept(writer, 2, 2)).not.toThrow();
});

test("a lane that rests gives numbers back, and believes the shared word when that is answered", async () => {
  const { writer, words, take } = lane(3_000);
  accept(writer, 1, 3);
  const taken: Taken[] = [];
  const [, quiet] = await until("quiet", () => {
    taken.push(...take());
    return taken.length === 2 && taken;
  });
  expect(quiet).toEqual({ type: "quiet", through: 3 + 16, rests: true });
  // Not answered: the word still says 3,000, and what is beyond the promise is kept back.
  accept(writer, 4, 300);
  expect(words.accepted).toBe(19);
  expect([words.waiting, words.kept]).toEqual([0, 300 - 19]);
  words.reserved = 20_000;
  words.quieted = 1;
  words.woken = 2;
  accept(writer, 301, 301);
  expect(words.waiting).toBe(0);
  expect(words.accepted).toBe(301);
  taken.length = 0;
  await until("all of them", () => {
    taken.push(...take());
    return taken.flatMap(({ ids = [] }) => ids).length === 298;
  });
  expect(taken.map(({ type }) => type)).not.toContain("gap");
  expect(taken.flatMap(({ ids = [] }) => ids)).toEqual(
    Array.from({ length: 298 }, (_, i) => i + 4),
  );
});

test("a busy lane to which little comes gives back what a burst had reserved, and goes on", async () => {
  const { writer, words, take } = lane(20_000);
  accept(writer, 1, 3);
  const taken: Taken[] = [];
  const kept = await until("quiet", () => {
    accept(writer, words.accepted + 1, words.accepted + 1);
    taken.push(...take());
    return taken.find(({ type }) => type === "quiet");
  });
  expect(kept).toMatchObject({ rests: false });
  const { through = 0 } = kept;
  expect(through).toBeGreaterThanOrEqual(words.accepted);
  expect(through).toBeLessThanOrEqual(words.accepted + 20_000 / 2);
  expect(writer.isAwake).toBe(true);
  // Until that is answered the shared word may be out of date.
  accept(writer, words.accepted + 1, through + 10);
  expect([words.accepted, words.waiting]).toEqual([through, 10]);
  words.quieted = 1;
});

describe("a lane that nothing has come to", () => {
  test("has no numbers; the first request wakes it and waits for them", async () => {
    const { writer, words, take } = lane(0, 5, false, true);
    expect(writer.isAwake).toBe(false);
    const begun = writer.begins();
    expect(begun).toBeInstanceOf(Promise);
    expect(take()).toEqual([{ type: "wake" }]);
    words.reserved = 256;
    words.woken = 1;
    await begun;
    expect(writer.isAwake).toBe(true);
    expect(writer.begins()).toBeUndefined();
    accept(writer, 1, 1);
    expect(words.accepted).toBe(1);
  });

  test("a spool thread that does not answer holds nobody up for long, and loses nothing of it", async () => {
    const { writer, words, take } = lane(0, 5, false, true);
    await writer.begins();
    accept(writer, 1, 3);
    expect([words.accepted, words.waiting, words.kept]).toEqual([0, 0, 3]);
    words.reserved = 256;
    words.woken = 1;
    const taken: Taken[] = [];
    await until("their group", () => {
      expect(words.seen).toBe(3); // Whoever adds up meanwhile counts none of them twice.
      taken.push(...take());
      return taken.length > 1;
    });
    expect(taken).toEqual([
      { type: "wake" },
      { type: "group", firstSeq: 1, count: 3, overMs: expect.any(Number), ids: [1, 2, 3] },
    ]);
    expect(taken[1]?.overMs).toBeGreaterThan(50); // They waited longer than a group does.
    expect([words.accepted, words.waiting, words.kept]).toEqual([3, 0, 0]);
  });

  test("gives everything back when the connection that woke it asked for nothing", async () => {
    const { writer, words, take } = lane(0, 5, false, true);
    writer.wake();
    words.reserved = 256;
    words.woken = 1;
    const taken: Taken[] = [];
    await until("quiet", () => {
      taken.push(...take());
      return taken.length > 1;
    });
    expect(taken).toEqual([{ type: "wake" }, { type: "quiet", through: 0, rests: true }]);
  });

  test.each([
    [
      "in time",
      2,
      { type: "group", firstSeq: 1, count: 2, overMs: expect.any(Number), ids: [1, 2] },
    ],
    ["too late", 0, { type: "gap", firstSeq: 1, count: 2, reason: "behind" }],
  ])("is closed when it is awake; what was kept back: %s", async (_, reserved, told) => {
    const { writer, words, take, port } = lane(0, 5, false, true);
    accept(writer, 1, 2);
    words.reserved = reserved;
    words.woken = reserved > 0 ? 1 : 0;
    const closed = writer.close();
    const taken: Taken[] = [];
    await until("the end", () => {
      taken.push(...take());
      return taken.length >= 3;
    });
    expect(taken).toEqual([{ type: "wake" }, told, { type: "end" }]);
    port.postMessage({ type: "ended" });
    await closed;
  });

  test("what waits goes on when the spool thread is gone", async () => {
    const { writer, port } = lane(0, 5, false, true);
    const begun = writer.begins();
    port.close();
    await begun;
    await until("the port closed", () => writer.begins() === undefined);
    expect(writer.isAwake).toBe(false);
  });
});

test("of a resting lane as many requests begin at once as it has numbers; others wait", async () => {
  const { writer, words, take } = lane(1_000);
  accept(writer, 1, 1);
  const taken: Taken[] = [];
  await until("quiet", () => {
    taken.push(...take());
    return taken.some(({ type }) => type === "quiet");
  });
  words.reserved = 17;
  words.quieted = 1;
  const begun = Array.from({ length: 18 }, () => writer.begins());
  expect(begun.slice(0, 16)).toEqual(Array.from({ length: 16 }, () => undefined));
  expect(begun.slice(16).every((one) => one instanceof Promise)).toBe(true);
  words.reserved = 1_000;
  words.woken = 2;
  await Promise.all(begun.map(async (one) => one));
  accept(writer, 2, 19);
  expect([words.accepted, words.waiting]).toEqual([19, 0]);
});

test("a lane with few numbers left hands over before its time, so that more are reserved", () => {
  const { writer, take } = lane(256, 60_000);
  accept(writer, 1, 100);
  expect(take().map(({ count }) => count)).toEqual([64]);
});

describe("where requests claim room first", () => {
  test("what was claimed gets its number; others do not take it", () => {
    const { writer, words, take } = lane(3, 60_000, true);
    expect([writer.claim(), writer.claim(), writer.claim(), writer.claim()]).toEqual([
      true,
      true,
      true,
      false,
    ]);
    accept(writer, 90, 91);
    expect(words.waiting).toBe(2);
    for (let id = 1; id <= 3; id++) writer.accept(requestRecord(id), true);
    expect(words.accepted).toBe(3);
    words.reserved = 4;
    expect(writer.claim()).toBe(true);
    accept(writer, 92, 92);
    expect(words.waiting).toBe(3);
    words.reserved = 10;
    accept(writer, 93, 93);
    expect(words.waiting).toBe(0);
    writer.accept(requestRecord(4), true);
    void writer.close();
    expect(take()).toEqual([
      { type: "group", firstSeq: 1, count: 3, ids: [1, 2, 3] },
      { type: "gap", firstSeq: 4, count: 3, reason: "blocked" },
      { type: "group", firstSeq: 7, count: 2, ids: [93, 4] },
      { type: "end" },
    ]);
  });

  test("what the spool took back is not claimed any more", () => {
    const { writer, words } = lane(100, 60_000, true);
    expect(writer.claim()).toBe(true);
    words.reserved = 0;
    expect(writer.claim()).toBe(false);
    writer.accept(requestRecord(1), true);
    expect(words.accepted).toBe(1);
  });

  test("nothing can be claimed of a spool thread that is gone", async () => {
    const { writer, port } = lane(100, 60_000, true);
    port.close();
    await until("the port closed", () => !writer.claim());
    expect([writer.claim(), writer.claim()]).toEqual([false, false]);
  });
});
