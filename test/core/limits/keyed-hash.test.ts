// HalfSipHash-2-4 by the vectors of its reference implementation, for inputs of one word and of two.

import { expect, test } from "vitest";
import { KeyedHash } from "../../../src/core/limits/keyed-hash.ts";

const key = Int32Array.of(0x03020100, 0x07060504);

test.each<[string, number[], string]>([
  ["four bytes", [0x03020100], "d5e78a175be52ea1"],
  ["eight bytes", [0x03020100, 0x07060504], "edfee820bce4858c"],
])("the published vector of %s", (_, [first = 0, second], said) => {
  const hash = new KeyedHash();
  hash.of(key, first, second);
  expect(Buffer.from(hash.words.buffer).toString("hex")).toBe(said);
});

test("another key, another address and another length are another hash", () => {
  const hash = new KeyedHash();
  const seen = new Set<string>();
  const note = (by: Int32Array, first: number, second?: number): void => {
    hash.of(by, first, second);
    seen.add(hash.words.join());
  };
  for (let at = 0; at < 1_000; at++) {
    note(key, at);
    note(key, at, 0);
    note(Int32Array.of(1, at), 7);
  }
  expect(seen.size).toBe(3_000);
});
