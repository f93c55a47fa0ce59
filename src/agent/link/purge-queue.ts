// Purges that were carried out here and that central is to be told of, so that it tells the other accelerators.
// What is added is in agent.db before the sender of the purge has his answer, and leaves it when central has
// written the clear. What comes within 100 ms is one message for each domain.
//
// Sent again after a lost answer it is one clear too many at central, which does no harm.

import type { Log } from "../../base/log.ts";
import type { Health } from "../../base/health.ts";
import { createMetrics, type Registry } from "../../base/metrics.ts";
import type { AgentDb } from "./agent-db.ts";
import { sleep } from "../../base/wait.ts";
import { backoffMs, refusedBackoff } from "../../core/backoff.ts";
import { codeOf, messageOf } from "../../core/faults.ts";
import {
  everythingLike,
  joinItems,
  type PurgeItems,
  type PurgeScope,
} from "../../core/purge/purge-items.ts";
import type { PurgeMessage } from "../../wire/purge.ts";
import type { CentralClient } from "./central-client.ts";
import { isNobodyThere } from "./refusal.ts";

const gatherMs = 100;
/** Messages of one domain that are under way at a time: central holds each for two seconds at most. */
const underWayMax = 32;
/** The most purges of one domain that wait; more become one of everything. */
const waitingMax = 1_000;
const retry = { firstMs: 1_000, mostMs: 30_000 };
/** How often it fails before operators are told. */
const failuresMax = 3;

export const purgeQueueMetrics = {
  accel_agent_purges_queued: {
    kind: "gauge",
    help: "Clears by purge requests that central has not taken yet.",
  },
  accel_agent_purges_told_total: {
    kind: "counter",
    help: "Messages by which central was told of clears by purge requests.",
    labels: ["domain"],
  },
} as const;

export type PurgeQueueOptions = {
  readonly db: Pick<AgentDb, "sqlite" | "transact">;
  readonly instanceId: string;
  readonly client: Pick<CentralClient, "postPurge">;
  readonly registry: Registry;
  readonly health: Health;
  readonly log: Log;
  readonly random: () => number;
  readonly stop: AbortSignal;
};

type Row = { readonly id: number; readonly items: PurgeItems };
/** The purges of one scope. */
type Lane = {
  readonly scope: PurgeScope;
  waiting: Row[];
  isGathering: boolean;
  /** Messages, and the purges in them. */
  underWay: number;
  purgesUnderWay: number;
};

const problem = "purges_untold";

/** Copies the items into what the message carries. */
function messageItems({ everything, soft, ...lists }: PurgeItems): PurgeMessage["items"] {
  const copies = Object.entries(lists).map(([list, texts]) => [list, [...texts]] as const);
  return {
    ...Object.fromEntries(copies),
    ...(everything === true && { everything }),
    ...(soft === true && { soft }),
  };
}

const joinedOf = (rows: readonly Row[]): PurgeItems =>
  rows.reduce<PurgeItems>((all, { items }) => joinItems(all, items), {});

export class PurgeQueue implements AsyncDisposable {
  readonly #options: PurgeQueueOptions;
  readonly #metrics;
  readonly #own = new AbortController();
  readonly #stop: AbortSignal;
  readonly #lanes = new Map<string, Lane>();
  readonly #working = new Set<Promise<void>>();
  readonly #insert;
  readonly #remove;

  /** Goes on with what is in the database. */
  constructor(options: PurgeQueueOptions) {
    this.#options = options;
    this.#metrics = createMetrics(purgeQueueMetrics, options.registry);
    this.#stop = AbortSignal.any([options.stop, this.#own.signal]);
    const { sqlite } = options.db;
    this.#insert = sqlite.prepare<[string, string | null, string]>(
      "INSERT INTO purge (domain, host, items) VALUES (?, ?, ?)",
    );
    this.#remove = sqlite.prepare<[number]>("DELETE FROM purge WHERE id = ?");
    const rows = sqlite
      .prepare<[], { id: number; domain: string; host: string | null; items: string }>(
        "SELECT id, domain, host, items FROM purge ORDER BY id",
      )
      .all();
    for (const { id, domain, host, items } of rows)
      // As `add` wrote them.
      this.#lane({ domain, host }).waiting.push({ id, items: JSON.parse(items) as PurgeItems });
    this.#count();
    for (const lane of this.#lanes.values()) this.#gather(lane);
  }

