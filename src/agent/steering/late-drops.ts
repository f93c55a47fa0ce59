// Dropping what is cached of many domains one after the other, when central was restored: all agents at once would else send their visitors to the origins.
//
//   planned ── unsure, durable ──▶ its turn, at random within the time ── dropped, durably ──▶ sure, forgotten
// Until its turn every hit of a domain is confirmed by the origin; so nothing stale is served, and a restart goes on where it was.

import type { Log } from "../../base/log.ts";
import { orStopped } from "../../base/or-stopped.ts";
import { retry, sleep } from "../../base/wait.ts";
import { messageOf } from "../../core/faults.ts";
import type { CacheIndex, Documents } from "./ports.ts";

export type LateDropsDeps = {
  readonly documents: Documents;
  readonly index: Pick<CacheIndex, "dropDomain"> & {
    /** These domains' hits are confirmed by the origin, those of others are not. */
    setUnsure(domains: readonly string[]): void;
  };
  readonly random: () => number;
  readonly now: () => Date;
  readonly spreadMs?: number;
  readonly log: Log;
};

type Planned = { readonly domains: readonly string[]; readonly until: string };

export const spreadDefaultMs = 600_000;
const documentKey = "late_drops";

export class LateDrops implements AsyncDisposable {
  readonly #deps: LateDropsDeps;
  readonly #spreadMs: number;
  #turns = new AbortController();
  #running = Promise.resolve();
  #left: readonly string[] = [];

  /** Goes on with what was planned before this start. */
  constructor(deps: LateDropsDeps) {
    this.#deps = deps;
    this.#spreadMs = deps.spreadMs ?? spreadDefaultMs;
    const planned = deps.documents.get(documentKey) as Planned | undefined; // Written by `#note` alone.
    if (planned === undefined) return;
    this.#begin(planned.domains, Date.parse(planned.until));
  }

  /** Domains whose turn is to come. */
  get left(): readonly string[] {
    return this.#left;
  }

  get spreadS(): number {
    return this.#spreadMs / 1_000;
  }

  /** Beside those planned before. When it returns, each is unsure and will be dropped, whatever ends. */
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
    this.#left = domains;
    index.setUnsure(domains);
    this.#turns.abort();
    this.#turns = new AbortController();
    // A clock that was set back must not make it longer than it was meant to be.
    const leftMs = Math.min(Math.max(0, untilMs - now().getTime()), this.#spreadMs);
    const turns = domains
      .map((domain) => ({ domain, atMs: random() * leftMs }))
      .sort((a, b) => a.atMs - b.atMs);
    const { signal } = this.#turns;
    const before = this.#running;
    this.#running = (async () => {
      await before;
      await this.#run(turns, untilMs, signal);
    })();
  }

  /** Never rejects. */
  async #run(
    turns: readonly { readonly domain: string; readonly atMs: number }[],
    untilMs: number,
    stop: AbortSignal,
  ): Promise<void> {
    const { index, random, log } = this.#deps;
    let waitedMs = 0;
    for (const { domain, atMs } of turns) {
      if (!(await sleep(atMs - waitedMs, stop))) return;
      waitedMs = atMs;
      const drop = async (): Promise<void> => {
        // While the index thread is replaced nobody answers, and an end must not wait for that.
        await orStopped(index.dropDomain(domain), stop);
        if (stop.aborted) return; // Planned anew: the new plan has it, and drops it again.
        const left = this.#left.filter((other) => other !== domain);
        this.#note(left, untilMs);
        this.#left = left;
        index.setUnsure(left);
      };
      const onFailure = (error: unknown, attempt: number): boolean => {
        if (attempt === 0)
          log.warn({ domain, error: messageOf(error) }, "a domain is not dropped yet");
        return true;
      };
      await retry(drop, { stop, random, onFailure }).catch(() => undefined); // Only when stopped.
      if (stop.aborted) return;
    }
  }

  #note(domains: readonly string[], untilMs: number): void {
    const planned = { domains: [...domains], until: new Date(untilMs).toISOString() };
    this.#deps.documents.put({ [documentKey]: domains.length === 0 ? null : planned });
  }
}
