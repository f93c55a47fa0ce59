// What one purge request asks to be cleared, as texts that `clear-items.ts` reads, and how several requests
// become one clear.

import { parseDomainName } from "../ids.ts";
import { pathSpellings } from "../http/url-spellings.ts";
import { clearItemsMax, type GivenItems } from "../patterns/clear-items.ts";
import { under } from "../patterns/pattern-recipes.ts";

/** The kinds of items that are lists of texts. */
export const purgeLists = ["patterns", "urls", "prefixes", "hosts", "tags"] as const;
export type PurgeList = (typeof purgeLists)[number];

/** Nothing but what is named; `everything` is all that the sender may clear. `soft`: it becomes stale, and is kept. */
export type PurgeItems = { readonly [List in PurgeList]?: readonly string[] } & {
  readonly everything?: boolean;
  readonly soft?: true;
};

/** Where a sender may clear: a main domain with its sub-domains (`host` null), or one sub-domain. */
export type PurgeScope = { readonly domain: string; readonly host: string | null };

/** The most patterns of one clear; the journal takes no more. */
const patternsMax = 64;
/** The most spellings of one beginning of a path; most have one. */
const spellingsMax = 16;

/** Returns an absolute URL where a host is named, else a path of every host. */
export function urlItem(host: string | null, path: string): string {
  return host === null ? path : `https://${host}${path}`;
}

/** Returns everything of one host, or of all hosts in scope. */
export function allOf(host: string | null): PurgeItems {
  return host === null ? { everything: true } : { hosts: [host] };
}

/**
 * Returns what every URL is that begins with a text, as `/blog` begins `/blog`, `/blog/a` and `/blogs`. A text
 * that ends with a slash is a prefix; any other has no item and becomes patterns, which hold for all hosts in
 * scope. Undefined: the text has too many spellings.
 */
export function beginningWith(host: string | null, path: string): PurgeItems | undefined {
  if (path === "/" || path === "") return allOf(host);
  if (path.endsWith("/") && !path.includes("?")) return { prefixes: [urlItem(host, path)] };
  const spellings = pathSpellings(path);
  return spellings.length > spellingsMax ? undefined : { patterns: spellings.map(under) };
}

/**
 * Returns all items of both. More than one clear may name become `everything`, so that nothing is left out. What
 * is joined is soft only if both are: a soft purge may take more than it was to, and no other less.
 */
export function joinItems(one: PurgeItems, other: PurgeItems): PurgeItems {
  const parts = [one, other].filter((items) => countItems(items) > 0);
  const isSoft = parts.length > 0 && parts.every(({ soft }) => soft === true);
  return { ...joinedItems(one, other), ...softOf(isSoft) };
}

const softOf = (isSoft: boolean | undefined): { readonly soft?: true } =>
  isSoft === true ? { soft: true } : {};

/** Everything, softly if these items are to be cleared softly. */
export function everythingLike({ soft }: PurgeItems): PurgeItems {
  return { everything: true, ...softOf(soft) };
}

function joinedItems(one: PurgeItems, other: PurgeItems): PurgeItems {
  if (one.everything === true || other.everything === true) return { everything: true };
  const joined: { [List in PurgeList]?: readonly string[] } = {};
  let count = 0;
  for (const list of purgeLists) {
    const texts = new Set([...(one[list] ?? []), ...(other[list] ?? [])]);
    if (texts.size > 0) joined[list] = [...texts];
    count += texts.size;
  }
  return count > clearItemsMax || (joined.patterns?.length ?? 0) > patternsMax
    ? { everything: true }
    : joined;
}

export function countItems(items: PurgeItems): number {
  if (items.everything === true) return 1;
  return purgeLists.reduce((count, list) => count + (items[list]?.length ?? 0), 0);
}

/** Returns a text for each item; equal items have equal texts. */
export function itemKeys(items: PurgeItems): readonly string[] {
  return itemsOf(items, keyName(items));
}

