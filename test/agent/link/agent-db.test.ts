// agent.db: documents, an instance id that belongs to one machine, a damaged file that is set aside.

import { copyFileSync, readdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { openAgentDb } from "../../../src/agent/link/agent-db.ts";
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
      db.ledger.restart({ ...position, receipt: undefined, imports: [] });
    }
    copyFileSync(path, copy);
    {
      using db = openAgentDb(copy, machineId);
      expect(db.instanceId).not.toBe(first);
      expect(db.ledger.position.epoch).toBeNull();
    }
    using db = openAgentDb(path, machineId);
    expect(db.instanceId).toBe(first);
    expect(db.ledger.position).toEqual(position);
  }
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

test("a file of a newer release is refused and left as it is", () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  openAgentDb(path)[Symbol.dispose]();
  const raw = new Database(path);
  raw.pragma("user_version = 99");
  raw.close();
  expect(() => openAgentDb(path)).toThrow(expect.objectContaining({ code: "DATABASE_NEWER" }));
  expect(readdirSync(dir.path).some((name) => name.includes("corrupt"))).toBe(false);
});
