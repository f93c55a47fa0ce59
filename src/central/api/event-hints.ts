// Hints that are gathered for a moment, and the one event that a stream gets of all of them.

import { changeTopics, type ChangeTopic } from "../../wire/customer/events.ts";
import { topicsOfDomains } from "./change-topics.ts";

export type Hint = {
  readonly topics: readonly ChangeTopic[];
  /** Main domains that are named to whoever reaches them; empty: none. */
  readonly domains: readonly string[];
  /** Who reaches one of these is told; undefined: everybody whose token may look at the topics. */
  readonly forDomains: readonly string[] | undefined;
};

export type ChangedData = { readonly topics: readonly ChangeTopic[]; readonly domain?: string };

/** Returns the data of the event; undefined if nothing is for this reach. Pure. Null reaches everything. */
export function changedOf(
  hints: readonly Hint[],
  reach: readonly string[] | null,
): ChangedData | undefined {
  const topics = new Set<ChangeTopic>();
  const domains = new Set<string | undefined>();
  for (const hint of hints) {
    const { forDomains } = hint;
    if (reach !== null && forDomains?.some((name) => reach.includes(name)) === false) continue;
    const told = hint.topics.filter((topic) => reach === null || topicsOfDomains.has(topic));
    if (told.length === 0) continue;
    for (const topic of told) topics.add(topic);
    // Hosts are of no domain, and every change of a domain reaches them.
    if (told.every((topic) => topic === "fleet")) continue;
    const named = hint.domains.filter((name) => reach === null || reach.includes(name));
    if (named.length === 0) domains.add(undefined);
    for (const name of named) domains.add(name);
  }
  if (topics.size === 0) return undefined;
  const [domain] = domains.size === 1 ? domains : [undefined];
  return {
    topics: changeTopics.filter((topic) => topics.has(topic)),
    ...(domain !== undefined && { domain }),
  };
}

/** Different hints of one customer that are kept apart; more are one without a domain. */
const hintsMax = 64;

/** The hints of one customer, the same one once. */
export class GatheredHints {
  readonly #hints = new Map<string, Hint>();
  #rest: Hint | undefined;

  add(hint: Hint): void {
    const key = JSON.stringify(hint);
    if (this.#hints.size < hintsMax) this.#hints.set(key, hint);
    else if (!this.#hints.has(key))
      this.#rest = {
        topics: [...new Set([...(this.#rest?.topics ?? []), ...hint.topics])],
        domains: [],
        forDomains: undefined,
      };
  }

  list(): readonly Hint[] {
    return [...this.#hints.values(), ...(this.#rest === undefined ? [] : [this.#rest])];
  }
}
