// What is remembered: the same answers, within the limits, and what is in use stays.

import fc from "fast-check";
import { expect, test } from "vitest";
import { Memo } from "../../../../src/agent/bots/unreviewed/memo.ts";

type Answer = { readonly of: string } | null;
const ask = (key: string): Answer => (key.length % 3 === 0 ? null : { of: key });

test("answers are those of asking, entries and bytes within their limits", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 40 }), { maxLength: 300 }),
      fc.integer({ min: 2, max: 30 }),
      fc.integer({ min: 100, max: 3_000 }),
      (keys, entries, bytes) => {
        const memo = new Memo<Answer>({ entries, bytes });
        for (const key of keys) {
          expect(memo.get(key, ask)).toEqual(ask(key));
          expect(memo.size).toBeLessThanOrEqual(entries);
          expect(memo.bytes).toBeLessThanOrEqual(bytes);
        }
      },
    ),
  );
});

test("what is asked for again and again is asked once, through a flood of others; null too", () => {
  const memo = new Memo<Answer>({ entries: 100, bytes: 100_000 });
  const asked: string[] = [];
  const noting = (key: string): Answer => {
    asked.push(key);
    return key === "nothing" ? null : { of: key };
  };
  for (let no = 0; no < 10_000; no++) {
    memo.get(`flood ${no}`, noting);
    if (no % 20 === 0) for (const key of ["used", "nothing"]) memo.get(key, noting);
  }
  expect(asked.filter((key) => !key.startsWith("flood"))).toEqual(["used", "nothing"]);
});

test("a key that is larger than a generation is not kept", () => {
  const memo = new Memo<Answer>({ entries: 10, bytes: 1_000 });
  memo.get("x".repeat(1_000), ask);
  expect([memo.size, memo.bytes]).toEqual([0, 0]);
});
