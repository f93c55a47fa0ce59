// agent.db after a crash at any moment: each operation on the books has happened whole, or not at all.

import { copyFileSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openAgentDb, type AgentDb, indexMemory } from "../../../src/agent/link/agent-db.ts";
import { Ledger } from "../../../src/agent/link/ledger.ts";
import { openSqlite, type Sqlite } from "../../../src/base/sqlite.ts";
import type { Receipt } from "../../../src/wire/receipt.ts";
import { tempDir } from "../../support/temp-dir.ts";

const tables = ["meta", "done", "receipt", "unfinished", "document"];
const epoch = "f".repeat(16);
const chain = (seq: number): string => String(seq).padStart(64, "0");
const receipt = (seq: number, phase: Receipt["phase"] = "applied"): Receipt => ({
  seq,
  phase,
  detail: { seq },
  took_ms: seq,
});
const entry = (seq: number, kind: string) => ({ seq, kind, at: "", body: { no: seq } });

/** In turn, each upon what the ones before it left. */
const operations: readonly (readonly [string, (db: AgentDb) => void])[] = [
  [
    "a snapshot",
    ({ ledger }) =>
      ledger.restart({
        epoch,
        seq: 0,
        chain: chain(0),
        receipt: receipt(0),
        entries: [receipt(0, "refused")],
        imports: [entry(0, "viewset.import")],
      }),
  ],
  ["an entry", ({ ledger }) => ledger.commit({ ...done(1), isClear: false })],
  ["an entry above a gap", ({ ledger }) => ledger.commit({ ...done(4), isClear: false })],
  [
    "a clear with a second part, which moves the cursor",
    ({ ledger }) =>
      ledger.commit({ ...done(2), isClear: true, unfinished: entry(2, "cache.clear") }),
  ],
  ["a range that closes the gap", ({ ledger }) => ledger.skip(3, 3, chain(3))],
  ["a second part", ({ ledger }) => ledger.finish(2, receipt(2, "gone"))],
  ["a second part without a receipt", ({ ledger }) => ledger.finish(0, undefined)],
  ["a correction", ({ ledger }) => ledger.correct(epoch, receipt(1, "failed"))],
  [
    "documents with corrections",
    (db) => db.put({ one: 1, two: { a: 2 } }, [{ ...receipt(4, "failed"), epoch }]),
  ],
  ["documents, one deleted", (db) => db.put({ one: null, two: 3, three: [] })],
  [
    "acknowledgements",
    ({ ledger }) => ledger.acknowledge(ledger.receiptsAfter(0, 3).map(({ id }) => id)),
  ],
  [
    "another snapshot",
    ({ ledger }) =>
      ledger.restart({
        epoch: "e".repeat(16),
        seq: 9,
        chain: chain(9),
        receipt: receipt(9),
        entries: [receipt(7, "refused"), receipt(8, "failed")],
        imports: [entry(5, "viewset.import")],
      }),
  ],
  ["what the cache index says", (db) => indexMemory(db).note({ opening: "o", clearNo: 9 })],
  ["a history that is forgotten", ({ ledger }) => ledger.forget()],
];

function done(seq: number) {
  return { seq, chain: chain(seq), receipt: receipt(seq) };
}

/** What a process would find that starts on the files as they lie there now. */
class Crashes implements Disposable {
  readonly #dir = tempDir();
  readonly #path: string;
  #no = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** A crash now. */
  take(): void {
    this.#no++;
    for (const suffix of ["", "-wal"])
      if (existsSync(this.#path + suffix))
        copyFileSync(this.#path + suffix, join(this.#dir.path, `${this.#no}.db${suffix}`));
  }

  /** Since the last time. */
  found(): readonly Found[] {
    const found: Found[] = [];
    for (let no = 1; no <= this.#no; no++) {
      const db = openSqlite(join(this.#dir.path, `${no}.db`), { sync: "full" });
      found.push(readAll(db));
      db.close();
    }
    this.#no = 0;
    return found;
  }

  [Symbol.dispose](): void {
    this.#dir[Symbol.dispose]();
  }
}

type Found = Readonly<Record<string, unknown>>;

function readAll(db: Sqlite): Found {
  const rows = tables.map((table) => [table, db.prepare(`SELECT * FROM ${table}`).all()] as const);
  return {
    ...Object.fromEntries(
      rows.map(([table, all]) => [table, table === "document" ? known(all) : all]),
    ),
    position: new Ledger(db).position,
  };
}

/** But for when it was written. */
function known(rows: readonly unknown[]): readonly unknown[] {
  return rows.map((row) => ({ ...Object(row), changed_at: undefined }));
}

/** Each row that is written, before its statement has ended: what the statements before it did lies there, if it was committed. */
function crashAtEachRow({ sqlite }: AgentDb, crashes: Crashes): void {
  sqlite.function("crash", { directOnly: false, deterministic: false }, () => {
    crashes.take();
    return 0;
  });
  for (const table of tables)
    for (const event of ["INSERT", "UPDATE", "DELETE"])
      sqlite.exec(
        `CREATE TEMP TRIGGER crash_${table}_${event} AFTER ${event} ON main.${table} BEGIN SELECT crash(); END`,
      );
}

test("after every row that is written, and at the end: all of an operation is there, or nothing of it", () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  using db = openAgentDb(path);
  using crashes = new Crashes(path);
  crashAtEachRow(db, crashes);
  for (const [what, operate] of operations) {
    const before = readAll(db.sqlite);
    operate(db);
    const during = crashes.found();
    crashes.take();
    const [after] = crashes.found();
    expect(after, what).toEqual(readAll(db.sqlite));
    expect(after, what).not.toEqual(before);
    expect(during.length, what).toBeGreaterThan(0);
    for (const found of during) expect(found, what).toEqual(before);
    expect(db.ledger.position, what).toEqual(after?.["position"]);
  }
});

test("every operation of the books is tried, and most write more than one row", () => {
  const methods = Object.getOwnPropertyNames(Ledger.prototype).filter((name) =>
    /^(?:commit|skip|finish|restart|correct|forget|acknowledge)$/.test(name),
  );
  expect(methods.length).toBe(7);
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  using db = openAgentDb(path);
  using crashes = new Crashes(path);
  crashAtEachRow(db, crashes);
  const rows = operations.map(([, operate]) => {
    operate(db);
    return crashes.found().length;
  });
  expect(rows.filter((count) => count > 1).length).toBeGreaterThan(9);
  expect(readdirSync(dir.path).filter((name) => name.endsWith(".db"))).toEqual(["agent.db"]);
});

test("a clear that failed is none that is applied: what is stored is not taken for cleared", () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  {
    using db = openAgentDb(path);
    db.ledger.commit({ ...done(1), isClear: true });
    for (const [seq, phase] of [
      [2, "failed"],
      [3, "refused"],
    ] as const)
      db.ledger.commit({ seq, chain: chain(seq), receipt: receipt(seq, phase), isClear: true });
    db.ledger.commit({ ...done(4), isClear: false });
    expect(db.ledger.lastClearSeq).toBe(1);
  }
  using db = openAgentDb(path);
  expect(db.ledger.lastClearSeq).toBe(1);
  expect(db.ledger.position.seq).toBe(4);
});
