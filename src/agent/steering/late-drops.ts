// Drops what is cached of many domains one after the other when central was restored; otherwise all agents
// would send their visitors to the origins at once.
//
//   planned ── unsure, durable ──▶ its turn, at random within the time ── dropped, durably ──▶ sure, forgotten
// Until its turn the origin confirms every hit of a domain, so nothing stale is served. After a restart the
// drops go on where they were.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { retry, sleep, orStopped } from "../../base/wait.ts";
import { messageOf } from "../../core/faults.ts";
import type { IndexClient } from "../cache/index/index-client.ts";
import type { Documents } from "../link/agent-db.ts";

export type LateDropsDeps = {
  readonly documents: Documents;
  readonly index: Pick<IndexClient, "dropDomain" | "setUnsure">;
  readonly random: () => number;
  readonly now: () => Date;
  readonly spreadMs?: number;
  readonly log: Log;
  readonly health: Pick<Health, "raise" | "settle">;
};

type Planned = { readonly domains: readonly string[]; readonly until: string };

export const spreadDefaultMs = 600_000;
const documentKey = "late_drops";
const warningCode = "cache_to_be_dropped";
/** The most domains that the warning names; the others are counted. */
const namesMax = 10;

export class LateDrops implements AsyncDisposable {
  readonly #deps: LateDropsDeps;
  readonly #spreadMs: number;
  #turns = new AbortController();
  #running = Promise.resolve();
  #left: readonly string[] = [];
  #until: string | null = null;

  /** Continues what was planned before this start. */
  constructor(deps: LateDropsDeps) {
    this.#deps = deps;
    this.#spreadMs = deps.spreadMs ?? spreadDefaultMs;
    const planned = deps.documents.get(documentKey) as Planned | undefined; // Only `#note` writes it.
    if (planned === undefined) return;
    this.#begin(planned.domains, Date.parse(planned.until));
  }

  /** Domains whose turn is to come. */
  get left(): readonly string[] {
    return this.#left;
  }

  /** The latest time of the last turn, ISO 8601; null if no turn is to come. */
  get until(): string | null {
    return this.#until;
  }

  get spreadS(): number {
    return this.#spreadMs / 1_000;
  }

  /**
   * Plans these domains beside those planned before. When it returns, each is unsure and will be dropped,
   * even after a crash.
   */
  plan(domains: readonly string[]): void {
    const all = [...new Set([...this.#left, ...domains])];
    const untilMs = this.#deps.now().getTime() + this.#spreadMs;
    this.#deps.index.setUnsure(all);
    this.#note(all, untilMs);
    this.#begin(all, untilMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#turns.abort();
    await this.#running;
  }

  #begin(domains: readonly string[], untilMs: number): void {
    const { index, random, now } = this.#deps;
    // A clock that was set back must not make the time longer than intended.
    const leftMs = Math.min(Math.max(0, untilMs - now().getTime()), this.#spreadMs);
    index.setUnsure(domains);
    this.#tell(domains, new Date(now().getTime() + leftMs));
    this.#turns.abort();
    this.#turns = new AbortController();
    const turns = domains
      .map((domain) => ({ domain, atMs: random() * leftMs }))
      .sort((a, b) => a.atMs - b.atMs);
    const { signal } = this.#turns;
    const before = this.#running;
    const until = { at: untilMs, told: new Date(now().getTime() + leftMs) };
    this.#running = (async () => {
      await before;
      await this.#run(turns, until, signal);
    })();
  }

  /** Runs the drops. Never rejects. */
  async #run(
    turns: readonly { readonly domain: string; readonly atMs: number }[],
    until: { readonly at: number; readonly told: Date },
    stop: AbortSignal,
  ): Promise<void> {
    const { index, random, log } = this.#deps;
    let waitedMs = 0;
    for (const { domain, atMs } of turns) {
      if (!(await sleep(atMs - waitedMs, stop))) return;
      waitedMs = atMs;
      const drop = async (): Promise<void> => {
        // While the index thread is being replaced nobody answers, and stopping must not wait for that.
        await orStopped(index.dropDomain(domain), stop);
        // If it was planned anew, the new plan includes the domain and drops it again.
        if (stop.aborted) return;
        const left = this.#left.filter((other) => other !== domain);
        this.#note(left, until.at);
        index.setUnsure(left);
        this.#tell(left, until.told);
      };
      const onFailure = (error: unknown, attempt: number): boolean => {
        if (attempt === 0)
          log.warn({ domain, error: messageOf(error) }, "a domain is not dropped yet");
        return true;
      };
      await retry(drop, { stop, random, onFailure }).catch(() => undefined); // It rejects only when stopped.
      if (stop.aborted) return;
    }
  }

  /** Notes and shows the domains that are left, which will have been dropped by `until`. */
  #tell(domains: readonly string[], until: Date): void {
    const { health } = this.#deps;
    this.#left = domains;
    this.#until = domains.length === 0 ? null : until.toISOString();
    if (this.#until === null) return health.settle(warningCode);
    const more = domains.length - namesMax;
    const names = `${domains.slice(0, namesMax).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
    health.raise(
      warningCode,
      "warning",
      `central was restored: what is cached of ${names} is dropped by ${this.#until}; until then the origin is asked before any of it is sent`,
      "The warning ends when the last of them is dropped. Origins get more requests until their caches are full again.",
    );
  }

  #note(domains: readonly string[], untilMs: number): void {
    const planned = { domains: [...domains], until: new Date(untilMs).toISOString() };
    this.#deps.documents.put({ [documentKey]: domains.length === 0 ? null : planned });
  }
}
