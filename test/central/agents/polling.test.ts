// Who is in touch by long polls: while one waits, and for a moment after.

import { expect, test } from "vitest";
import { Polling } from "../../../src/central/agents/polling.ts";

test("an instance is in touch while any of its polls waits, and ten seconds longer", () => {
  let nowMs = 0;
  const polling = new Polling(() => nowMs);
  expect(polling.has(1, "a")).toBe(false);
  const [first, second] = [polling.begin(1, "a"), polling.begin(1, "a")];
  first[Symbol.dispose]();
  nowMs = 60_000;
  expect([polling.has(1, "a"), polling.has(2, "a"), polling.has(1, "b")]).toEqual([
    true,
    false,
    false,
  ]);
  second[Symbol.dispose]();
  nowMs += 9_999;
  expect(polling.has(1, "a")).toBe(true);
  nowMs += 1;
  expect(polling.has(1, "a")).toBe(false);
});

test("of those that left only the last are remembered", () => {
  const polling = new Polling(() => 0);
  for (let no = 0; no < 10_001; no++) polling.begin(no, "a")[Symbol.dispose]();
  expect([polling.has(0, "a"), polling.has(1, "a"), polling.has(10_000, "a")]).toEqual([
    false,
    true,
    true,
  ]);
});
