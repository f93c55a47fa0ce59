// Clears by what people know: URLs, prefixes, hosts, tags, everything. How each is written, and which patterns say
// the same. Central reads the texts, agents make the patterns, because only they know the rules for queries.
//
//   URL      absolute, or a path with its query. Scheme, port and fragment do not count.
//   prefix   a path of whole segments: `/foo` is `/foo`, `/foo/…` and `/foo?…`, and never `/foobar`
//   host     everything of one host
//   tag      every response that its origin gave this tag (core/http/cache-tags.ts)
//
// An item without a host means every host of the domain. The patterns of an item are exact words, one pattern
// for each spelling that files and clients have of it (url-spellings.ts).

import { parseDomainName } from "../ids.ts";
import { pathSpellings, urlSpellings } from "../http/url-spellings.ts";
import { tagBytesMax } from "../http/cache-tags.ts";
import { exactWord } from "./exact-word.ts";
import { everything, exactUrl, under } from "./pattern-recipes.ts";

/** The most items of one clear, patterns included. */
export const clearItemsMax = 1_000;
/** The longest text of an item in UTF-16 units. */
export const clearItemCharsMax = 4_096;
/** The most spellings that the items of one clear have together; most URLs have one. */
export const clearSpellingsMax = 20_000;
/** The most characters of the exact words of all spellings together, 4 MiB: an agent remembers 16 MiB. */
const spelledCharsMax = 4 * 2 ** 20;
/** FTS5 reads a word up to here (FTS5_MAX_TOKEN_SIZE), so two longer ones may be the same to it. */
const wordCharsMax = 32_768;

/** A URL or a prefix as it is cleared. `host` null: every host of the domain. */
export type NamedPath = {
  readonly host: string | null;
  /** Begins with a slash; of a URL with `?` and its query, if there is one. */
  readonly path: string;
};

/** The items of a clear; what is absent was not named. */
export type ClearItems = {
  readonly patterns?: readonly string[];
  readonly urls?: readonly NamedPath[];
  readonly prefixes?: readonly NamedPath[];
  readonly hosts?: readonly string[];
  readonly tags?: readonly string[];
  /** What matches becomes stale and is kept; absent: it goes. */
  readonly soft?: true;
};

/** The items as people write them. */
export type GivenItems = {
  readonly patterns?: readonly string[];
  readonly urls?: readonly string[];
  readonly prefixes?: readonly string[];
  readonly hosts?: readonly string[];
  readonly tags?: readonly string[];
  readonly everything?: boolean;
  readonly soft?: boolean;
};

/** The kinds of items that hold a text each, beside patterns. */
export type ItemKind = "urls" | "prefixes" | "hosts" | "tags";

/** A flaw of an item, with a message that is read after the item itself. */
export type ItemFault = {
  readonly kind: ItemKind;
  readonly at: number;
  readonly message: string;
  /** What was probably meant; the same kind of item. */
  readonly suggestion?: string;
};

/** A clear as the journal carries it. */
export type PlannedClear = {
  readonly host: string | null;
  /** What an agent clears that does not know the items: at least what they match. */
  readonly patterns: readonly string[];
  /** Undefined: the patterns say all. */
  readonly items?: ClearItems;
};

export type ItemsRead =
  | { readonly ok: true; readonly clear: PlannedClear }
  | { readonly ok: false; readonly faults: readonly ItemFault[] };

/**
 * Reads the items of a clear. `only` is the host that the whole clear is restricted to, null for a domain
 * with all its hosts; `isHost` says which hosts these are. Patterns are taken as they are.
 */
export function readClearItems(
  given: GivenItems,
  only: string | null,
  isHost: (host: string) => boolean,
): ItemsRead {
  const faults: ItemFault[] = [];
  const read = <T>(kind: ItemKind, parse: (text: string) => T | Flaw): readonly T[] =>
    (given[kind] ?? []).flatMap((text, at) => {
      const parsed = parse(text);
      if (!(parsed instanceof Flaw)) return [parsed];
      faults.push({ kind, at, ...parsed.said });
      return [];
    });
  const known = (named: NamedPath | Flaw): NamedPath | Flaw =>
    named instanceof Flaw || named.host === null || isHost(named.host)
      ? named
      : new Flaw({ message: `is of the host ${named.host}, which is none of this domain` });
  const urls = read("urls", (text) => known(parseUrl(text)));
  const prefixes = read("prefixes", (text) => known(parsePrefix(text)));
  const hosts = read("hosts", (text) => {
    const host = parseDomainName(text);
    return host === undefined || !isHost(host)
      ? new Flaw({ message: "is no host of this domain" })
      : host;
  });
  const tags = read("tags", parseTag);
  const flaw = faults.length === 0 ? spellingsFlaw(urls, prefixes) : undefined;
  if (flaw !== undefined) faults.push(flaw);
  if (faults.length > 0) return { ok: false, faults };
  const { patterns = [] } = given;
  const planned = plan({ patterns, urls, prefixes, hosts, tags }, given.everything === true, only);
  return { ok: true, clear: given.soft === true ? softly(planned) : planned };
}

