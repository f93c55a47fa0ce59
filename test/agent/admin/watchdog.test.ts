// The watchdog is fed while every thread moves, and not a moment longer.

import { expect, test } from "vitest";
import { runWatchdog, stuckThreads } from "../../../src/agent/admin/watchdog.ts";
import { silentLog } from "../../../src/base/log.ts";
import { until } from "../../support/until.ts";

test.each([
  [{ a: 1, b: 1 }, { a: 2, b: 2 }, []],
  [{ a: 1, b: 1 }, { a: 2, b: 1 }, ["b"]],
  [{ a: 5 }, { a: 5, b: 5 }, ["a"]],
  [{ a: 1, gone: 1 }, { a: 2 }, []],
  [{ a: 7 }, { a: 1 }, []], // Replaced by a new thread that counts from its own start.
  [{}, {}, []],
])("%j then %j: stuck are %j", (before, after, stuck) => {
  expect(stuckThreads(before, after)).toEqual(stuck);
});

test("it is fed while all move, not while one stands still, and again afterwards", async () => {
  const beats = { main: 0, worker: 0 };
  let looks = 0;
  let isWorkerStuck = false;
  const feeds: number[] = [];
  const stop = new AbortController();
  const running = runWatchdog({
    notify: {
      watchdogMs: 15,
      send: async (...assignments) => {
        expect(assignments).toEqual(["WATCHDOG=1"]);
        feeds.push(looks);
      },
    },
    heartbeats: {
      read: () => {
        looks++;
        beats.main++;
        if (!isWorkerStuck) beats.worker++;
        return { ...beats };
      },
    },
    log: silentLog(),
    stop: stop.signal,
  });
  await until("fed", () => feeds.length > 2);
  isWorkerStuck = true;
  const stuckSince = looks;
  await until("looked at", () => looks > stuckSince + 5);
  expect(feeds.filter((look) => look > stuckSince)).toEqual([]);
  isWorkerStuck = false;
  await until("fed again", () => feeds.some((look) => look > stuckSince + 5));
  stop.abort();
  await running;
});

test("without a watchdog it returns at once, and asks nobody", async () => {
  const asked: string[] = [];
  await runWatchdog({
    notify: { watchdogMs: undefined, send: async () => void asked.push("systemd") },
    heartbeats: {
      read: () => {
        asked.push("heartbeats");
        return {};
      },
    },
    log: silentLog(),
    stop: new AbortController().signal,
  });
  expect(asked).toEqual([]);
});
