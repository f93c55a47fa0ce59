// Memory that is given back by hand: only what lies in no other's memory goes.

import { expect, test } from "vitest";
import { giveBack } from "../../src/base/give-back.ts";

test("bytes in a memory of their own are gone, and giving them back again changes nothing", () => {
  const bytes = new Uint8Array(1_024).fill(7);
  giveBack(bytes);
  expect(bytes.byteLength).toBe(0);
  expect(bytes.buffer.detached).toBe(true);
  expect(() => giveBack(bytes)).not.toThrow();
});

test("bytes of a pool stay, and so do all others in it", () => {
  const pool = new Uint8Array(64).fill(7);
  const [one, other] = [pool.subarray(0, 32), pool.subarray(32)];
  giveBack(one);
  expect([...one, ...other]).toEqual(Array.from({ length: 64 }, () => 7));
  const pooled = Buffer.from("from Node's own pool");
  giveBack(pooled);
  expect(pooled.toString()).toBe("from Node's own pool");
});

test("shared memory stays", () => {
  const shared = new Uint8Array(new SharedArrayBuffer(8)).fill(7);
  giveBack(shared);
  expect([...shared]).toEqual([7, 7, 7, 7, 7, 7, 7, 7]);
});
