// Sets of ids as bitmaps: no longer than the span of their ids, wherever that begins. What they hold is tested beside the matcher.

import { expect, test } from "vitest";
import { IdSet } from "../../../../src/agent/cache/clearing/id-set.ts";
import { idSpanMax } from "../../../../src/agent/cache/index/entry-bits.ts";

test("a set is as long as the span of its ids, also of several lists", () => {
  const first = 64 * 1_000_000;
  const lists = [[first + 70], [], [first + 3, first + 1], [first + 99]];
  const { bits } = IdSet.of(lists);
  expect(bits.first).toBe(first);
  expect(bits.words.length).toBe(4);
  expect([...IdSet.of(lists).ascending()]).toEqual([first + 1, first + 3, first + 70, first + 99]);
  expect(IdSet.of([]).bits.words.length).toBe(0);
});

test("ids may be as far from 0 as they like, and as far from each other as those of one index", () => {
  const first = 2 ** 40;
  const far = first + idSpanMax - 32;
  expect([...IdSet.of([[first], [far]]).ascending()]).toEqual([first, far]);
  expect(() => IdSet.of([[first], [first + idSpanMax]])).toThrow(RangeError);
  expect(() => IdSet.of([[first, first + idSpanMax]])).toThrow(RangeError);
});
