// Receipts on their way: each until it is acknowledged, no more than may be unanswered, and no acknowledgement taken for another's.

import { setImmediate } from "node:timers/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openAgentDb, type AgentDb } from "../../../src/agent/link/agent-db.ts";
import { ReceiptOutbox } from "../../../src/agent/link/outbox.ts";
import type { Receipt } from "../../../src/wire/receipt.ts";
import { tempDir } from "../../support/temp-dir.ts";

let dir: ReturnType<typeof tempDir>;
let db: AgentDb;
let outbox: ReceiptOutbox;
beforeEach(() => {
  dir = tempDir();
  db = openAgentDb(join(dir.path, "agent.db"));
  outbox = new ReceiptOutbox(db.ledger);
});
afterEach(() => {
  db[Symbol.dispose]();
  dir[Symbol.dispose]();
});

function record(from: number, to = from): void {
  for (let seq = from; seq <= to; seq++) {
    const receipt: Receipt = { seq, phase: "applied", detail: {}, took_ms: 1 };
    db.ledger.commit({ seq, chain: String(seq).padStart(64, "0"), receipt, isClear: false });
    outbox.recorded();
  }
}
const left = (): readonly number[] =>
  db.ledger.receiptsAfter(0, 10_000).map(({ receipt }) => receipt.seq);
const numbers = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at);
const ack = (seq: number, phase: Receipt["phase"] = "applied"): void =>
  outbox.acknowledged({ seq, phase });

test("a channel has a hundred unanswered at most; each that is answered makes room for the next, in order", async () => {
  record(1, 150);
  const sent: number[] = [];
  outbox.attach(({ seq }) => void sent.push(seq));
  expect(sent).toEqual(numbers(1, 100));
  record(151);
  expect(sent.length).toBe(100);
  ack(7);
  expect(sent).toEqual(numbers(1, 101));
  ack(7);
  ack(999);
  ack(8, "gone");
  expect(sent.length).toBe(101);
  for (const seq of numbers(1, 151)) ack(seq);
  expect(sent).toEqual(numbers(1, 151));
  await setImmediate();
  expect(left()).toEqual([]);
});

test("what was not acknowledged is told again on the next channel, and nothing on the one before", async () => {
  record(1, 3);
  const [first, second]: [number[], number[]] = [[], []];
  const one = outbox.attach(({ seq }) => void first.push(seq));
  ack(2);
  await setImmediate();
  one[Symbol.dispose]();
  record(4);
  expect(first).toEqual([1, 2, 3]);
  const two = outbox.attach(({ seq }) => void second.push(seq));
  expect(second).toEqual([1, 3, 4]);
  // That it goes is nothing to the one that took its place.
  one[Symbol.dispose]();
  record(5);
  expect(second).toEqual([1, 3, 4, 5]);
  two[Symbol.dispose]();
  expect(left()).toEqual([1, 3, 4, 5]);
});

test("two receipts of one entry and phase are told one after the other", () => {
  record(1);
  const again = { seq: 1, phase: "applied", detail: { correction: 1 } } as const;
  db.ledger.restart({
    epoch: "e".repeat(16),
    seq: 1,
    chain: "0".repeat(64),
    receipt: { ...again, took_ms: 0 },
    entries: [again],
    imports: [],
  });
  const sent: number[] = [];
  outbox.attach(({ detail }) => void sent.push(Number(detail["correction"])));
  expect(sent.length).toBe(1);
  ack(1);
  expect(sent.length).toBe(2);
});

test("how long the oldest is unanswered: none, none", () => {
  expect(outbox.oldestWaitMs()).toBe(0);
  outbox.attach(() => undefined);
  expect(outbox.oldestWaitMs()).toBe(0);
  record(1);
  const before = outbox.oldestWaitMs();
  expect(before).toBeGreaterThanOrEqual(0);
  expect(before).toBeLessThan(60_000);
  ack(1);
  expect(outbox.oldestWaitMs()).toBe(0);
});

test("by requests: two hundred at once, until all are acknowledged", async () => {
  record(1, 450);
  const batches: number[] = [];
  await outbox.flush(async (batch) => {
    batches.push(batch.length);
    return batch;
  });
  expect(batches).toEqual([200, 200, 50]);
  expect(left()).toEqual([]);
});

test("by requests: acknowledgements of what was not sent count for nothing, and without another it ends", async () => {
  record(1, 3);
  let asked = 0;
  await outbox.flush(async () => {
    asked++;
    return asked === 1
      ? [
          { seq: 2, phase: "applied" },
          { seq: 2, phase: "gone" },
          { seq: 77, phase: "applied" },
        ]
      : [{ seq: 77, phase: "applied" }];
  });
  expect(asked).toBe(2);
  expect(left()).toEqual([1, 3]);
  const failing = outbox.flush(async () => Promise.reject(new Error("no line")));
  await expect(failing).rejects.toThrow("no line");
  expect(left()).toEqual([1, 3]);
});

test("who waits for the next receipt is told of it, and of no other", async () => {
  let told = 0;
  void outbox.changed().then(() => told++);
  await setImmediate();
  expect(told).toBe(0);
  record(1, 2);
  await setImmediate();
  expect(told).toBe(1);
});