/** Agents that do not know the items take out what others make stale. */
function softly({ host, patterns, items = { patterns } }: PlannedClear): PlannedClear {
  return { host, patterns, items: { ...items, soft: true } };
}

type Lists = Required<Omit<ClearItems, "soft">>;

function plan(
  { patterns, urls, prefixes, hosts, tags }: Lists,
  isAll: boolean,
  only: string | null,
): PlannedClear {
  const wide = [everything];
  if (isAll) return { host: only, patterns: wide };
  const roots = prefixes.flatMap(({ host, path }) => (path === "/" ? [host] : []));
  if (roots.includes(null)) return { host: only, patterns: wide };
  const rest = prefixes.filter(({ path }) => path !== "/");
  const whole = [...new Set([...hosts, ...roots.filter((host) => host !== null)])];
  const isNamed = urls.length + rest.length + tags.length > 0;
  if (!isNamed && whole.length === 0) return { host: only, patterns };
  const [first = null] = whole;
  if (!isNamed && patterns.length === 0 && whole.length === 1)
    return { host: first, patterns: wide };
  const named = [...urls, ...rest].map(({ host }) => host);
  const concerned = new Set([
    ...whole,
    ...named,
    ...(patterns.length + tags.length > 0 ? [only] : []),
  ]);
  const [one = null] = concerned;
  const items = {
    ...(patterns.length > 0 && { patterns }),
    ...(urls.length > 0 && { urls }),
    ...(rest.length > 0 && { prefixes: rest }),
    ...(whole.length > 0 && { hosts: whole }),
    ...(tags.length > 0 && { tags: [...new Set(tags)] }),
  };
  return { host: concerned.size === 1 ? (one ?? only) : only, patterns: wide, items };
}

class Flaw {
  readonly said: { readonly message: string; readonly suggestion?: string };

  constructor(said: Flaw["said"]) {
    this.said = said;
  }
}

/** Takes a tag byte for byte, as UTF-8. */
function parseTag(text: string): string | Flaw {
  if (text.trim() === "") return new Flaw({ message: "is empty" });
  if (text.trim() !== text)
    return new Flaw({ message: "has blanks at its ends", suggestion: text.trim() });
  // oxlint-disable-next-line no-control-regex -- No header field holds one.
  if (/[\u0000-\u001f\u007f]/.test(text)) return new Flaw({ message: "has a control character" });
  return new TextEncoder().encode(text).length > tagBytesMax
    ? new Flaw({ message: `is longer than ${tagBytesMax} bytes, and no stored tag is` })
    : text;
}

function parseUrl(text: string): NamedPath | Flaw {
  const located = locate(text);
  if (located instanceof Flaw) return located;
  if (text.endsWith("*"))
    return new Flaw({
      message: "ends with *, but a URL is exact; what lies below a path is one of the prefixes",
    });
  return { ...located, path: located.path.replace(/\?$/, "") }; // The index knows no empty query.
}

function parsePrefix(text: string): NamedPath | Flaw {
  if (text.endsWith("*")) {
    const message = "ends with *; a prefix takes whole segments without it";
    const whole = text.replace(/\*+$/, "");
    // What begins with a part of a segment is for patterns.
    return new Flaw(whole.endsWith("/") ? { message, suggestion: whole } : { message });
  }
  const located = locate(text);
  if (located instanceof Flaw) return located;
  return located.path.includes("?")
    ? new Flaw({
        message: "has a query; a prefix is a path",
        suggestion: text.replace(/\?.*$/s, ""),
      })
    : located;
}

