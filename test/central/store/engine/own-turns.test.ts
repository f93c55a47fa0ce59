// Turns by key: one after the other of one key, beside those of others.

import { expect, test } from "vitest";
import { OwnTurns } from "../../../../src/central/store/engine/own-turns.ts";

test("of one key they come in their order, also behind one that fails; another key waits for nobody; nothing is left", async () => {
  const turns = new OwnTurns();
  const said: string[] = [];
  const first = Promise.withResolvers<void>();
  const one = turns.run("a", async () => {
    await first.promise;
    said.push("one");
    throw new Error("it failed");
  });
  const two = turns.run("a", async () => {
    said.push("two");
    return 2;
  });
  await turns.run("b", async () => said.push("other"));
  expect(said).toEqual(["other"]);
  expect(turns.keys).toEqual(["a"]);
  const three = turns.run("a", async () => said.push("three"));
  first.resolve();
  await expect(one).rejects.toThrow("it failed");
  expect(await two).toBe(2);
  await three;
  expect(said).toEqual(["other", "one", "two", "three"]);
  expect(turns.keys).toEqual([]);
});
