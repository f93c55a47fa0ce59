// Who asks while a run is under way shares the next one.

import { expect, test } from "vitest";
import { Joined } from "../../src/base/mutex.ts";

function rig() {
  const runs: PromiseWithResolvers<void>[] = [];
  const joined = new Joined(async () => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  });
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return { runs, joined, turn };
}

test("asked at once: one run; asked while it runs: one more, after it", async () => {
  const { runs, joined, turn } = rig();
  const ended: string[] = [];
  const ask = (name: string): void => void joined.run().then(() => ended.push(name));
  ask("a");
  ask("b");
  await turn();
  expect(runs.length).toBe(1);
  ask("c");
  ask("d");
  await turn();
  expect(runs.length).toBe(1);
  runs[0]?.resolve();
  await turn();
  expect([runs.length, ended]).toEqual([2, ["a", "b"]]);
  runs[1]?.resolve();
  await turn();
  expect(ended).toEqual(["a", "b", "c", "d"]);
  ask("e");
  await turn();
  expect(runs.length).toBe(3);
});

test("a run that fails is the failure of those who asked for it, and of no other", async () => {
  const { runs, joined, turn } = rig();
  const first = joined.run();
  await turn();
  const second = joined.run();
  runs[0]?.reject(new Error("first"));
  await expect(first).rejects.toThrow("first");
  await turn();
  runs[1]?.resolve();
  await second;
});