/** Reads host and path. The path stays as it is written: what is stored was asked for in some spelling. */
function locate(text: string): NamedPath | Flaw {
  if (text.trim() !== text && text.trim() !== "")
    return new Flaw({ message: "has blanks at its ends", suggestion: text.trim() });
  // oxlint-disable-next-line no-control-regex -- No request line holds one.
  if (/[\u0000-\u001f\u007f]/.test(text)) return new Flaw({ message: "has a control character" });
  const absolute = /^https?:\/\/([^/?#\\]*)([^#]*)/i.exec(text);
  if (absolute === null && (!text.startsWith("/") || text.startsWith("//")))
    return new Flaw(misplaced(text));
  const [, authority, rest = ""] = absolute ?? [undefined, undefined, text.replace(/#.*$/s, "")];
  const host = authority === undefined ? null : parseDomainName(authority.replace(/:\d*$/, ""));
  if (host === undefined)
    return new Flaw({ message: `has ${JSON.stringify(authority)} where a host name has to stand` });
  const path = rest.startsWith("/") ? rest : `/${rest}`;
  const resolved = withoutDots(path);
  if (resolved !== path)
    return new Flaw({
      message: "has dot segments, which no client sends",
      suggestion: host === null ? resolved : `https://${host}${resolved}`,
    });
  return { host, path };
}

function misplaced(text: string): Flaw["said"] {
  const message = "has to begin with /, or with https:// and a host";
  if (text.startsWith("//")) return { message, suggestion: `https:${text}` };
  if (text === "" || text.includes("://") || /[\s*]/.test(text)) return { message };
  const isHost = parseDomainName(/^[^/?#]*/.exec(text)?.[0].replace(/:\d*$/, "")) !== undefined;
  return { message, suggestion: isHost && text.includes("/") ? `https://${text}` : `/${text}` };
}

/** Removes dot segments (RFC 3986 §5.2.4) from a path, and leaves everything else as it is. */
function withoutDots(url: string): string {
  const [, path = "", query = ""] = /^([^?]*)(.*)$/s.exec(url) ?? [];
  if (!/\/\.{1,2}(?:\/|$)/.test(path)) return url;
  const kept: string[] = [];
  const segments = path.split("/").slice(1);
  for (const [at, segment] of segments.entries()) {
    const isDot = segment === "." || segment === "..";
    if (segment === "..") kept.pop();
    if (!isDot) kept.push(segment);
    else if (at === segments.length - 1) kept.push("");
  }
  return `/${kept.join("/")}${query}`;
}

function spellingsFlaw(
  urls: readonly NamedPath[],
  prefixes: readonly NamedPath[],
): ItemFault | undefined {
  let count = 0;
  let chars = 0;
  const lists = [
    ["urls", urls, urlSpellings],
    ["prefixes", prefixes, pathSpellings],
  ] as const;
  for (const [kind, items, spell] of lists)
    for (const [at, { path }] of items.entries()) {
      const words = spell(path).map(exactWord);
      if (words.some(({ length }) => length >= wordCharsMax - 3))
        return { kind, at, message: "is too long" };
      count += words.length;
      chars += words.reduce((sum, { length }) => sum + length, 0);
      if (count > clearSpellingsMax || chars > spelledCharsMax)
        return {
          kind,
          at,
          message: "and those before it have too many spellings for one clear; name fewer",
        };
    }
  return undefined;
}

/**
 * Returns the patterns of one URL in all its spellings. `normalize` returns what the cache
 * rules may let count of a URL, and all of it is cleared. A static file is cleared at every URL that shows it: with any query, and at
 * its directory if `indexNames` has its name.
 */
export function patternsOfUrl(
  url: string,
  indexNames: readonly string[],
  normalize: (url: string) => readonly string[] = () => [],
): readonly string[] {
  const sent = urlSpellings(url);
  const [path = ""] = url.split("?", 1);
  const files = path.endsWith("/")
    ? indexNames.map((name) => `${path}${name}`)
    : url === path
      ? []
      : [path];
  return [
    ...new Set([...sent, ...sent.flatMap(normalize)].map(exactUrl)),
    ...new Set(files.flatMap(pathSpellings).map((file) => `kind:static ${exactUrl(file)}`)),
  ];
}

/** Returns the patterns of a prefix in all its spellings. */
export function patternsOfPrefix(path: string): readonly string[] {
  const patterns = pathSpellings(path).flatMap((one) =>
    one.endsWith("/") ? [under(one)] : [exactUrl(one), under(`${one}/`), under(`${one}?`)],
  );
  return [...new Set(patterns)];
}