  /** Durable on return. Throws what the database throws. */
  add(scope: PurgeScope, items: PurgeItems): void {
    const lane = this.#lane(scope);
    const isTooMuch = lane.waiting.length >= waitingMax;
    const added = isTooMuch ? joinItems(joinedOf(lane.waiting), everythingLike(items)) : items;
    const id = this.#options.db.transact(() => {
      if (isTooMuch) for (const row of lane.waiting) this.#remove.run(row.id);
      const { lastInsertRowid } = this.#insert.run(scope.domain, scope.host, JSON.stringify(added));
      return Number(lastInsertRowid);
    });
    if (isTooMuch) lane.waiting = [];
    lane.waiting.push({ id, items: added });
    this.#count();
    this.#gather(lane);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#own.abort();
    await Promise.all(this.#working);
  }

  #lane(scope: PurgeScope): Lane {
    const key = `${scope.domain} ${scope.host ?? ""}`;
    const none = { waiting: [], isGathering: false, underWay: 0, purgesUnderWay: 0 };
    const lane: Lane = this.#lanes.get(key) ?? { scope, ...none };
    this.#lanes.set(key, lane);
    return lane;
  }

  #count(): void {
    const lanes = [...this.#lanes.values()];
    const counts = lanes.map(({ waiting, purgesUnderWay }) => waiting.length + purgesUnderWay);
    this.#metrics.accel_agent_purges_queued.set(counts.reduce((sum, count) => sum + count, 0));
  }

  #gather(lane: Lane): void {
    const isFull = lane.underWay >= underWayMax;
    if (lane.isGathering || isFull || lane.waiting.length === 0 || this.#stop.aborted) return;
    lane.isGathering = true;
    const work = this.#send(lane).finally(() => this.#working.delete(work));
    this.#working.add(work);
  }

  async #send(lane: Lane): Promise<void> {
    const isOn = await sleep(gatherMs, this.#stop);
    lane.isGathering = false;
    if (!isOn) return;
    const rows = lane.waiting;
    lane.waiting = [];
    lane.underWay++;
    lane.purgesUnderWay += rows.length;
    try {
      if (await this.#tell(lane, rows)) this.#forget(rows);
    } finally {
      lane.underWay--;
      lane.purgesUnderWay -= rows.length;
      this.#count();
      this.#gather(lane);
    }
  }

  /** Resolves with true when central has taken or refused it for good, with false when the agent stops. */
  async #tell({ scope }: Lane, rows: readonly Row[]): Promise<boolean> {
    const { client, instanceId, health, log, random } = this.#options;
    const { domain, host } = scope;
    let items = joinedOf(rows);
    for (let failures = 0; ; failures++) {
      try {
        const told = { instance_id: instanceId, domain, host, items: messageItems(items) };
        await client.postPurge(told, this.#stop);
        this.#metrics.accel_agent_purges_told_total.inc({ domain });
        health.settle(problem);
        return true;
      } catch (error) {
        if (this.#stop.aborted) return false;
        const code = codeOf(error);
        const { soft, ...hard } = items;
        const isHopeless = code === "MESSAGE_INVALID" && items.everything === true && !soft;
        if (code === "CONFLICT" || isHopeless) {
          log.warn({ domain, error: messageOf(error) }, "central does not take a purge");
          return true;
        }
        // What one release wrote, another may not take.
        if (code === "MESSAGE_INVALID") items = soft === true ? hard : { everything: true };
        if (failures === failuresMax)
          health.raise(
            problem,
            "warning",
            `central could not be told of purges of ${domain}: ${messageOf(error)}`,
            "They are in force on this host, and the other accelerators serve what they have until central is told. It is tried again.",
          );
        const again = isNobodyThere(error) ? refusedBackoff : retry;
        if (!(await sleep(backoffMs(failures, random(), again), this.#stop))) return false;
      }
    }
  }

  #forget(rows: readonly Row[]): void {
    try {
      this.#options.db.transact(() => {
        for (const { id } of rows) this.#remove.run(id);
      });
    } catch (error) {
      // They are told once more after the next start, which does no harm.
      this.#options.log.warn({ error: messageOf(error) }, "told purges could not be forgotten");
    }
  }
}
