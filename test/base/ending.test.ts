// Waiting for work or for the end of something, whichever is first; and that nothing of the work stays with what goes on living.

import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { Ending } from "../../src/base/ending.ts";

test("the work's outcome comes first, or the end does; later ones get the end at once", async () => {
  const ending = new Ending<string>();
  expect(await ending.or(Promise.resolve(7))).toBe(7);
  await expect(ending.or(Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  const endless = new Promise<number>(() => undefined);
  const waiting = [ending.or(endless), ending.or(endless)];
  expect(ending.isOver).toBe(false);
  ending.end("gone");
  ending.end("gone again");
  expect(await Promise.all(waiting)).toEqual(["gone", "gone"]);
  expect(await ending.or(endless)).toBe("gone");
  expect(await ending.promise).toBe("gone");
  expect(ending.isOver).toBe(true);
});

test("a failure of work that comes behind the end is nobody's", async () => {
  const ending = new Ending<string>();
  const { promise, reject } = Promise.withResolvers<number>();
  const waiting = ending.or(promise);
  ending.end("gone");
  expect(await waiting).toBe("gone");
  reject(new Error("too late"));
  expect(await ending.or(Promise.reject(new Error("much too late")))).toBe("gone");
  await setImmediate(); // An unhandled rejection would fail the run.
});

test("nothing stays behind of 50,000 that were answered", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const ending = new Ending<string>();
  const ask = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i++) await ending.or(Promise.resolve({ no: i }));
    await setImmediate();
    collect();
  };
  await ask(1_000);
  const before = process.memoryUsage().heapUsed;
  await ask(50_000);
  // A race with a promise of the end leaves 400 bytes of each.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000 * 100);
  expect(ending.isOver).toBe(false);
});
