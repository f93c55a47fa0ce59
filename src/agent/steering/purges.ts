// Main's side of purge requests: each is carried out on this host first, durably, and then queued for central,
// which tells the other accelerators. While a clear of a scope is under way, what comes meanwhile gathers and
// becomes the next one, so that a thousand requests cost a few clears.

import { randomUUID } from "node:crypto";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { Log } from "../../base/log.ts";
import { createMetrics, type Registry } from "../../base/metrics.ts";
import { messageOf } from "../../core/faults.ts";
import { readClearItems, type ItemKind } from "../../core/patterns/clear-items.ts";
import {
  countItems,
  givenItems,
  joinItems,
  type PurgeItems,
  type PurgeScope,
  type PurgeShare,
} from "../../core/purge/purge-items.ts";
import type { ServingState } from "../../core/serving/serving-state.ts";
import type { PurgeOrder, PurgeOutcome } from "../accelerator/purging/purge-messages.ts";
import type { IndexClient } from "../cache/index/index-client.ts";
import type { PurgeQueue } from "../link/purge-queue.ts";
import { selectedBy } from "./clear-order.ts";
import type { Serving } from "./serving.ts";

export const purgeMetrics = {
  accel_agent_purge_clears_total: {
    kind: "counter",
    help: "Clears on this host by purge requests; one may answer many requests.",
    labels: ["domain"],
  },
} as const;

export type PurgesOptions = {
  readonly index: Pick<IndexClient, "clear">;
  readonly serving: () => Pick<Serving, "state" | "giveClear">;
  readonly queue: Pick<PurgeQueue, "add">;
  readonly registry: Registry;
  readonly log: Log;
};

type Cleared = Extract<PurgeOutcome, { kind: "cleared" }>;
type Waiting = { items: PurgeItems; readonly answers: ((outcome: PurgeOutcome) => void)[] };

export class Purges implements Disposable {
  readonly #options: PurgesOptions;
  readonly #metrics;
  readonly #ports = new Set<MessagePort>();
  /** What waits for the clear that is under way, by scope. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #busy = new Set<string>();

  constructor(options: PurgesOptions) {
    this.#options = options;
    this.#metrics = createMetrics(purgeMetrics, options.registry);
  }

  /** Opens the port for one worker's start, to which it is transferred. */
  openWorker(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#ports.add(port1);
    port1.once("close", () => this.#ports.delete(port1));
    port1.on("message", ({ no, shares }: PurgeOrder) => {
      void this.clear(shares).then((outcome) => port1.postMessage({ no, outcome }));
    });
    port1.unref();
    return port2;
  }

  /** Clears all shares, or none if one of them cannot be meant. Never rejects. */
  async clear(shares: readonly PurgeShare[]): Promise<PurgeOutcome> {
    const { domains } = this.#options.serving().state;
    for (const { scope, items } of shares) {
      const message = faultOf(scope, items, domains);
      if (message !== undefined) return { kind: "refused", message };
    }
    const outcomes = await Promise.all(
      shares.map(async ({ scope, items }) => this.#join(scope, items)),
    );
    const bad = outcomes.find(({ kind }) => kind !== "cleared");
    if (bad !== undefined) return bad;
    const cleared = outcomes.filter((one): one is Cleared => one.kind === "cleared");
    return {
      kind: "cleared",
      ids: cleared.flatMap(({ ids }) => ids),
      matched: cleared.reduce((sum, { matched }) => sum + matched, 0),
    };
  }

  [Symbol.dispose](): void {
    for (const port of this.#ports) port.close();
  }

  async #join(scope: PurgeScope, items: PurgeItems): Promise<PurgeOutcome> {
    const key = `${scope.domain} ${scope.host ?? ""}`;
    const { promise, resolve } = Promise.withResolvers<PurgeOutcome>();
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, { items, answers: [resolve] });
    else {
      waiting.items = joinItems(waiting.items, items);
      waiting.answers.push(resolve);
    }
    if (!this.#busy.has(key)) void this.#run(key, scope);
    return promise;
  }

  async #run(key: string, scope: PurgeScope): Promise<void> {
    this.#busy.add(key);
    for (;;) {
      const next = this.#waiting.get(key);
      if (next === undefined) break;
      this.#waiting.delete(key);
      const outcome = await this.#clear(scope, next);
      for (const answer of next.answers) answer(outcome);
    }
    this.#busy.delete(key);
  }

  async #clear(scope: PurgeScope, { items, answers }: Waiting): Promise<PurgeOutcome> {
    const { index, queue, serving, log } = this.#options;
    const { domain } = scope;
    const clearId = `purge-${randomUUID()}`;
    try {
      const { isWhole, host, applied, gone } = await serving().giveClear(({ domains }) => {
        const read = readClearItems(givenItems(items), scope.host, hostsIn(scope, domains));
        // Together they may be more than one clear takes, though each was not.
        const all = { host: scope.host, patterns: null, isSoft: items.soft === true };
        const selected = read.ok
          ? { host: read.clear.host, ...selectedBy({ domain, ...read.clear }, { domains }) }
          : all;
        const order = index.clear({ clearId, domain, seq: 0, ...selected });
        return { isWhole: !read.ok, host: selected.host, ...order };
      });
      gone.catch(() => {}); // It rejects with `applied`; what is left to delete concerns no visitor.
      const { matched, widened, invisibleMs } = await applied;
      const soft = items.soft === true ? ({ soft: true } as const) : {};
      queue.add(scope, isWhole ? { everything: true, ...soft } : items);
      this.#metrics.accel_agent_purge_clears_total.inc({ domain });
      const told = { clear_id: clearId, domain, host, requests: answers.length };
      log.info(
        { ...told, ...soft, items: countItems(items), matched, widened, invisible_ms: invisibleMs },
        "cleared by purge requests",
      );
      return { kind: "cleared", ids: [clearId], matched };
    } catch (error) {
      log.warn({ clear_id: clearId, domain, error: messageOf(error) }, "a purge failed");
      return { kind: "failed", message: messageOf(error) };
    }
  }
}

function hostsIn(
  { domain, host }: PurgeScope,
  domains: ServingState["domains"],
): (name: string) => boolean {
  if (host !== null) return (name) => name === host;
  const hosts = domains.find(({ name }) => name === domain)?.hosts ?? [];
  const names = new Set(hosts.map(({ name }) => name));
  return (name) => names.has(name);
}

const kindNames: Readonly<Record<ItemKind, string>> = {
  urls: "URL",
  prefixes: "prefix",
  hosts: "host",
  tags: "tag",
};

function faultOf(
  scope: PurgeScope,
  items: PurgeItems,
  domains: ServingState["domains"],
): string | undefined {
  const given = givenItems(items);
  const read = readClearItems(given, scope.host, hostsIn(scope, domains));
  if (read.ok) return undefined;
  const [fault] = read.faults;
  if (fault === undefined) return "the items cannot be read";
  const { kind, at, message, suggestion } = fault;
  const meant = suggestion === undefined ? "" : `; did you mean ${suggestion}`;
  return `the ${kindNames[kind]} ${JSON.stringify(given[kind]?.[at])} ${message}${meant}`;
}