/** A soft purge of something is another item than a purge of it. */
const keyName =
  ({ soft }: PurgeItems) =>
  (list: string, text = ""): string =>
    `${soft === true ? "soft " : ""}${list} ${text}`;

function itemsOf<T>(items: PurgeItems, of: (list: string, text?: string) => T): readonly T[] {
  if (items.everything === true) return [of("everything")];
  return purgeLists.flatMap((list) => (items[list] ?? []).map((text) => of(list, text)));
}

/** Returns the items whose texts, as `itemKeys` has them, `takes` accepts. */
export function filterItems(items: PurgeItems, takes: (key: string) => boolean): PurgeItems {
  const key = keyName(items);
  const soft = softOf(items.soft);
  if (items.everything === true)
    return takes(key("everything")) ? { everything: true, ...soft } : {};
  const kept: { [List in PurgeList]?: readonly string[] } = {};
  for (const list of purgeLists) {
    const texts = (items[list] ?? []).filter((text) => takes(key(list, text)));
    if (texts.length > 0) kept[list] = texts;
  }
  return { ...kept, ...soft };
}

/** Returns the items as `readClearItems` takes them. */
export function givenItems({ everything, soft, ...lists }: PurgeItems): GivenItems {
  return { ...lists, ...(everything === true && { everything }), ...softOf(soft) };
}

const authority = /^https?:\/\/([^/?#:]*)/i;

/** Returns the host that an item names, undefined where it means every host. */
function hostOfItem(list: PurgeList, text: string): string | undefined {
  if (list === "hosts") return parseDomainName(text) ?? text;
  if (list !== "urls" && list !== "prefixes") return undefined;
  const host = authority.exec(text)?.[1];
  return host === undefined ? undefined : (parseDomainName(host) ?? host);
}

export type PurgeShare = { readonly scope: PurgeScope; readonly items: PurgeItems };

/** Returns the scope in which a host lies, undefined for none. `domainOf` returns the main domain of a host that is served. */
export function scopeOf(
  host: string | undefined,
  scopes: readonly PurgeScope[],
  domainOf: (host: string) => string | undefined,
): PurgeScope | undefined {
  if (host === undefined) return undefined;
  return scopes.find((scope) => isIn(host, scope, domainOf));
}

function isIn(
  host: string,
  scope: PurgeScope,
  domainOf: (host: string) => string | undefined,
): boolean {
  return scope.host === null ? domainOf(host) === scope.domain : scope.host === host;
}

/**
 * Divides the items among the scopes: what names a host belongs to the scope of that host, everything to the scope that the
 * request names (`named`), and what is left to all of them, as does everything of a request that names none. `domainOf` returns
 * the main domain of a host that is served. Returns the host, as a text, that is in no scope.
 */
export function sharesOf(
  items: PurgeItems,
  { scopes, named }: { readonly scopes: readonly PurgeScope[]; readonly named?: PurgeScope },
  domainOf: (host: string) => string | undefined,
): readonly PurgeShare[] | string {
  if (items.everything === true)
    return (named === undefined ? scopes : [named]).map((scope) => ({ scope, items }));
  const hosts = purgeLists.flatMap((list) =>
    (items[list] ?? []).flatMap((text) => hostOfItem(list, text) ?? []),
  );
  const stranger = hosts.find((host) => scopeOf(host, scopes, domainOf) === undefined);
  if (stranger !== undefined) return stranger;
  return scopes.flatMap((scope) => {
    const own: { [List in PurgeList]?: readonly string[] } = {};
    for (const list of purgeLists) {
      const texts = (items[list] ?? []).filter((text) => {
        const host = hostOfItem(list, text);
        return host === undefined || isIn(host, scope, domainOf);
      });
      if (texts.length > 0) own[list] = texts;
    }
    return Object.keys(own).length > 0 ? [{ scope, items: { ...own, ...softOf(items.soft) } }] : [];
  });
}
