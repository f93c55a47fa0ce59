// What of a query counted when the cache of a host was filled.
//
// A clear by URL selects by the rules in force. An entry that was stored under other rules may be of that URL and
// stand under another query: the clear misses it, and it answers again as soon as those rules are back. So before other
// rules come into force, what is cached of the host is dropped if it was cleared by URL. No clear is
// given in between: until the new rules are in force, it would be read by the old ones.

import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Log } from "../../base/log.ts";
import { messageOf } from "../../core/faults.ts";
import { textOfRule } from "../../core/serving/query-rule.ts";
import type { SiteConfig } from "../../core/serving/effective-devlove.ts";
import type { ServedDomain, ServingState } from "../../core/serving/serving-state.ts";
import type { IndexClient } from "../cache/index/index-client.ts";
import type { Documents } from "../link/agent-db.ts";

/** Raise it when a rule leaves out something else than before, though its text is the same. */
const readingOfRules = 1;

const documentKey = "query_rules";
/** In the place of a digest: it is not known which rules the cache was filled by. */
const unknown = "unknown";

type Digests = Readonly<Record<string, string>>;

export type QueryRulesOptions = {
  readonly documents: Documents;
  readonly index: Pick<IndexClient, "isClearedByUrl" | "forget">;
  readonly log: Log;
};

export class QueryRules {
  readonly #options: QueryRulesOptions;
  /** By host; none where nothing was left out. */
  #filledBy: Digests;
  #change: Promise<void> | undefined;

  constructor(options: QueryRulesOptions) {
    this.#options = options;
    this.#filledBy = (options.documents.get(documentKey) ?? {}) as Digests; // Nothing else writes it.
  }

  /** Calls `give` when no rules are being changed, in the step in which that is known. */
  async whileSame<T>(give: () => T): Promise<T> {
    while (this.#change !== undefined) await this.#change;
    return give();
  }

  /**
   * Drops what a change of rules forbids to keep. From then on no clear is given until the returned function is called, which
   * is told whether the state came into force. Throws where it cannot be dropped; the rules are those of before then.
   */
  async prepare(next: ServingState): Promise<(isInForce: boolean) => void> {
    const changed = next.domains.flatMap((domain) => this.#changedOf(domain));
    if (changed.length === 0) return () => undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#change = promise;
    const end = (): void => {
      this.#change = undefined;
      resolve();
    };
    try {
      const names = changed.map(({ host }) => host);
      this.#write({
        ...this.#filledBy,
        ...Object.fromEntries(names.map((name) => [name, unknown])),
      });
      for (const { domain, host } of changed) await this.#drop(domain, host);
    } catch (error) {
      end();
      throw error;
    }
    return (isInForce) => {
      if (isInForce) this.#note(changed, next);
      end();
    };
  }

  #changedOf({ name, hosts }: ServedDomain): Changed[] {
    return hosts.flatMap(({ name: host, site }) => {
      if (site === null) return [];
      const digest = digestOf(site);
      return digest === (this.#filledBy[host] ?? "") ? [] : [{ domain: name, host, digest }];
    });
  }

  async #drop(domain: string, host: string): Promise<void> {
    const { index, log } = this.#options;
    if (!(await index.isClearedByUrl({ domain, host }))) return;
    await index.forget({ domain, host });
    log.info(
      { domain, host },
      "other query parameters count from now on, and the host was cleared by URL: what was cached of it is dropped",
    );
  }

  /** Hosts that nobody serves any more have nothing cached: it was dropped when they were unlinked. */
  #note(changed: readonly Changed[], { domains }: ServingState): void {
    const served = new Set(domains.flatMap(({ hosts }) => hosts.map(({ name }) => name)));
    const digests = {
      ...this.#filledBy,
      ...Object.fromEntries(changed.map((one) => [one.host, one.digest])),
    };
    const kept = Object.entries(digests).filter(
      ([host, digest]) => digest !== "" && served.has(host),
    );
    try {
      this.#write(Object.fromEntries(kept));
    } catch (error) {
      // The rules stay unknown: the next change of state looks again.
      this.#options.log.warn({ error: messageOf(error) }, "agent.db could not be written");
    }
  }

  #write(digests: Digests): void {
    if (isDeepStrictEqual(digests, this.#filledBy)) return;
    this.#options.documents.put({ [documentKey]: digests });
    this.#filledBy = digests;
  }
}

type Changed = { readonly domain: string; readonly host: string; readonly digest: string };

/**
 * Returns a digest of all that decides under which queries a URL may be stored, "" where nothing is ever left out. Other
 * keys of a rule decide whether it is stored, never where: a clear by URL selects every place (`storedQueries`).
 */
function digestOf({ cache }: SiteConfig): string {
  const all = [...cache.rules, cache.default];
  if (all.every(({ query }) => textOfRule(query) === "")) return "";
  const decides = cache.rules.map(({ path, match, query }) => [path, match, query]);
  const text = JSON.stringify([readingOfRules, decides, cache.default.query]);
  return createHash("sha256").update(text).digest("base64url").slice(0, 22);
}
