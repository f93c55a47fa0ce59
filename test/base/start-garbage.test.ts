// The garbage of a start is collected once, while the thread is idle, and never without Node's leave.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { collectStartGarbage, timesToForget } from "../../src/base/start-garbage.ts";
import { tempDir } from "../support/temp-dir.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("it is collected at the first look, and never again", () => {
  const collect = vi.fn();
  using _looks = collectStartGarbage({ firstMs: 5_000, collect });
  vi.advanceTimersByTime(4_999);
  expect(collect).not.toHaveBeenCalled();
  vi.advanceTimersByTime(60_000);
  expect(collect.mock.calls).toEqual([[{ type: "major", flavor: "last-resort" }]]);
});

test("what only the start ran is forgotten by several collections, at looks that find the thread idle", () => {
  const collect = vi.fn();
  let isIdle = true;
  using _looks = collectStartGarbage({
    firstMs: 5_000,
    times: timesToForget,
    isIdle: () => isIdle,
    collect,
  });
  vi.advanceTimersByTime(6_000);
  expect(collect).toHaveBeenCalledTimes(2);
  isIdle = false;
  vi.advanceTimersByTime(60_000);
  expect(collect).toHaveBeenCalledTimes(2);
  isIdle = true;
  vi.advanceTimersByTime(60_000);
  expect(collect).toHaveBeenCalledTimes(timesToForget);
  expect(vi.getTimerCount()).toBe(0);
});

test("the code of the start is written before any of it is forgotten, once, also of a thread that works", () => {
  const calls: string[] = [];
  let isIdle = false;
  using _looks = collectStartGarbage({
    firstMs: 5_000,
    times: timesToForget,
    isIdle: () => isIdle,
    collect: () => void calls.push("collect"),
    keepCode: () => void calls.push("keep"),
  });
  vi.advanceTimersByTime(4_999);
  expect(calls).toEqual([]);
  vi.advanceTimersByTime(10_000);
  expect(calls).toEqual(["keep"]);
  isIdle = true;
  vi.advanceTimersByTime(60_000);
  expect(calls).toEqual(["keep", "collect", "collect", "collect", "collect"]);
});

test("a thread that works is left alone until it rests", () => {
  const collect = vi.fn();
  let isIdle = false;
  using _looks = collectStartGarbage({ firstMs: 5_000, isIdle: () => isIdle, collect });
  vi.advanceTimersByTime(60_000);
  expect(collect).not.toHaveBeenCalled();
  isIdle = true;
  vi.advanceTimersByTime(1_000);
  expect(collect).toHaveBeenCalledOnce();
});

test("who ends meanwhile looks no more", () => {
  const collect = vi.fn();
  const looks = collectStartGarbage({ firstMs: 5_000, isIdle: () => false, collect });
  vi.advanceTimersByTime(6_000);
  looks[Symbol.dispose]();
  expect(vi.getTimerCount()).toBe(0);
});

test("where Node runs without --expose-gc, nobody looks", () => {
  expect(globalThis.gc).toBeUndefined();
  using _looks = collectStartGarbage({ firstMs: 5_000 });
  expect(vi.getTimerCount()).toBe(0);
});

test("a process that is killed has left the code of its start where NODE_COMPILE_CACHE says", async () => {
  vi.useRealTimers();
  using dir = tempDir();
  const child = spawn(
    process.execPath,
    ["--expose-gc", join(import.meta.dirname, "start-garbage-child.ts")],
    { env: { ...process.env, NODE_COMPILE_CACHE: dir.path }, stdio: ["ignore", "pipe", "inherit"] },
  );
  await once(child.stdout, "data");
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
  const [made = ""] = readdirSync(dir.path);
  expect(readdirSync(join(dir.path, made))).not.toEqual([]);
});
