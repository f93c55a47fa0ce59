// When the table thread is there: from a build that has a set, until it has had nothing to do for a while. Where reading anew would hold up a change, it stays.

import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SetStore } from "../../../../src/agent/bots/sets/set-store.ts";
import { TableClient } from "../../../../src/agent/bots/tables/table-client.ts";
import { openAgentDb } from "../../../../src/agent/link/agent-db.ts";
import { Health } from "../../../../src/base/health.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../../../src/core/addresses/set-digest.ts";
import { parseSha256 } from "../../../../src/core/ids.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const host = "www.example.com";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

class Rig implements AsyncDisposable {
  readonly tables: TableClient;
  readonly errors: unknown[] = [];
  readonly #store: SetStore;
  readonly #stack: AsyncDisposableStack;
  #version = 0;
  #inForce: 0 | 1 = 0;

  constructor() {
    this.#stack = new AsyncDisposableStack();
    const dir = this.#stack.use(tempDir());
    const dbPath = join(dir.path, "agent.db");
    const db = this.#stack.use(openAgentDb(dbPath, "/nowhere"));
    db.put({ domains: { domains: [{ name: host, sub_domains: [] }] } });
    const log = silentLog();
    log.error = (said: unknown): void => void this.errors.push(said);
    this.tables = this.#stack.use(
      new TableClient({
        entry: new URL("../../../../src/agent/tabler.ts", import.meta.url),
        dbPath,
        health: new Health(() => new Date()),
        log,
        registry: new Registry(),
        random: () => 0,
        stop: new AbortController().signal,
      }),
    );
    this.#store = new SetStore(db.sqlite, (delta) => this.tables.note(delta));
  }

  /** Adds elements to the set, builds, and returns the version of the set that the tables have. */
  async build(from: readonly SetElement[], added: readonly SetElement[]): Promise<number> {
    const digest = changedSetDigest(emptySetDigest, [...from, ...added], []);
    const applied = this.#store.applyDelta({
      domain: host,
      set: "bad",
      from_version: this.#version,
      to_version: ++this.#version,
      added: [...added],
      removed: [],
      count: from.length + added.length,
      digest: parseSha256(digest) ?? expect.unreachable(),
      shrink_meant: false,
    });
    expect(applied.kind).toBe("applied");
    const { arena, sets } = await this.tables.build(this.#store.list(), this.#inForce);
    this.#inForce = arena;
    return sets.get(`bad/${host}`)?.version ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

const elements = (count: number, bot: string): readonly SetElement[] =>
  Array.from({ length: count }, (_, at) => ({
    bot,
    range: `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`,
  }));

test("it ends when it had nothing to do, without an error, and the next change starts it again", async () => {
  await using rig = new Rig();
  expect(rig.tables.isRunning).toBe(false);
  const first = elements(400, "one");
  expect(await rig.build([], first)).toBe(1);
  vi.advanceTimersByTime(29_000);
  const second = [{ bot: "two", range: "192.0.2.7" }];
  expect(await rig.build(first, second)).toBe(2);
  vi.advanceTimersByTime(29_000);
  expect(rig.tables.isRunning).toBe(true);
  vi.advanceTimersByTime(1_000);
  expect(rig.tables.isRunning).toBe(false);
  expect(rig.errors).toEqual([]);
  expect(await rig.build([...first, ...second], [{ bot: "three", range: "192.0.2.8" }])).toBe(3);
  expect(rig.tables.isRunning).toBe(true);
});

test("it stays for sets that take long to be read", async () => {
  await using rig = new Rig();
  expect(await rig.build([], elements(20_001, "many"))).toBe(1);
  vi.advanceTimersByTime(3_600_000);
  expect(rig.tables.isRunning).toBe(true);
});
