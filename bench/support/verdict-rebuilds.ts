// A set of a million ranges that changes again and again under visitors: how long a change takes to be in force, what the workers' loops and the memory of the
// process show of it.

import { SocketCalls } from "../../src/base/socket-calls.ts";
import { sameRules } from "../../test/support/same-rules.ts";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { openWorkers } from "../../src/agent/accelerator/pool/workers.ts";
import { SetStore } from "../../src/agent/bots/sets/set-store.ts";
import { TableClient } from "../../src/agent/bots/tables/table-client.ts";
import { openAgentDb } from "../../src/agent/link/agent-db.ts";
import { LinkedDomains, Serving } from "../../src/agent/steering/serving.ts";
import { Health } from "../../src/base/health.ts";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { parseSha256 } from "../../src/core/ids.ts";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../src/core/addresses/set-digest.ts";
import { ask, host } from "../../test/agent/accelerator/edge.ts";
import { tempDir } from "../../test/support/temp-dir.ts";
import { percentile, type Figures } from "./figures.ts";
import { randomRanges } from "./random-ranges.ts";
import type { ProbedParts } from "./probed-worker.ts";

const count = 1_000_000;
const changes = 80;
const wholes = 20;
const changedElements = 100;
const partElements = 5_000;
const rounds = 5;
const idleMs = 3_000;
const visitorPauseMs = 10;

export async function measureRebuilds(figures: Figures): Promise<void> {
  using dir = tempDir();
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  stack.defer(() => stop.abort());
  const common = { health: new Health(() => new Date()), log: silentLog(), stop: stop.signal };
  const dbPath = join(dir.path, "agent.db");
  const db = stack.use(openAgentDb(dbPath, "/nowhere"));
  db.put({ domains: { domains: [{ name: host, sub_domains: [] }] } });
  const options = { ...common, random: Math.random };
  const entry = new URL("../../src/agent/tabler.ts", import.meta.url);
  const tables = stack.use(
    new TableClient({ entry, dbPath, registry: new Registry(), ...options }),
  );
  const store = new SetStore(db.sqlite, (delta) => tables.note(delta));
  /** Nobody is told what changed here: the whole set must be read. */
  const quiet = new SetStore(db.sqlite);
  const set = await LargeSet.open(store);
  const probes: MessagePort[] = [];
  const pool = stack.use(
    await openWorkers({
      count: 1,
      sockets: { calls: new SocketCalls() },
      entry: new URL("./probed-worker.ts", import.meta.url),
      openParts: () => {
        const { port1, port2 } = new MessageChannel();
        probes.push(port1);
        stack.defer(() => port1.close());
        const data: ProbedParts = { probe: port2 };
        return { data, transfer: [port2] };
      },
      listen: { host: "127.0.0.1", port: 0 },
      proxies: { trusted: [], forwardedHeader: "x-forwarded-for", proxyProtocol: "off" },
      defaultDomain: null,
      blobsDir: dir.path,
      drainGraceMs: 500,
      registry: new Registry(),
      ...options,
    }),
  );
  const locals = { get: () => undefined, look: async () => undefined };
  const serving = new Serving({
    documents: db,
    linked: new LinkedDomains(),
    sets: store,
    tables,
    locals,
    pool,
    queryRules: sameRules,
    now: () => new Date(),
  });
  const began = performance.now();
  await serving.restoreSets();
  figures.add("a million ranges from agent.db at boot", (performance.now() - began) / 1_000, "s");
  await serving.publish();
  await pool.start();
  const lateness = async (): Promise<readonly number[]> => {
    const [probe] = probes;
    const { promise, resolve } = Promise.withResolvers<readonly number[]>();
    probe?.once("message", resolve);
    probe?.postMessage("now", []);
    return promise;
  };
  const visitors = new AbortController();
  const visiting = (async (): Promise<void> => {
    for (; !visitors.signal.aborted; await sleep(visitorPauseMs)) await ask(pool, "/");
  })();
  const seen: Seen = { idle: [], busy: [], changeMs: [], wholeMs: [], resident: [] };
  const run = async (times: number, into: number[], change: () => void): Promise<void> => {
    for (let no = 0; no < times; no++) {
      change();
      const committed = performance.now();
      await serving.publishSets();
      into.push(performance.now() - committed);
      seen.resident.push(process.memoryUsage.rss());
    }
  };
  await sleep(idleMs);
  await lateness();
  // In turns, so that what else the machine does falls on both alike.
  for (let round = 0; round < rounds; round++) {
    await sleep(idleMs);
    seen.idle.push(...(await lateness()));
    await run(wholes / rounds, seen.wholeMs, () => set.change(quiet, 1));
    await run(changes / rounds, seen.changeMs, () => set.change(store, changedElements));
    seen.busy.push(...(await lateness()));
  }
  visitors.abort();
  await visiting;
  tell(figures, seen);
}

