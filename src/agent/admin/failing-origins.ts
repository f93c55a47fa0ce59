// Raises the health warning `origin_failing` for domains whose origin fails most of what it is asked. It looks at real requests alone, as the workers
// counted them: no answer, or an answer with a status of 500 or more.
//
// A run of failures begins with a look at which half of the requests failed. What it tells is counted from that look on: of the requests before it
// nobody knows which came before the origin failed. It is told once it lasted for a minute and made ten requests. How bad it is goes by the last
// minute, or by the last ten requests where a minute has fewer. It is over after two looks in a row at which most were answered, or when nobody asked for ten minutes.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import type { MetricsData } from "../../base/metrics.ts";
import { sumsByDomain, sumsByKind } from "./domain-reports.ts";

/** The most domains that are warned of at one time, for reports carry all warnings. */
export const failingWarnedMax = 100;
export const failingShare = 0.5;
const failingErrorShare = 0.95;
export const failingLeastMs = 60_000;
/** Two looks are a minute apart but for this: else it would be told a look later, by chance. */
const lookSlackMs = 5_000;
export const failingLeastRequests = 10;
export const failingQuietMs = 600_000;
const goodLooks = 2;

const code = "origin_failing";
const hint =
  "Look at the origin, and at the network to it: `accel-agent netcheck` asks it from here, and the agent's log has the reasons. What is cached is served meanwhile.";

/** What a request got, by the label `kind` of accel_agent_origin_errors_total. */
const unansweredGot: Readonly<Record<string, string>> = {
  unreachable: "no connection",
  timeout: "no answer in time",
  broken: "a broken answer",
  busy: "no free connection",
};

type Counts = {
  readonly requests: number;
  readonly unanswered: number;
  readonly refused: number;
  /** Those without an answer, by kind. */
  readonly kinds: ReadonlyMap<string, number>;
};

type Look = { readonly atMs: number; readonly counts: Counts };

/** A run of failures. */
type Run = {
  readonly beganAt: Date;
  /** The look that found it. */
  readonly first: Look;
  /** Looks since then, the oldest first: those that the last minute, and the last ten requests, begin with or hold. */
  readonly lately: Look[];
  lastAskedMs: number;
  good: number;
  isTold: boolean;
};

export class FailingOrigins {
  readonly #health: Health;
  readonly #log: Pick<Log, "warn" | "info">;
  readonly #now: () => Date;
  readonly #counts = new Map<string, Counts>();
  readonly #runs = new Map<string, Run>();
  #told = 0;

  constructor({
    health,
    log,
    now,
  }: {
    readonly health: Health;
    readonly log: Pick<Log, "warn" | "info">;
    readonly now: () => Date;
  }) {
    this.#health = health;
    this.#log = log;
    this.#now = now;
  }

