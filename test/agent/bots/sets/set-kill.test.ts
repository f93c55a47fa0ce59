// kill -9 while a whole set is written: the set of before is in force as if nothing had happened, and what was half written is swept.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { SetStore } from "../../../../src/agent/bots/sets/set-store.ts";
import { openAgentDb } from "../../../../src/agent/link/agent-db.ts";
import { changedSetDigest, emptySetDigest } from "../../../../src/core/addresses/set-digest.ts";
import { batches, KeptTables } from "../../../support/bot-tables.ts";
import { node } from "../../../support/process.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import type { HalfWay } from "../slow-replace.ts";

const host = "www.example.com";
const never = new AbortController().signal;
const one = { bot: "a", range: "192.0.2.1" };
const two = { bot: "b", range: "192.0.2.2" };

test("what was in force before the kill is in force after it", async () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  const want = (version: number, elements: readonly (typeof one)[]) => ({
    host,
    kind: "bad" as const,
    version,
    count: elements.length,
    digest: changedSetDigest(emptySetDigest, elements, []),
  });
  {
    using db = openAgentDb(path, "/nowhere");
    await new SetStore(db.sqlite).replace(want(3, [one]), batches([one]), never);
  }
  const program = fileURLToPath(new URL("../slow-replace.ts", import.meta.url));
  const child = spawn(node, [program, path, host], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said: HalfWay = "half-way";
  expect(String(await once(child.stdout, "data"))).toBe(said);
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  expect((await exited)[1]).toBe("SIGKILL");

  using db = openAgentDb(path, "/nowhere");
  const rows = (): unknown => db.sqlite.prepare("SELECT count(*) FROM bot_range").pluck().get();
  expect(rows()).toBeGreaterThan(1_000);
  const tables = new KeptTables(db.sqlite);
  expect(tables.store.list()).toEqual([want(3, [one])]);
  expect(tables.holder(host, "192.0.2.1")).toBe("a");
  expect(tables.holder(host, "10.0.0.1")).toBeUndefined();
  await tables.store.sweep(never);
  expect(rows()).toBe(1);
  await tables.store.replace(want(9, [one, two]), batches([one, two]), never);
  expect(tables.store.list()).toEqual([want(9, [one, two])]);
  expect(tables.holder(host, "192.0.2.2")).toBe("b");
  expect(rows()).toBe(2);
});

test("since when an element is there outlives a whole set", async () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"), "/nowhere");
  const store = new SetStore(db.sqlite);
  const want = (version: number, elements: readonly (typeof one)[]) => ({
    host,
    kind: "vip" as const,
    version,
    count: elements.length,
    digest: changedSetDigest(emptySetDigest, elements, []),
  });
  await store.replace(want(1, [one]), batches([one]), never);
  db.sqlite.exec("UPDATE bot_range SET added_at = 7");
  await store.replace(want(2, [one, two]), batches([one, two]), never);
  expect(
    db.sqlite.prepare("SELECT bot, added_at = 7 FROM bot_element ORDER BY bot").raw().all(),
  ).toEqual([
    ["a", 1],
    ["b", 0],
  ]);
});

test("only the element itself, in the set that it was in, says since when it is there", async () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"), "/nowhere");
  const store = new SetStore(db.sqlite);
  const replace = async (of: string, version: number, elements: readonly (typeof one)[]) =>
    store.replace(
      {
        host: of,
        kind: "bad",
        version,
        count: elements.length,
        digest: changedSetDigest(emptySetDigest, elements, []),
      },
      batches(elements),
      never,
    );
  const others = [
    { bot: "a", range: "192.0.2.2" },
    { bot: "b", range: "192.0.2.1" },
    { bot: "c", range: "192.0.2.3" },
  ];
  await replace(host, 1, [one]);
  await replace("www.example.org", 1, others);
  db.sqlite.exec("UPDATE bot_range SET added_at = 7");
  await replace(host, 2, [one, ...others]);
  const rows = db.sqlite.prepare(
    "SELECT bot, range FROM bot_element WHERE host = ? AND added_at = 7",
  );
  expect(rows.raw().all(host)).toEqual([["a", "192.0.2.1"]]);
});

test("a set that is given up when all of it has come leaves the one of before", async () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"), "/nowhere");
  const store = new SetStore(db.sqlite);
  const want = (version: number, element: typeof one) => ({
    host,
    kind: "bad" as const,
    version,
    count: 1,
    digest: changedSetDigest(emptySetDigest, [element], []),
  });
  await store.replace(want(1, one), batches([one]), never);
  const stop = new AbortController();
  async function* ending() {
    yield [two];
    stop.abort();
  }
  await expect(store.replace(want(2, two), ending(), stop.signal)).rejects.toThrow("abort");
  expect(store.list()).toEqual([want(1, one)]);
});

test("a set that is given up half-way leaves the one of before", async () => {
  using dir = tempDir();
  using db = openAgentDb(join(dir.path, "agent.db"), "/nowhere");
  const store = new SetStore(db.sqlite);
  const digest = changedSetDigest(emptySetDigest, [one], []);
  const set = { host, kind: "bad" as const, version: 1, count: 1, digest };
  await store.replace(set, batches([one]), never);
  const stop = new AbortController();
  async function* broken() {
    yield [two];
    stop.abort();
    yield [one];
  }
  const other = { ...set, version: 2, count: 2 };
  await expect(store.replace(other, broken(), stop.signal)).rejects.toThrow("abort");
  expect(store.list()).toEqual([set]);
  await store.sweep(never);
  expect(db.sqlite.prepare("SELECT bot FROM bot_range").pluck().all()).toEqual(["a"]);
});
