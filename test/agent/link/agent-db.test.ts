// agent.db: documents, an instance id that belongs to one machine, a damaged file that is set aside.

import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { agentSchema, indexMemory, openAgentDb } from "../../../src/agent/link/agent-db.ts";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import { tempDir } from "../../support/temp-dir.ts";

const position = { epoch: "e".repeat(16), seq: 5, chain: "c".repeat(64) };

test("documents come back whole, null deletes, keys are listed by prefix", () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  {
    using db = openAgentDb(path);
    db.put({ domains: { domains: [] }, "viewset:a.example": { n: 1 }, "viewset:b.example": 2 });
    db.put({ "viewset:b.example": null, policy: [1, "two"] });
  }
  using db = openAgentDb(path);
  expect(db.get("domains")).toEqual({ domains: [] });
  expect(db.get("policy")).toEqual([1, "two"]);
  expect(db.get("viewset:b.example")).toBeUndefined();
  expect(db.keys("viewset:")).toEqual(["viewset:a.example"]);
});

test("of a change that cannot be written nothing is", () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"));
  db.put({ a: 1 });
  const circular: { self?: unknown } = {};
  circular.self = circular;
  expect(() => db.put({ a: 2, b: circular as never })).toThrow();
  expect(db.get("a")).toBe(1);
});

test("the same machine keeps its instance id and history; a cloned disk gets another and forgets", () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  const machineId = join(dir.path, "machine-id");
  const open = () => openAgentDb(path, machineId);
  writeFileSync(machineId, `${"1".repeat(32)}\n`);
  let first: string;
  {
    using db = open();
    first = db.instanceId;
    db.put({ domains: 1 });
    db.ledger.restart({ ...position, receipt: undefined, imports: [] });
  }
  {
    using db = open();
    expect(db.instanceId).toBe(first);
    expect(db.ledger.position).toEqual(position);
  }
  writeFileSync(machineId, `${"2".repeat(32)}\n`);
  {
    using db = open();
    expect(db.instanceId).not.toBe(first);
    expect(db.moved).toEqual({
      before: first,
      reason: expect.stringContaining("the machine-id of this host is another"),
    });
    expect(db.ledger.position).toEqual({ epoch: null, seq: 0, chain: chainStart });
    expect(db.get("domains")).toBe(1); // What is served until the snapshot.
  }
});

test("a copied state directory gets another instance, with and without a machine id; what was copied keeps its own", () => {
  using dir = tempDir();
  for (const machine of ["", "1".repeat(32)]) {
    const machineId = join(dir.path, "machine-id");
    writeFileSync(machineId, machine);
    const path = join(dir.path, `agent${machine.length}.db`);
    const copy = join(dir.path, `copy${machine.length}.db`);
    let first: string;
    {
      using db = openAgentDb(path, machineId);
      first = db.instanceId;
      expect(db.moved).toBeUndefined();
      db.ledger.restart({ ...position, receipt: undefined, imports: [] });
    }
    copyFileSync(path, copy);
    {
      using db = openAgentDb(copy, machineId);
      expect(db.instanceId).not.toBe(first);
      expect(db.moved?.before).toBe(first);
      expect(db.moved?.reason).toContain("this state directory is a copy");
      expect(db.moved?.reason).not.toContain("machine-id");
      expect(db.ledger.position.epoch).toBeNull();
    }
    using db = openAgentDb(path, machineId);
    expect(db.instanceId).toBe(first);
    expect(db.moved).toBeUndefined();
    expect(db.ledger.position).toEqual(position);
  }
});

test("a state directory under another path of its file system is no copy", () => {
  using dir = tempDir();
  const [before, after] = [join(dir.path, "before"), join(dir.path, "after")];
  mkdirSync(before);
  let first: string;
  {
    using db = openAgentDb(join(before, "agent.db"));
    first = db.instanceId;
    db.ledger.restart({ ...position, receipt: undefined, imports: [] });
  }
  renameSync(before, after);
  using db = openAgentDb(join(after, "agent.db"));
  expect([db.instanceId, db.moved, db.ledger.position]).toEqual([first, undefined, position]);
});

test("a host without a machine id keeps its instance, also when it gets one later", () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  const machineId = join(dir.path, "machine-id");
  const idNow = (): string => {
    using db = openAgentDb(path, machineId);
    return db.instanceId;
  };
  const first = idNow();
  writeFileSync(machineId, "uninitialized\n");
  expect(idNow()).toBe(first);
  writeFileSync(machineId, "3".repeat(32));
  expect(idNow()).toBe(first);
});

test.each([
  ["no database at all", (path: string) => writeFileSync(path, "x".repeat(8192))],
  [
    "a torn page",
    (path: string) => writeFileSync(path, "y".repeat(4096), { flag: "r+", flush: true }),
  ],
  ["a cut file", (path: string) => truncateSync(path, 5000)],
])("%s is set aside and the agent goes on empty", (_what, damage) => {
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  {
    using db = openAgentDb(path);
    db.put({ domains: "x".repeat(20_000) });
    expect(db.setAside).toBeUndefined();
  }
  damage(path);
  {
    using db = openAgentDb(path);
    expect(db.setAside).toBe(`${path}.corrupt-1`);
    expect(db.get("domains")).toBeUndefined();
    expect(db.ledger.position.epoch).toBeNull();
    db.put({ domains: 1 });
  }
  using db = openAgentDb(path);
  expect(db.get("domains")).toBe(1);
  expect(db.setAside).toBeUndefined();
});

test("the newest three damaged files are kept", () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  for (let round = 1; round <= 5; round++) {
    writeFileSync(path, "z".repeat(8192));
    using db = openAgentDb(path);
    expect(db.setAside).toBe(`${path}.corrupt-${round}`);
  }
  const kept = readdirSync(dir.path).filter((name) => /corrupt-\d+$/.test(name));
  expect(kept.sort()).toEqual([3, 4, 5].map((no) => `agent.db.corrupt-${no}`));
});

