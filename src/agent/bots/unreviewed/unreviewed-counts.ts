// Counts requests of unreviewed bots by domain and name until they are taken. The memory is bounded whatever
// agents are made up: the names of known crawlers are few, of the others the most frequent stay, and the rest
// is summed in `other`. No request is left out.

import { otherBots } from "../../../wire/other-bots.ts";
import type { ClaimedBot } from "./user-agents.ts";

export type CountedBot = Pick<ClaimedBot, "name" | "description"> & {
  /** Whether a VIP list has addresses of the bot, from none of which it came. */
  readonly isFake: boolean;
};

export type UnreviewedCount = CountedBot & { readonly domain: string; readonly requests: number };

export type CountLimits = {
  /** The most names of one domain that are not known crawlers'. */
  readonly ownNames: number;
  /** The most names of all domains together, without `other`. */
  readonly names: number;
};

/**
 * The limits in force. 3,000 rows of a name, a description of 200 characters and the syntax make a report 1
 * MB larger at most.
 */
export const countLimits: CountLimits = { ownNames: 200, names: 3_000 };

type Row = { readonly bot: Omit<CountedBot, "isFake">; isFake: boolean; requests: number };

export class UnreviewedCounts {
  readonly #limits: CountLimits;
  readonly #domains = new Map<string, DomainCounts>();
  #names = 0;

  constructor(limits: CountLimits = countLimits) {
    this.#limits = limits;
  }

  get isEmpty(): boolean {
    return this.#domains.size === 0;
  }

  /** Counts requests of a bot. `domain` is one that is served; the number of these is bounded elsewhere. */
  add(domain: string, bot: CountedBot, requests = 1): void {
    let counts = this.#domains.get(domain);
    if (counts === undefined) this.#domains.set(domain, (counts = new DomainCounts()));
    const before = counts.names;
    counts.add(bot, requests, this.#limits.ownNames, this.#names < this.#limits.names);
    this.#names += counts.names - before;
  }

  /** Returns what was counted since the last time that it was taken, domain by domain. */
  rows(): readonly UnreviewedCount[] {
    return [...this.#domains].flatMap(([domain, counts]) =>
      counts.rows().map(({ bot: { name, description }, isFake, requests }) => {
        return { domain, name, description, isFake, requests };
      }),
    );
  }

  /** Takes what `rows` returns. */
  take(): readonly UnreviewedCount[] {
    const taken = this.rows();
    this.#domains.clear();
    this.#names = 0;
    return taken;
  }
}

class DomainCounts {
  readonly #known = new Map<string, Row>();
  #own = new Map<string, Row>();
  #other = 0;

  get names(): number {
    return this.#known.size + this.#own.size;
  }

  /** Who comes under one name to several hosts of the domain may be a fake to one of them: then the name is one of fakes. */
  add(bot: CountedBot, requests: number, ownMax: number, hasRoom: boolean): void {
    if (bot.name === otherBots.name) {
      this.#other += requests;
      return;
    }
    const isOwn = bot.description === null;
    if (isOwn && this.#own.size >= ownMax && !this.#own.has(bot.name)) this.#foldSmall();
    const rows = isOwn ? this.#own : this.#known;
    const row = rows.get(bot.name);
    if (row !== undefined) {
      row.requests += requests;
      row.isFake ||= bot.isFake;
    } else if (hasRoom) rows.set(bot.name, { bot, isFake: bot.isFake, requests });
    else this.#other += requests;
  }

  rows(): readonly Row[] {
    const rows = [...this.#known.values(), ...this.#own.values()];
    return this.#other === 0
      ? rows
      : [...rows, { bot: otherBots, isFake: false, requests: this.#other }];
  }

  /**
   * Sums the less frequent half in `other` to make room, so that names that come once never displace one that
   * comes often.
   */
  #foldSmall(): void {
    const rows = [...this.#own].toSorted(([, a], [, b]) => b.requests - a.requests);
    const kept = rows.slice(0, Math.floor(rows.length / 2));
    for (const [, { requests }] of rows.slice(kept.length)) this.#other += requests;
    this.#own = new Map(kept);
  }
}