  /** Takes the counts and warns. `nowMs` is of a monotonic clock. A domain that is no longer served is forgotten. */
  take(parts: readonly MetricsData[], domains: readonly string[], nowMs: number): void {
    const requests = sumsByDomain(parts, "accel_agent_origin_requests_total");
    const unanswered = sumsByDomain(parts, "accel_agent_origin_errors_total");
    const refused = sumsByDomain(parts, "accel_agent_origin_server_errors_total");
    const byKind = [...sumsByKind(parts, "accel_agent_origin_errors_total")];
    const served = new Set(domains);
    for (const domain of this.#counts.keys()) if (!served.has(domain)) this.#forget(domain);
    for (const domain of served) {
      const now = {
        requests: requests.get(domain) ?? 0,
        unanswered: unanswered.get(domain) ?? 0,
        refused: refused.get(domain) ?? 0,
        kinds: new Map(byKind.map(([kind, sums]) => [kind, sums.get(domain) ?? 0])),
      };
      // What was asked before the first look says nothing about now.
      const before = this.#counts.get(domain) ?? now;
      this.#counts.set(domain, now);
      this.#look(domain, before, now, nowMs);
    }
  }

  #look(domain: string, before: Counts, now: Counts, nowMs: number): void {
    const asked = now.requests - before.requests;
    const isBad = asked > 0 && failed(before, now) / asked >= failingShare;
    const run = this.#runs.get(domain);
    if (run === undefined) {
      if (!isBad) return;
      const first = { atMs: nowMs, counts: now };
      const began = { beganAt: this.#now(), first, lately: [first] };
      this.#runs.set(domain, { ...began, lastAskedMs: nowMs, good: 0, isTold: false });
      return;
    }
    if (asked > 0) {
      run.lately.push({ atMs: nowMs, counts: now });
      run.lastAskedMs = nowMs;
      run.good = isBad ? 0 : run.good + 1;
    }
    if (run.good >= goodLooks || nowMs - run.lastAskedMs >= failingQuietMs) this.#end(domain);
    else if (isBad) this.#warn(domain, run, now, nowMs);
  }

  #warn(domain: string, run: Run, now: Counts, nowMs: number): void {
    const { first, lately, beganAt } = run;
    const before = first.counts;
    const asked = now.requests - before.requests;
    const lastedMs = nowMs - first.atMs + lookSlackMs;
    if (lastedMs < failingLeastMs || asked < failingLeastRequests) return;
    // Also of a domain that is not warned of: looks are left out here.
    const share = shareLately(lately, now, nowMs);
    if (!run.isTold && this.#told >= failingWarnedMax) return;
    const unanswered = now.unanswered - before.unanswered;
    const refused = now.refused - before.refused;
    const text = `the origin of ${domain} failed ${unanswered + refused} of ${asked} requests since ${beganAt.toISOString()}: ${whatTheyGot(before, now)}`;
    if (!run.isTold) {
      this.#told += 1;
      this.#log.warn({ code, domain, asked, unanswered, refused }, text);
    }
    run.isTold = true;
    this.#health.raise(code, share >= failingErrorShare ? "error" : "warning", text, hint, domain);
  }

  #end(domain: string): void {
    if (this.#runs.get(domain)?.isTold === true) {
      this.#told -= 1;
      this.#health.settle(code, domain);
      this.#log.info({ code, domain }, `the origin of ${domain} fails no longer`);
    }
    this.#runs.delete(domain);
  }

  #forget(domain: string): void {
    this.#counts.delete(domain);
    this.#end(domain);
  }
}

/** Says what the failed requests got instead of an answer, the most frequent first. */
function whatTheyGot(before: Counts, now: Counts): string {
  const kinds = [...now.kinds].map(([kind, count]) => {
    const got = unansweredGot[kind] ?? `no answer (${kind})`;
    return { got, count: count - (before.kinds.get(kind) ?? 0) };
  });
  return [...kinds, { got: "a status of 500 or more", count: now.refused - before.refused }]
    .filter(({ count }) => count > 0)
    .toSorted((one, other) => other.count - one.count)
    .map(({ got, count }, no) => `${count} ${no === 0 ? "got " : ""}${got}`)
    .join(", ");
}

/** Leaves out the looks that are older than is asked for, and returns which share of the requests since the oldest that is left failed. */
function shareLately(lately: Look[], now: Counts, nowMs: number): number {
  const isEnough = ({ atMs, counts }: Look): boolean =>
    nowMs - atMs >= failingLeastMs && now.requests - counts.requests >= failingLeastRequests;
  const enough = lately.findLastIndex(isEnough);
  if (enough > 0) lately.splice(0, enough);
  const [oldest] = lately;
  if (oldest === undefined) return 0;
  return failed(oldest.counts, now) / Math.max(1, now.requests - oldest.counts.requests);
}

/** A counter that fell is of a worker that came anew: it counts as nothing. */
function failed(before: Counts, now: Counts): number {
  return Math.max(0, now.unanswered + now.refused - before.unanswered - before.refused);
}