/** Makes a newer release of the file that this one wrote: it went on to `version` by `sql`. */
function newerFile(path: string, version: number, sql: string): void {
  const raw = new Database(path);
  raw.exec(sql);
  raw.pragma(`user_version = ${version}`);
  raw.close();
}

const additive = `
  CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT; INSERT INTO later VALUES (7);
  ALTER TABLE document ADD COLUMN later TEXT NOT NULL DEFAULT '';
`;
const schemaOf = (path: string): { version: unknown; later: unknown } => {
  const raw = new Database(path, { readonly: true });
  try {
    return {
      version: raw.pragma("user_version", { simple: true }),
      later: raw.prepare("SELECT id FROM later").pluck().all(),
    };
  } finally {
    raw.close();
  }
};

describe("a file of a newer release", () => {
  let dir: ReturnType<typeof tempDir>;
  let path: string;
  let before: { instanceId: string; position: unknown };
  beforeEach(() => {
    dir = tempDir();
    path = join(dir.path, "agent.db");
    using db = openAgentDb(path);
    db.put({ policy: { some: "policy" } });
    db.ledger.restart({ epoch: "e", seq: 9, chain: "c", receipt: undefined, imports: [] });
    before = { instanceId: db.instanceId, position: db.ledger.position };
  });
  afterEach(() => dir[Symbol.dispose]());

  test("that says so is used: nothing is lost, the schema stays, and the newer one goes on with it", () => {
    newerFile(path, agentSchema.version + 2, additive);
    for (const seq of [10, 11]) {
      using db = openAgentDb(path);
      expect(db.newer).toEqual({
        version: agentSchema.version + 2,
        setAside: undefined,
        receipts: 0,
      });
      expect(db.instanceId).toBe(before.instanceId);
      expect(db.get("policy")).toEqual({ some: "policy" });
      const receipt = { seq, phase: "applied", detail: {}, took_ms: 1 } as const;
      db.ledger.commit({ seq, chain: "d", receipt, isClear: false });
      expect(db.ledger.position).toEqual({ epoch: "e", seq, chain: "d" });
    }
    expect(schemaOf(path)).toEqual({ version: agentSchema.version + 2, later: [7] });
    // It is for the newer release to say, not for this one.
    const raw = new Database(path, { readonly: true });
    const from = raw.prepare("SELECT value FROM meta WHERE key = 'compatible_from'").pluck().get();
    expect(from).toBe(String(agentSchema.compatibleFrom));
    raw.close();
    expect(readdirSync(dir.path).filter((name) => /newer|corrupt/.test(name))).toEqual([]);
  });

  test.each([
    ["says that this one may not", "UPDATE meta SET value = '99' WHERE key = 'compatible_from'"],
    ["says nothing", "DELETE FROM meta WHERE key = 'compatible_from'"],
    ["says nothing that can be read", "UPDATE meta SET value = '' WHERE key = 'compatible_from'"],
    ["has no such table", "DROP TABLE meta"],
  ])("that %s is set aside untouched, and everything begins anew", (_, sql) => {
    newerFile(
      path,
      99,
      `${additive}; INSERT INTO receipt (seq, phase, detail, took_ms) VALUES (9, 'applied', '{}', 1); ${sql}`,
    );
    {
      using db = openAgentDb(path);
      expect(db.newer).toEqual({ version: 99, setAside: `${path}.newer-1`, receipts: 1 });
      expect(db.setAside).toBeUndefined();
      expect(db.instanceId).not.toBe(before.instanceId);
      expect(db.ledger.position.epoch).toBeNull();
      expect(db.get("policy")).toBeUndefined();
      expect(indexMemory(db).read().opening).toBeNull();
    }
    expect(schemaOf(`${path}.newer-1`)).toEqual({ version: 99, later: [7] });
    using again = openAgentDb(path);
    expect(again.newer).toBeUndefined();
  });

  const refused = "UPDATE meta SET value = '99' WHERE key = 'compatible_from'";
  const purge =
    "INSERT INTO purge (domain, host, items) VALUES ('a.example', NULL, '{\"urls\":[\"/x\"]}')";
  test("purges that central was not told of are taken over, unless their table is another one", () => {
    const purges = (): unknown => {
      using db = openAgentDb(path);
      return db.sqlite.prepare("SELECT domain, host, items FROM purge").all();
    };
    newerFile(path, 99, `${purge}; ${refused}`);
    expect(purges()).toEqual([{ domain: "a.example", host: null, items: '{"urls":["/x"]}' }]);
    newerFile(path, 99, `ALTER TABLE purge ADD COLUMN weight INTEGER; ${refused}`);
    expect(purges()).toEqual([]);
    newerFile(path, 99, `DROP TABLE purge; ${refused}`);
    expect(purges()).toEqual([]);
  });

  test("the newest three that were set aside are kept, whatever damaged ones lie there", () => {
    for (let round = 1; round <= 5; round++) {
      newerFile(path, 99, refused);
      using db = openAgentDb(path);
      expect(db.newer?.setAside).toBe(`${path}.newer-${round}`);
    }
    const kept = readdirSync(dir.path).filter((name) => /newer-\d+$/.test(name));
    expect(kept.sort()).toEqual([3, 4, 5].map((no) => `agent.db.newer-${no}`));
  });
});

// Whoever adds a migration decides here whether an older release may use what it leaves; agentSchema says when it may.
test("from which schema on a program may use a file of this release", () => {
  expect(agentSchema).toEqual({ version: 4, compatibleFrom: 4 });
});
