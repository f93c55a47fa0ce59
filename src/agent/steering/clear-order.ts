// What a clear by URLs, prefixes, tags and hosts selects on this agent, which alone knows the devlove in force: its
// rules say what of a query counts, its `index` which files stand for a directory.

import type { ServedHost, ServingState } from "../../core/serving/serving-state.ts";
import { compileSite, type SiteRoutes } from "../../core/serving/site-routes.ts";
import type { SiteConfig } from "../../core/serving/effective-devlove.ts";
import {
  clearSpellingsMax,
  patternsOfPrefix,
  patternsOfUrl,
  type ClearItems,
  type NamedPath,
} from "../../core/patterns/clear-items.ts";
import { tagged } from "../../core/patterns/pattern-recipes.ts";
import type { ClearRequest } from "../cache/clearing/clears.ts";
import type { ClearGroup } from "../cache/entry.ts";

export type ClearSelected = Pick<ClearRequest, "patterns" | "groups" | "isWider" | "isSoft">;

/**
 * The most patterns of one clear, and their characters. Central bounds the spellings; here each may count
 * again for every rule about queries, and once more for prefixes.
 */
const patternsMax = 4 * clearSpellingsMax;
const patternCharsMax = 12 * 2 ** 20;

/** Returns what a clear selects: its items, where it has some, else its patterns. */
export function selectedBy(
  clear: {
    readonly domain: string;
    readonly patterns: readonly string[];
    readonly items?: ClearItems | undefined;
  },
  { domains }: Pick<ServingState, "domains">,
): ClearSelected {
  const { domain, patterns, items } = clear;
  if (items === undefined) return { patterns };
  const hosts = domains.find(({ name }) => name === domain)?.hosts ?? [];
  return { ...clearSelection(items, hosts), isSoft: items.soft === true };
}

/**
 * Returns what the items select. `hosts` are the hosts of the domain as they are served. Items that would take
 * too many patterns select everything in scope, and say so.
 *
 * A query counts as it was given and as the rule of its path leaves it: what was stored under another devlove
 * may stand under the query as it was sent.
 */
export function clearSelection(items: ClearItems, hosts: readonly ServedHost[]): ClearSelected {
  const { patterns = [], urls = [], prefixes = [], hosts: whole = [], tags = [] } = items;
  const groups = new PatternGroups();
  const sites = sitesOf(hosts);
  if (!groups.add(null, tags.map(tagged))) return tooMuch;
  for (const { host, path } of prefixes)
    if (!groups.add(host, patternsOfPrefix(path))) return tooMuch;
  for (const url of urls) if (!addUrl(groups, url, hosts, sites)) return tooMuch;
  const all = whole.map((host): ClearGroup => ({ host, patterns: null }));
  return { patterns, groups: [...groups.list(), ...all] };
}

const tooMuch: ClearSelected = { patterns: null, isWider: true };

type Site = {
  readonly routes: SiteRoutes;
  readonly index: readonly string[];
  readonly names: Set<string>;
};

/** Returns the sites that differ in what counts here, each with the hosts that it is served at. */
function sitesOf(hosts: readonly ServedHost[]): readonly Site[] {
  const byRules = new Map<string, Site>();
  for (const { name, site } of hosts) {
    if (site === null) continue;
    const key = rulesText(site);
    const known = byRules.get(key);
    if (known !== undefined) known.names.add(name);
    else byRules.set(key, { routes: compileSite(site), index: site.index, names: new Set([name]) });
  }
  return [...byRules.values()];
}

function rulesText({ cache, index, images }: SiteConfig): string {
  return JSON.stringify([cache, index, images.optimize ? images.widths : []]);
}

/** Adds the patterns of a URL at each host that it names. Returns false where that is too much. */
function addUrl(
  groups: PatternGroups,
  { host, path }: NamedPath,
  hosts: readonly ServedHost[],
  sites: readonly Site[],
): boolean {
  const siteOf = (name: string): Site | undefined => sites.find((site) => site.names.has(name));
  if (host !== null) return groups.add(host, patternsAt(path, siteOf(host)));
  const [first] = sites;
  const isShared = first === undefined || first.names.size === hosts.length;
  if (isShared) return groups.add(null, patternsAt(path, first));
  const bySite = new Map(sites.map((site) => [site, patternsAt(path, site)]));
  const asGiven = patternsAt(path, undefined);
  return hosts.every(({ name }) => {
    const site = siteOf(name);
    return groups.add(name, (site && bySite.get(site)) ?? asGiven);
  });
}

function patternsAt(url: string, site: Site | undefined): readonly string[] {
  if (site === undefined) return patternsOfUrl(url, []);
  return patternsOfUrl(url, site.index, (one) => {
    const [path = "", query] = /^([^?]*)\?(.*)$/s.exec(one)?.slice(1) ?? [];
    if (query === undefined) return [];
    // Which rule stored an entry may depend on more than its URL.
    const stored = site.routes.storedQueries({ rawPath: path, rawQuery: query });
    return stored.map((counts) => (counts === "" ? path : `${path}?${counts}`));
  });
}

class PatternGroups {
  readonly #byHost = new Map<string | null, Set<string>>();
  #count = 0;
  #chars = 0;

  /** Returns false where the patterns are too many. */
  add(host: string | null, patterns: readonly string[]): boolean {
    const held = this.#byHost.get(host) ?? new Set();
    this.#byHost.set(host, held);
    for (const pattern of patterns) {
      if (held.has(pattern)) continue;
      held.add(pattern);
      this.#count++;
      this.#chars += pattern.length;
    }
    return this.#count <= patternsMax && this.#chars <= patternCharsMax;
  }

  list(): readonly ClearGroup[] {
    const some = [...this.#byHost].filter(([, patterns]) => patterns.size > 0);
    return some.map(([host, patterns]) => ({ host, patterns: [...patterns] }));
  }
}