type Seen = Readonly<Record<"idle" | "busy" | "changeMs" | "wholeMs" | "resident", number[]>>;

function tell(figures: Figures, { idle, busy, changeMs, wholeMs, resident }: Seen): void {
  const what = `${changedElements} of a million changed, from commit to in force, p50`;
  const tail = `p99 ${percentile(changeMs, 0.99).toFixed(0)} ms`;
  figures.add(what, percentile(changeMs, 0.5), "ms", { most: 60 }, tail);
  figures.add("the whole set read and compiled anew, p50", percentile(wholeMs, 0.5), "ms");
  const [idleP99, busyP99] = [percentile(idle, 0.99), percentile(busy, 0.99)];
  figures.add("worker's loop late, nothing changing, p99", idleP99, "ms");
  const during = `worker's loop late, ${changes + wholes} rebuilds and flips, p99`;
  const ratio = `${(busyP99 / idleP99).toFixed(2)} × idle`;
  figures.add(during, busyP99, "ms", { most: 2 * idleP99 }, ratio);
  // Peaks of like work: each half holds whole builds and changes.
  const half = resident.length / 2;
  const [early, late] = [Math.max(...resident.slice(0, half)), Math.max(...resident.slice(half))];
  figures.add("resident, first half of the rebuilds", early / 2 ** 20, "MiB");
  figures.add("resident, second half", late / 2 ** 20, "MiB", { most: (1.1 * early) / 2 ** 20 });
}

/** Changes of the set in agent.db as central would tell them. */
class LargeSet {
  /** Those that will be removed, one after another. */
  readonly #going: SetElement[];
  #version = 1;
  #digest: string;
  #no = 0;

  private constructor(elements: readonly SetElement[], digest: string) {
    this.#going = elements.slice(0, changes * changedElements + wholes);
    this.#digest = digest;
  }

  static async open(store: SetStore): Promise<LargeSet> {
    const elements = randomRanges(4, count, 4);
    const digest = changedSetDigest(emptySetDigest, elements, []);
    const parts = async function* (): AsyncGenerator<readonly SetElement[]> {
      for (let at = 0; at < count; at += partElements) yield elements.slice(at, at + partElements);
    };
    const want = { host, kind: "bad" as const, version: 1, count, digest };
    await store.replace(want, parts(), new AbortController().signal);
    return new LargeSet(elements, digest);
  }

  change(store: SetStore, many: number): void {
    const removed = this.#going.splice(0, many);
    const added = removed.map(() => ({
      bot: "fresh",
      range: `2001:db8::${(++this.#no).toString(16)}`,
    }));
    const after = changedSetDigest(this.#digest, added, removed);
    const digest = parseSha256(after);
    if (digest === undefined) throw new Error(after);
    const [from, to] = [this.#version, ++this.#version];
    const body = { from_version: from, to_version: to, added, removed, count, digest };
    const { kind } = store.applyDelta({ domain: host, set: "bad", ...body, shrink_meant: false });
    if (kind !== "applied") throw new Error(kind);
    this.#digest = after;
  }
}
