// One body for visitors of different pace. Chunks are larger than half the window, so that two of them do not fit.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SharedBody } from "../../../../src/agent/accelerator/cached/shared-body.ts";

const never = new AbortController().signal;
const lagMs = 250;
const [one, two] = ["1", "2"].map((text) => Buffer.alloc(200 * 1024, text));

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

async function* restFrom(fromByte: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`rest from ${fromByte}`);
}

/** A body of two pieces: the fast reader has both and waits for more, the slow one has read none. */
async function setUp(body: SharedBody) {
  if (one === undefined || two === undefined) throw new Error("no pieces");
  const [fast, slow] = [body.read(never), body.read(never)];
  await body.append(one);
  let hasRoom = false;
  const appended = body.append(two).then(() => (hasRoom = true));
  expect([(await fast.next()).value, (await fast.next()).value]).toEqual([one, two]);
  const more = fast.next();
  return { fast, slow, more, appended, hasRoom: () => hasRoom };
}

test("who holds up another leaves the stream after a quarter of a second, and gets the rest from the store", async () => {
  const body = new SharedBody(restFrom);
  const { slow, more, appended, hasRoom } = await setUp(body);
  await vi.advanceTimersByTimeAsync(lagMs - 1);
  expect([hasRoom(), body.isLeft]).toEqual([false, false]);
  await vi.advanceTimersByTimeAsync(1);
  await appended;
  expect(body.isLeft).toBe(true);
  expect(body.isJoinable).toBe(false);
  expect(String((await slow.next()).value)).toBe("rest from 0");
  body.end();
  expect((await more).done).toBe(true);
});

test("where nothing is stored the slowest sets the pace, and nobody leaves", async () => {
  const body = new SharedBody(restFrom);
  body.withoutStore();
  const { slow, more, appended, hasRoom } = await setUp(body);
  await vi.advanceTimersByTimeAsync(10 * lagMs);
  expect([hasRoom(), body.isLeft]).toEqual([false, false]);
  expect((await slow.next()).value).toEqual(one);
  await appended;
  expect((await slow.next()).value).toEqual(two);
  body.end();
  expect([(await slow.next()).done, (await more).done]).toEqual([true, true]);
});
