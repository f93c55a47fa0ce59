// Rows in statements: all of them, in order, in few sizes.

import { expect, test } from "vitest";
import { pacedParts, parts } from "../../../../src/central/store/engine/parts.ts";

test("whole parts, and what is left in round sizes", () => {
  const sizes = (count: number, size: number): readonly number[] =>
    [...parts(Array.from({ length: count }), size)].map((part) => part.length);
  expect(sizes(0, 10)).toEqual([]);
  expect(sizes(1, 10)).toEqual([1]);
  expect(sizes(10, 10)).toEqual([10]);
  expect(sizes(27, 10)).toEqual([10, 10, 7]);
  expect(sizes(251, 1_000)).toEqual([224, 24, 3]);
  const seen = new Set<number>();
  for (let count = 0; count <= 1_000; count++) for (const size of sizes(count, 250)) seen.add(size);
  expect(seen.size).toBeLessThan(30); // Of 250 that there could be.
});

test("every row comes once, in order, with or without turns in between", async () => {
  const rows = Array.from({ length: 1_237 }, (_, no) => no);
  expect([...parts(rows, 100)].flat()).toEqual(rows);
  const paced: number[] = [];
  for await (const part of pacedParts(rows, 100)) paced.push(...part);
  expect(paced).toEqual(rows);
});
