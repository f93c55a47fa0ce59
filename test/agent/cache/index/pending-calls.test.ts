// Calls to the index thread: answered once, bounded in number and in time, and known in full as long as they are open.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PendingCalls } from "../../../../src/agent/cache/index/pending-calls.ts";
import { AccelError } from "../../../../src/core/faults.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const callsMax = 10_000;

test("an answer is given to its own call, and the call is no longer known", async () => {
  const calls = new PendingCalls();
  const [one, two] = [calls.open("stats", null), calls.open("epoch", { epoch: "e" })];
  expect(calls.unanswered()).toEqual([one.message, two.message]);
  expect(one.message.no).not.toBe(two.message.no);
  calls.answer(two.message.no, "yes");
  expect(await two.answer).toBe("yes");
  expect(calls.unanswered()).toEqual([one.message]);
  calls.reject(one.message.no, new AccelError("INDEX_BROKEN", "gone"));
  await expect(one.answer).rejects.toThrow("gone");
  expect(calls.unanswered()).toEqual([]);
  calls.answer(77, "nobody's");
});

test("those that are answered take no room; of those that are not, ten thousand have it", async () => {
  const calls = new PendingCalls();
  for (let no = 0; no < callsMax + 5; no++) {
    const { message, answer } = calls.open("stats", null);
    calls.answer(message.no, no);
    expect(await answer).toBe(no);
  }
  const open = Array.from({ length: callsMax }, () => calls.open("gone", { clearId: "c" }).answer);
  const failed = Promise.allSettled(open);
  expect(calls.unanswered().length).toBe(callsMax);
  await expect(calls.open("gone", { clearId: "c" }).answer).rejects.toThrow("too many");
  expect(calls.unanswered().length).toBe(callsMax);
  calls.rejectAll(new AccelError("INDEX_BROKEN", "over"));
  expect((await failed).every(({ status }) => status === "rejected")).toBe(true);
  expect(calls.unanswered()).toEqual([]);
});

test.each([
  ["why", 5_000],
  ["stats", 5_000],
  ["search", 10_000],
  ["close", 20_000],
  ["clear", 60_000],
  ["epoch", 60_000],
  ["check", 150_000],
] as const)("%s is waited for at most %i ms", async (name, ms) => {
  const calls = new PendingCalls();
  let why = "";
  calls.open(name, null).answer.catch((error: unknown) => (why = String(error)));
  await vi.advanceTimersByTimeAsync(ms - 1);
  expect(why).toBe("");
  await vi.advanceTimersByTimeAsync(1);
  expect(why).toContain(`no answer to ${name} within ${ms} ms`);
  expect(calls.unanswered()).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

test("that all of a clear is gone is waited for without end, and no timer outlives an answer", async () => {
  const calls = new PendingCalls();
  const gone = calls.open("gone", { clearId: "c" });
  const { message, answer } = calls.open("stats", null);
  calls.answer(message.no, 1);
  await answer;
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(86_400_000);
  expect(calls.unanswered()).toEqual([gone.message]);
});
