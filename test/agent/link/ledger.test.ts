// The books of the journal: the cursor is the contiguous prefix whatever the order, and everything survives a reopening.

import { join } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { openAgentDb, type AgentDb } from "../../../src/agent/link/agent-db.ts";
import type { Receipt } from "../../../src/wire/receipt.ts";
import { tempDir } from "../../support/temp-dir.ts";

const chain = (seq: number): string => String(seq).padStart(64, "0");
const receipt = (seq: number, phase: Receipt["phase"] = "applied"): Receipt => ({
  seq,
  phase,
  detail: { seq },
  took_ms: seq,
});
const commit = (db: AgentDb, seq: number, isClear = false): void =>
  db.ledger.commit({ seq, chain: chain(seq), receipt: receipt(seq), isClear });
const receiptsOf = (db: AgentDb): readonly Receipt[] =>
  db.ledger.receiptsAfter(0, 1_000).map(({ receipt }) => receipt);

type Step = { from: number; to: number };
/** 1 to 30 cut into single entries and superseded ranges, in any order. */
const histories = fc
  .array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 12 })
  .chain((widths) => {
    let next = 1;
    const steps: Step[] = widths.map((width) => {
      const from = next;
      next += width;
      return { from, to: next - 1 };
    });
    return fc.shuffledSubarray(steps, { minLength: 0, maxLength: steps.length });
  });

test("the cursor is the contiguous prefix of what is done, in any order and over a restart", () => {
  fc.assert(
    fc.property(histories, fc.nat(12), (steps, reopenAt) => {
      using dir = tempDir();
      const path = join(dir.path, "agent.db");
      let db = openAgentDb(path);
      const done = new Set<number>();
      steps.forEach(({ from, to }, i) => {
        if (i === reopenAt) {
          db[Symbol.dispose]();
          db = openAgentDb(path);
        }
        if (from === to) commit(db, from);
        else db.ledger.skip(from, to, chain(to));
        for (let seq = from; seq <= to; seq++) done.add(seq);
        let prefix = 0;
        while (done.has(prefix + 1)) prefix += 1;
        expect(db.ledger.position.seq).toBe(prefix);
        if (prefix > 0) expect(db.ledger.position.chain).toBe(chain(prefix));
        for (let seq = 1; seq <= 50; seq++) expect(db.ledger.isDone(seq)).toBe(done.has(seq));
      });
      db[Symbol.dispose]();
    }),
    { numRuns: 30 },
  );
});

test("a superseded range that ends at an entry done by itself covers what is before it", () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"));
  commit(db, 7);
  db.ledger.skip(1, 7, chain(7));
  expect(db.ledger.position).toMatchObject({ seq: 7, chain: chain(7) });
});

test("receipts keep their order until acknowledged; ids are not used again", () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"));
  for (const seq of [2, 1, 3]) commit(db, seq);
  expect(receiptsOf(db)).toEqual([receipt(2), receipt(1), receipt(3)]);
  const ids = db.ledger.receiptsAfter(0, 10).map(({ id }) => id);
  db.ledger.acknowledge(ids);
  expect(db.ledger.receiptCount()).toBe(0);
  commit(db, 4);
  expect(db.ledger.receiptsAfter(0, 10)[0]?.id).toBeGreaterThan(Math.max(...ids));
});

test("the second part of an entry is finished once, also after a reopening", () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  const entry = { seq: 1, kind: "cache.clear", at: "", body: { clear_id: "c" } };
  {
    using db = openAgentDb(path);
    const commitOf = { seq: 1, chain: chain(1), receipt: receipt(1), isClear: true };
    db.ledger.commit({ ...commitOf, unfinished: entry });
  }
  using db = openAgentDb(path);
  expect(db.ledger.unfinished()).toEqual([entry]);
  expect(db.ledger.finish(1, receipt(1, "gone"))).toBe(true);
  expect(db.ledger.finish(1, receipt(1, "gone"))).toBe(false);
  expect(receiptsOf(db).map(({ phase }) => phase)).toEqual(["applied", "gone"]);
  expect(db.ledger.unfinished()).toEqual([]);
});

