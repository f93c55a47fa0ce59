// The active checks of origins (`backend.health`), made once for the whole agent by main; workers are told which origins are down and ask those last.

import { MessageChannel, type MessagePort } from "node:worker_threads";
import { Client } from "undici";
import { createMetrics, type Instruments } from "../../../base/metrics.ts";
import { sleep } from "../../../base/wait.ts";
import { messageOf } from "../../../core/faults.ts";
import {
  checkedOnce,
  checkPauseS,
  planChecks,
  unchecked,
  type CheckedOrigin,
  type CheckVerdict,
  type OriginCheck,
} from "../../../core/serving/origin-checks.ts";
import type { ServingState } from "../../../core/serving/serving-state.ts";
import { originConnector, type OriginGuard } from "./origin-connector.ts";

export type OriginChecksOptions = Instruments & {
  readonly guard: OriginGuard;
  readonly random: () => number;
};

type Watch = {
  readonly check: OriginCheck;
  readonly stop: AbortController;
  ended: Promise<void>;
  /** Undefined before the first check. */
  last: CheckedOrigin | undefined;
};

export const originMetrics = {
  accel_agent_origin_checks_total: {
    kind: "counter",
    help: "Active checks of origins (backend.health) by outcome: good or bad.",
    labels: ["domain", "outcome"],
  },
  accel_agent_origins_down: {
    kind: "gauge",
    help: "Origins that fail their active check (backend.health) and are asked last.",
    labels: ["domain"],
  },
} as const;

/** The first check of an origin comes within it. */
const firstWithinMs = 1_000;
const userAgent = "accel-agent (health check)";

export class OriginChecks implements AsyncDisposable {
  readonly #options: OriginChecksOptions;
  readonly #metrics;
  readonly #watches = new Map<string, Watch>();
  /** The checks that were stopped and have not ended. */
  readonly #ending = new Set<Promise<void>>();
  readonly #down = new Map<string, OriginCheck>();
  readonly #ports = new Set<MessagePort>();
  /** Main domains with origins that nobody checks. */
  #partly: ReadonlySet<string> = new Set();

  constructor(options: OriginChecksOptions) {
    this.#options = options;
    this.#metrics = createMetrics(originMetrics, options.registry);
  }

