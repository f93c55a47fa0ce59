// Memory of tables is written again when it has rested, and never while somebody may still read it.

import { expect, test } from "vitest";
import { TableMemory } from "../../../src/agent/viewset/table-memory.ts";

const restMs = 10_000;

function open(): { readonly memory: TableMemory; readonly pass: (ms: number) => void } {
  let nowMs = 0;
  return { memory: new TableMemory(() => nowMs), pass: (ms) => void (nowMs += ms) };
}

test("what was given back is taken again when it has rested", () => {
  const { memory, pass } = open();
  const first = memory.take(1_000_000);
  expect(first.byteLength).toBeGreaterThanOrEqual(1_000_000);
  expect(first.byteLength).toBeLessThan(1_130_000);
  memory.giveBack(first);
  pass(restMs - 1);
  expect(memory.take(1_000_000)).not.toBe(first);
  pass(1);
  expect(memory.take(1_000_000)).toBe(first);
  expect(memory.take(1_000_000)).not.toBe(first);
});

test("a table gets memory of its size: the least that fits, and none that is much larger", () => {
  const { memory, pass } = open();
  const [small, large, huge] = [memory.take(90_000), memory.take(150_000), memory.take(9_000_000)];
  for (const table of [huge, large, small]) memory.giveBack(table);
  pass(restMs);
  expect(memory.take(100_000)).toBe(large);
  expect(memory.take(90_000)).toBe(small);
  expect(memory.take(100_000)).not.toBe(huge);
});

test("a thousand versions, each in force for a second, take a dozen pieces of memory", () => {
  const { memory, pass } = open();
  const pieces = new Set<SharedArrayBuffer>();
  let inForce = memory.take(2_000_000);
  for (let i = 0; i < 1_000; i++) {
    const next = memory.take(2_000_000 + (i % 7) * 1_000);
    pieces.add(next);
    memory.giveBack(inForce);
    inForce = next;
    pass(1_000);
  }
  expect(pieces.size).toBeLessThan(15);
});

test("what lies idle is bounded; the oldest goes first", () => {
  const { memory, pass } = open();
  const tables = Array.from({ length: 10 }, () => memory.take(10_000_000));
  for (const table of tables) memory.giveBack(table);
  pass(restMs);
  const again = tables.map(() => memory.take(10_000_000));
  expect(again.filter((table) => tables.includes(table))).toEqual(tables.slice(-6));
});
