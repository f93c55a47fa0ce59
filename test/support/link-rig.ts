// A link over a real agent.db and towards a fake central, with appliers whose effects are counted and which can be held, failed or cut.

import { fixedSecret } from "../../src/agent/link/site-secret.ts";
import { join } from "node:path";
import { Health } from "../../src/base/health.ts";
import { silentLog, type Log } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { openAgentDb, type AgentDb } from "../../src/agent/link/agent-db.ts";
import { CentralClient } from "../../src/agent/link/central-client.ts";
import type { Appliers, EntryOutcome } from "../../src/agent/link/entry-outcome.ts";
import type { LinkTimings } from "../../src/agent/link/link-timings.ts";
import { Link } from "../../src/agent/link/link.ts";
import type { CountedBatch, EdgeFacts } from "../../src/wire/channel.ts";
import { journalKinds, type KnownEntry } from "../../src/wire/journal.ts";
import type { Snapshot } from "../../src/wire/snapshot.ts";
import { name16, secret16, type FakeCentral } from "./fake-central.ts";

/** Long where a test would otherwise be about it, short where it must happen. */
const quickTimings: Partial<LinkTimings> = {
  pingIntervalMs: 10_000,
  pollPeriodMs: 600_000,
  reportIntervalMs: 600_000,
  longPollMs: 1_000,
  longPollPauseMs: 20,
  abandonMs: 2_000,
  backoff: { firstMs: 5, mostMs: 40 },
  refused: { firstMs: 5, mostMs: 40 },
};

/** What survives a restart: the effects that appliers made, each under its identity. */
export class Effects {
  /** Kind and identity → how often it was made (not how often it was asked for). */
  readonly made = new Map<string, number>();
  /** Beginnings and ends in order: `begin 3`, `end 3`. */
  readonly trace: string[] = [];
  readonly snapshots: Snapshot[] = [];
  #held = new Map<number, PromiseWithResolvers<void>>();

  /** Entries with this seq wait before their effect until released. */
  hold(seq: number): { release: () => void } {
    const gate = Promise.withResolvers<void>();
    this.#held.set(seq, gate);
    return {
      release: () => {
        this.#held.delete(seq);
        gate.resolve();
      },
    };
  }

  async apply(entry: KnownEntry, stop: AbortSignal): Promise<EntryOutcome> {
    this.trace.push(`begin ${entry.seq}`);
    const gate = this.#held.get(entry.seq);
    if (gate !== undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      stop.addEventListener("abort", () => resolve(), { once: true });
      await Promise.race([gate.promise, promise]);
    }
    stop.throwIfAborted();
    const identity = `${entry.kind} ${JSON.stringify(entry.body)}`;
    if (!this.made.has(identity)) this.made.set(identity, 1);
    this.trace.push(`end ${entry.seq}`);
    return { phase: "applied", detail: { seq: entry.seq } };
  }

  count(kind: string): number {
    return [...this.made.keys()].filter((identity) => identity.startsWith(`${kind} `)).length;
  }
}

export type Rig = AsyncDisposable & {
  readonly link: Link;
  readonly db: AgentDb;
  readonly health: Health;
  readonly registry: Registry;
  readonly client: CentralClient;
  readonly headsApplied: () => number;
  /** How often the link found that this process had stood still. */
  readonly wakes: () => number;
  readonly sitesDeleted: () => number;
  readonly codes: () => readonly string[];
  /** Batches of counts that central acknowledged. */
  readonly counted: readonly CountedBatch[];
};

export function appliersOf(
  apply: (entry: KnownEntry, stop: AbortSignal) => Promise<EntryOutcome>,
): Appliers {
  const all = Object.keys(journalKinds).map((kind) => [kind, apply] as const);
  return Object.fromEntries(all) as Appliers; // A row for each kind.
}

export const rigEdge: EdgeFacts = {
  server_name: "edge-rig",
  edge_ip_address: "192.0.2.1",
  at_directory: "/srv",
  datacenter_place: "",
  country_code: "",
  datacenter_provider_company: "",
  metrics_advertise: "192.0.2.1:9464",
};

export function startRig(options: {
  readonly central: Pick<FakeCentral, "url">;
  readonly dir: string;
  readonly effects: Effects;
  readonly appliers?: Partial<Appliers>;
  readonly timings?: Partial<LinkTimings>;
  readonly applySnapshot?: (snapshot: Snapshot) => Promise<{ cleared: readonly string[] }>;
  readonly now?: () => Date;
  readonly log?: Log;
  /** Of each report. */
  readonly counted?: () => { readonly counted: CountedBatch };
}): Rig {
  const { central, dir, effects } = options;
  const db = openAgentDb(join(dir, "agent.db"));
  const health = new Health(() => new Date());
  const registry = new Registry();
  const stop = new AbortController();
  const client = new CentralClient({
    centralUrl: central.url,
    name16,
    secret: fixedSecret(secret16),
    stop: stop.signal,
    silenceMs: 2_000,
  });
  const counted: CountedBatch[] = [];
  let headsApplied = 0;
  let wakes = 0;
  let sitesDeleted = 0;
  const link = new Link({
    centralUrl: central.url,
    name16,
    agentVersion: "0.0.0",
    bootId: "boot",
    edge: rigEdge,
    client,
    db,
    appliers: {
      ...appliersOf(async (entry, signal) => effects.apply(entry, signal)),
      ...options.appliers,
    },
    applySnapshot: async (snapshot) => {
      effects.snapshots.push(snapshot);
      return (await options.applySnapshot?.(snapshot)) ?? { cleared: [] };
    },
    onHeadApplied: () => {
      headsApplied += 1;
    },
    onWake: () => {
      wakes += 1;
    },
    siteDeleted: async () => {
      sitesDeleted += 1;
    },
    answerDryRun: async ({ patterns }) => ({ matched: patterns.length, samples: [] }),
    report: async () => ({
      ...options.counted?.(),
      spool: { accepted: 0, delivered: 0, spooled: 0, in_memory: 0, dropped: 0 },
      domains: [],
      warnings: [],
    }),
    counted: (batch) => void counted.push(batch),
    registry,
    health,
    log: options.log ?? silentLog(),
    random: Math.random,
    now: options.now ?? (() => new Date()),
    timings: { ...quickTimings, ...options.timings },
    stop: stop.signal,
  });
  return {
    link,
    db,
    health,
    registry,
    client,
    headsApplied: () => headsApplied,
    wakes: () => wakes,
    sitesDeleted: () => sitesDeleted,
    codes: () => health.list().map(({ code }) => code),
    counted,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await link[Symbol.asyncDispose]();
      await client[Symbol.asyncDispose]();
      db[Symbol.dispose]();
    },
  };
}

export const clear = (clear_id: string): Record<string, unknown> => ({
  clear_id,
  domain: "a.example",
  host: null,
  patterns: ["path:x"],
});

export const activation = (domain: string, viewset_id = 1): Record<string, unknown> => ({
  domain,
  viewset_id,
  viewset_name: `v${viewset_id}`,
  manifest: String(viewset_id).padStart(64, "0"),
});

export const domains = (...names: string[]): Record<string, unknown> => ({
  domains: names.map((name) => ({ name, sub_domains: [] })),
});

export const mark = (to_version: number): Record<string, unknown> => ({
  domain: "a.example",
  set: "bad",
  from_version: to_version - 1,
  to_version,
  added: [],
  removed: [],
  count: 0,
  digest: "0".repeat(64),
  shrink_meant: false,
});