  /** Opens the port for one worker's start, to which it is transferred. */
  openWorker(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#ports.add(port1);
    port1.once("close", () => this.#ports.delete(port1));
    port1.unref();
    port1.postMessage([...this.#down.keys()]);
    return port2;
  }

  /** Checks the origins of this state from now on, and no others. What is in both keeps its verdict. */
  follow(state: ServingState): void {
    const { checks, leftOut, partly } = planChecks(state);
    this.#partly = partly;
    for (const key of this.#watches.keys()) if (!checks.has(key)) this.#end(key);
    for (const check of checks.values())
      if (!this.#watches.has(check.key)) this.#watches.set(check.key, this.#begin(check));
    const { health } = this.#options;
    if (leftOut === 0) health.settle("origins_unchecked");
    else {
      const text = `${leftOut} origins with backend.health are not checked: there are too many`;
      health.raise(
        "origins_unchecked",
        "warning",
        text,
        "They count as healthy. Configure fewer checks.",
      );
    }
  }

  /**
   * Returns the verdicts by main domain. A domain has none while its checks do not say yet that all of its
   * origins fail, or that one is good.
   */
  verdicts(): ReadonlyMap<string, CheckVerdict> {
    const byDomain = Map.groupBy(this.#watches.values(), ({ check }) => check.domain);
    const verdicts = new Map<string, CheckVerdict>();
    for (const [domain, watches] of byDomain) {
      if (watches.some(({ last }) => last?.failures === 0)) verdicts.set(domain, "up");
      else if (this.#partly.has(domain)) continue;
      else if (watches.every(({ last }) => last?.isDown === true)) verdicts.set(domain, "down");
    }
    return verdicts;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const key of this.#watches.keys()) this.#end(key);
    await Promise.all(this.#ending);
    for (const port of this.#ports) port.close();
  }

  #begin(check: OriginCheck): Watch {
    const watch: Watch = {
      check,
      stop: new AbortController(),
      ended: Promise.resolve(),
      last: undefined,
    };
    watch.ended = this.#watch(watch);
    return watch;
  }

  #end(key: string): void {
    const watch = this.#watches.get(key);
    if (watch === undefined) return;
    this.#watches.delete(key);
    watch.stop.abort();
    const ended = watch.ended.finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
    this.#tell(watch.check, unchecked);
    const { domain } = watch.check;
    if ([...this.#watches.values()].every(({ check }) => check.domain !== domain))
      this.#metrics.accel_agent_origins_down.remove({ domain });
  }

  async #watch(watch: Watch): Promise<void> {
    const { random, guard } = this.#options;
    const { check } = watch;
    const stop = watch.stop.signal;
    const { url, health, domain, connectTimeoutS } = check;
    const origin = new URL(url);
    await using stack = new AsyncDisposableStack();
    const connect = originConnector(origin, Math.round(connectTimeoutS * 1_000), guard);
    const client = new Client(origin.origin, { connect });
    stack.defer(async () => client.destroy());
    this.#tell(check, unchecked);
    let waitMs = random() * firstWithinMs;
    while (await sleep(waitMs, stop)) {
      const fault = await ask(client, check, stop);
      if (stop.aborted) return;
      const outcome = fault === undefined ? "good" : "bad";
      this.#metrics.accel_agent_origin_checks_total.inc({ domain, outcome });
      const known = checkedOnce(watch.last ?? unchecked, fault === undefined);
      watch.last = known;
      this.#tell(check, known, fault);
      // Whether a first failure was one is soon to be known.
      const isDoubtful = known.failures > 0 && !known.isDown;
      const intervalS = isDoubtful ? Math.min(1, health.interval_s) : health.interval_s;
      waitMs = 1_000 * checkPauseS(intervalS, this.#watches.size, random());
    }
  }

  /** Tells workers and operators a verdict that differs from the one before. */
  #tell(check: OriginCheck, { isDown }: CheckedOrigin, fault = ""): void {
    const { health, log } = this.#options;
    const { key, domain, url } = check;
    if (isDown) {
      const text = `The origin ${url} of ${domain} fails its check of ${check.health.path}: ${fault}`;
      const hint = "Requests go to the other URLs of backend.urls first. Check the origin.";
      health.raise("origin_down", "warning", text, hint, key);
    }
    const wasDown = this.#down.has(key);
    if (isDown) this.#down.set(key, check);
    else this.#down.delete(key);
    const down = [...this.#down.values()].filter((other) => other.domain === domain).length;
    this.#metrics.accel_agent_origins_down.set({ domain }, down);
    if (isDown === wasDown) return;
    if (!isDown) health.settle("origin_down", key);
    if (isDown) log.warn({ domain, url, reason: fault }, "origin fails its check");
    else log.info({ domain, url }, "origin is asked as before");
    for (const port of this.#ports) port.postMessage([...this.#down.keys()]);
  }
}

/** Checks an origin and returns what is wrong, or undefined. Never throws. */
async function ask(
  client: Client,
  { host, health }: OriginCheck,
  stop: AbortSignal,
): Promise<string | undefined> {
  const deadline = AbortSignal.timeout(Math.round(health.timeout_s * 1_000));
  try {
    const { statusCode, body } = await client.request({
      method: "GET",
      path: health.path,
      headers: { host, "user-agent": userAgent, accept: "*/*" },
      signal: AbortSignal.any([stop, deadline]),
      // An origin that accepts no connection any more is down, whatever an old one says.
      reset: true,
    });
    body.on("error", () => {}).destroy();
    return health.statuses.includes(statusCode) ? undefined : `it answered ${statusCode}`;
  } catch (error) {
    return deadline.aborted ? `no answer within ${health.timeout_s} s` : messageOf(error);
  }
}
