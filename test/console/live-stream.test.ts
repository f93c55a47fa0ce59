// The stream of changes as pages follow it: a central that hangs is lost as one is that closes, and comes again by itself.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openLiveStream } from "../../src/console/live-stream.ts";
import type { Told } from "../../src/console/topics.ts";

class FakeSource extends EventTarget {
  isClosed = false;

  close(): void {
    this.isClosed = true;
  }

  say(event: string, data: object = {}): void {
    if (!this.isClosed)
      this.dispatchEvent(Object.assign(new Event(event), { data: JSON.stringify(data) }));
  }
}

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }));
afterEach(() => void vi.useRealTimers());

function follow() {
  const told: Told[] = [];
  const sources: FakeSource[] = [];
  const close = openLiveStream(
    (one) => void told.push(one),
    () => {
      const source = new FakeSource();
      sources.push(source);
      return source;
    },
  );
  const newest = (): FakeSource => {
    const source = sources.at(-1);
    if (source === undefined) throw new Error("nothing was opened");
    return source;
  };
  return { told, sources, newest, close };
}

const lostSince = (sinceMs: number, isSilent: boolean) => ({
  kind: "live",
  isLive: false,
  lost: { sinceMs, isSilent },
});

test("a stream that beats stays; 35 s after the last word it is lost, and another one is opened", () => {
  const { told, sources, newest } = follow();
  newest().say("hello", { username: "ada" });
  for (let no = 0; no < 4; no++) {
    vi.advanceTimersByTime(16_000);
    newest().say("beat");
  }
  expect(told).toEqual([{ kind: "live", isLive: true }]);
  vi.advanceTimersByTime(34_999);
  expect(told).toHaveLength(1);
  vi.advanceTimersByTime(1);
  expect(told.slice(1)).toEqual([lostSince(1_064_000, true)]);
  expect(sources[0]?.isClosed).toBe(true);
  vi.advanceTimersByTime(1_000);
  expect(sources).toHaveLength(2);
  newest().say("hello", { username: "ada" });
  expect(told.slice(2)).toEqual([
    { kind: "live", isLive: true },
    { kind: "changed", topics: expect.arrayContaining(["clears", "fleet"]) },
  ]);
});

test("an opening without hello is given up after 10 s, and tried again, later each time; what it is lost since stays", () => {
  const { told, sources } = follow();
  const openedAt: number[] = [];
  for (let seconds = 0; seconds < 100; seconds++) {
    if (sources.length > openedAt.length) openedAt.push(seconds);
    vi.advanceTimersByTime(1_000);
  }
  expect(openedAt).toEqual([0, 11, 23, 36, 51, 71, 91]);
  expect(new Set(told.map((one) => JSON.stringify(one)))).toEqual(
    new Set([JSON.stringify(lostSince(1_000_000, true))]),
  );
  expect(sources.slice(0, -1).every(({ isClosed }) => isClosed)).toBe(true);
});

test("a stream that is cut is told at once; each event counts as a word; one that says bye is over", () => {
  const { told, sources, newest, close } = follow();
  newest().say("hello", { username: "ada" });
  vi.advanceTimersByTime(30_000);
  newest().say("changed", { topics: ["clears"], domain: "www.example.com" });
  vi.advanceTimersByTime(30_000);
  newest().say("error");
  expect(told.slice(1)).toEqual([
    { kind: "changed", topics: ["clears"], domain: "www.example.com" },
    lostSince(1_030_000, false),
  ]);
  vi.advanceTimersByTime(1_000);
  newest().say("hello", { username: "ada" });
  newest().say("bye", { reason: "revoked" });
  expect(told.at(-1)).toEqual({ kind: "bye" });
  vi.advanceTimersByTime(600_000);
  expect(sources).toHaveLength(2);
  close();
});