test("the newest applied clear is remembered until a snapshot", () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"));
  for (const seq of [4, 2]) commit(db, seq, true);
  commit(db, 9);
  expect(db.ledger.lastClearSeq).toBe(4);
  db.ledger.restart({
    epoch: "f".repeat(16),
    seq: 20,
    chain: chain(20),
    receipt: undefined,
    imports: [],
  });
  expect(db.ledger.lastClearSeq).toBe(0);
});

test("a snapshot takes the place of everything: cursor, done, receipts, second parts", () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"));
  commit(db, 1);
  commit(db, 30);
  const imports = [{ seq: 18, kind: "viewset.import", at: "", body: { import_id: "i" } }];
  db.ledger.restart({
    epoch: "f".repeat(16),
    seq: 20,
    chain: chain(20),
    receipt: receipt(20),
    imports,
  });
  expect(db.ledger.position).toEqual({ epoch: "f".repeat(16), seq: 20, chain: chain(20) });
  expect(db.ledger.isDone(30)).toBe(false);
  expect(receiptsOf(db)).toEqual([receipt(20)]);
  expect(db.ledger.unfinished()).toEqual(imports);
});

test("corrections are numbered through every history, and of another epoch's entries none is told", () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"));
  const epoch = "f".repeat(16);
  const entry = { seq: 7, phase: "refused", detail: { reason: "no" } } as const;
  const begin = { epoch, seq: 20, chain: chain(20), receipt: receipt(20), imports: [] };
  db.ledger.restart({ ...begin, entries: [entry] });
  db.put({ some: 1 }, [{ ...entry, epoch }]);
  db.put({ some: 2 }, [{ ...entry, epoch: "e".repeat(16) }]);
  expect(db.get("some")).toBe(2);
  const told = (correction: number) => ({ ...entry, detail: { reason: "no", correction } });
  expect(receiptsOf(db)).toMatchObject([receipt(20), told(1), told(2)]);
  db.ledger.restart(begin);
  db.put({}, [{ ...entry, epoch }]);
  expect(receiptsOf(db)).toMatchObject([receipt(20), told(3)]);
});

test("what cannot be written corrects nothing", () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"));
  const epoch = "f".repeat(16);
  db.ledger.restart({ epoch, seq: 2, chain: chain(2), receipt: undefined, imports: [] });
  const bad = { epoch, seq: 1, phase: "failed", detail: { big: 1n } } as const;
  expect(() => db.put({ some: 1 }, [bad])).toThrow(TypeError);
  expect(db.get("some")).toBeUndefined();
  expect(receiptsOf(db)).toEqual([]);
});

test("a commit that fails leaves position and receipts as they were", () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"));
  commit(db, 1);
  const bad = { ...receipt(2), detail: { big: 1n } };
  expect(() =>
    db.ledger.commit({ seq: 2, chain: chain(2), receipt: bad, isClear: false }),
  ).toThrow();
  expect(db.ledger.position.seq).toBe(1);
  expect(receiptsOf(db)).toEqual([receipt(1)]);
});

test("what is told anew of an entry has one number in all its parts, in place of what is not acknowledged", () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"));
  commit(db, 1, true);
  commit(db, 2, true);
  const both = (blocked: number): readonly Receipt[] => [
    { seq: 1, phase: "applied", detail: { matched: 1 }, took_ms: 7 },
    { seq: 1, phase: "gone", detail: { blocked }, took_ms: 9 },
  ];
  db.ledger.amend(both(1));
  db.ledger.amend(both(2));
  expect(receiptsOf(db)).toEqual([
    receipt(2),
    { seq: 1, phase: "applied", detail: { matched: 1, correction: 2 }, took_ms: 7 },
    { seq: 1, phase: "gone", detail: { blocked: 2, correction: 2 }, took_ms: 9 },
  ]);
});
