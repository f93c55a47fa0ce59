// What counts as a burst, after which a watch looks at everything anew. The kernel's part is played here, and the clock is the test's.

import type { FSWatcher } from "chokidar";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openChokidar, SiteWatch } from "../../../src/agent/viewset/site-watch.ts";

const windowMs = 2_000;
const gatherMs = 50;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function setUp() {
  const opened: FSWatcher[] = [];
  const told: (readonly string[] | undefined)[] = [];
  const failed: string[] = [];
  const watch = new SiteWatch({
    paths: ["/site"],
    followsLinks: false,
    isIgnored: () => false,
    onChanges: (paths) => told.push(paths),
    onPolling: () => undefined,
    onError: (reason) => failed.push(reason),
    openWatcher: (_, options) => {
      const watcher = openChokidar([], options);
      opened.push(watcher);
      queueMicrotask(() => watcher.emit("ready"));
      return watcher;
    },
  });
  await watch.ready();
  return {
    watch,
    opened,
    told,
    failed,
    /** So many files change within one window. */
    change: async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) opened.at(-1)?.emit("add", `/site/${i}`);
      await vi.advanceTimersByTimeAsync(windowMs);
    },
  };
}

test("what changes is told at once, gathered for a moment; a thousand changes one by one, more of them as anything", async () => {
  const { watch, opened, told } = await setUp();
  await using _ = watch;
  for (const path of ["/site/a", "/site/b", "/site/a"]) opened[0]?.emit("change", path);
  await vi.advanceTimersByTimeAsync(gatherMs - 1);
  expect(told).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(told).toEqual([["/site/a", "/site/b"]]);
  for (const count of [1_000, 1_001]) {
    for (let i = 0; i < count; i++) opened[0]?.emit("unlink", `/site/${i}`);
    await vi.advanceTimersByTimeAsync(gatherMs);
  }
  expect(told.slice(1).map((paths) => paths?.length)).toEqual([1_000, undefined]);
});

test("after more than 4,000 changes in two windows that follow one another everything is looked at anew, and told", async () => {
  const { watch, opened, told, change } = await setUp();
  await using _ = watch;
  await change(2_000);
  await change(2_000);
  expect(opened.length).toBe(1);
  await change(2_001);
  expect(opened.length).toBe(2);
  expect(told.at(-1)).toBeUndefined();
});

test("what changes all day is no burst", async () => {
  const { watch, opened, change } = await setUp();
  await using _ = watch;
  for (let i = 0; i < 20; i++) {
    await change(2_500);
    await change(1);
  }
  expect(opened.length).toBe(1);
});

test("a file that takes the place of a link while the link is read has changed; what else cannot be read is a failure", async () => {
  const { watch, opened, told, failed } = await setUp();
  await using _ = watch;
  const error = (code: string, syscall: string): Error =>
    Object.assign(new Error(`${code}: ${syscall} '/site/a'`), { code, syscall, path: "/site/a" });
  opened[0]?.emit("error", error("EINVAL", "readlink"));
  await vi.advanceTimersByTimeAsync(gatherMs);
  expect([told, failed]).toEqual([[["/site/a"]], []]);
  opened[0]?.emit("error", error("EINVAL", "stat"));
  opened[0]?.emit("error", error("EIO", "readlink"));
  await vi.advanceTimersByTimeAsync(gatherMs);
  expect(told).toHaveLength(1);
  expect(failed).toEqual(["EINVAL: stat '/site/a'", "EIO: readlink '/site/a'"]);
});
