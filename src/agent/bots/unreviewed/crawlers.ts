// The known crawlers with pattern, name and description, from the package crawler-user-agents. Updating the
// package refreshes them.
//
// Nearly all of the 1,500 patterns are plain texts, and the others hold one. All these texts are searched at
// once, and a pattern is tried only where its text occurs. So the time is bounded by the length of the agent,
// not by the number of patterns.

import list from "crawler-user-agents";
import { TextFinder } from "../decisions/text-finder.ts";
import type { TokenPlace } from "./agent-tokens.ts";

export type Crawler = {
  readonly pattern: string;
  /**
   * The text that the pattern looks for. Bots had this name before they were named by their agents' own text.
   */
  readonly name: string;
  readonly description: string | null;
  /** The package's words for what it does, such as "seo" or "feed-reader". */
  readonly tags: readonly string[];
  /** Whether it is a library or a driven browser, whose user may have a name of its own. */
  readonly isTool: boolean;
};

// The package's types lag behind its data, which has described every crawler since 1.40.
type Described = {
  readonly pattern: string;
  readonly description?: string;
  readonly tags?: readonly string[];
};

const tools: ReadonlySet<string> = new Set(["http-library", "browser-automation"]);

let read: readonly Crawler[] | undefined;

/** Reads the package when it is asked first. */
export function knownCrawlers(): readonly Crawler[] {
  read ??= (list as readonly Described[]).map(({ pattern, description, tags = [] }) => ({
    pattern,
    name: nameInPattern(pattern),
    description: description ?? null,
    tags,
    isTool: tags.some((tag) => tools.has(tag)),
  }));
  return read;
}

/**
 * Returns the text that a pattern looks for: "Googlebot" for "Googlebot\/", "curl" for "^curl", "wget" for
 * "[wW]get".
 */
export function nameInPattern(pattern: string): string {
  const name = pattern
    .replaceAll(/\[\\s\]|\\s[*+]?/g, " ")
    .replaceAll(/\\[bBdDSwW]|\(\^\| \)|\(\?:[^)]*\)\??/g, "")
    .replaceAll(/\[\\?(.)[^\]]*\]/g, "$1")
    .replaceAll(/\\(.)/g, "$1")
    .replaceAll(/[\^$*+?()|{}]/g, "")
    .replaceAll(/^[\s/.:-]+|[\s/.:-]+$/g, "");
  return name === "" ? pattern : name;
}

/** One alternative of a pattern. */
type Sought = {
  /** A text that occurs in every agent that matches; "" if the pattern holds none. */
  readonly text: string;
  /** Tests an agent; undefined if the text is the whole pattern. */
  readonly matches: ((agent: string) => boolean) | undefined;
  /** Finds where the text that names the crawler stands. */
  readonly places: (agent: string) => readonly TokenPlace[];
  readonly crawler: Crawler;
};

/** The most places of one pattern in one agent; further ones are not looked at. */
const placesMax = 8;

/**
 * A crawler in an agent, and the places where its pattern matches; for a pattern of several texts, the places
 * of the first.
 */
export type FoundCrawler = { readonly crawler: Crawler; readonly places: readonly TokenPlace[] };

export class CrawlerNames {
  readonly #sought: readonly Sought[];
  readonly #finder: TextFinder;
  /** The indexes in `#sought` of those without a text, which are always tried. */
  readonly #textless: readonly number[];
  readonly #byName: ReadonlyMap<string, Crawler>;

  constructor(known: readonly Crawler[] = knownCrawlers()) {
    const ranked = known.toSorted(inRank);
    this.#sought = ranked.flatMap((crawler) => soughtOf(crawler));
    this.#finder = new TextFinder(this.#sought.map(({ text }) => text));
    this.#textless = this.#sought.flatMap(({ text }, at) => (text === "" ? [at] : []));
    this.#byName = new Map(ranked.toReversed().map((crawler) => [key(crawler.name), crawler]));
  }

  /**
   * Returns the crawler whose pattern matches, the first in rank if several do. It takes time in proportion
   * to the agent's length.
   */
  match(agent: string): Crawler | undefined {
    return this.#first(agent)?.crawler;
  }

  /** Returns the same crawler, and where its pattern matches. */
  find(agent: string): FoundCrawler | undefined {
    const found = this.#first(agent);
    return found === undefined
      ? undefined
      : { crawler: found.crawler, places: found.places(agent) };
  }

  #first(agent: string): Sought | undefined {
    let best = this.#sought.length;
    const refused = new Set<number>();
    const look = (at: number): void => {
      if (at >= best || refused.has(at)) return;
      if (this.#sought[at]?.matches?.(agent) === false) refused.add(at);
      else best = at;
    };
    this.#finder.find(agent, look);
    for (const at of this.#textless) look(at);
    return this.#sought[best];
  }

  /** Returns a crawler by its name, whatever the case. */
  named(name: string): Crawler | undefined {
    return this.#byName.get(key(name));
  }
}

/**
 * Ranks crawlers before tools, since who uses a tool says more; then the longest name, which says most, then
 * by the package's order.
 */
export function inRank(a: Crawler, b: Crawler): number {
  return Number(a.isTool) - Number(b.isTool) || b.name.length - a.name.length;
}

const key = (name: string): string => name.toLowerCase();

function soughtOf(crawler: Crawler): readonly Sought[] {
  const { pattern } = crawler;
  // An alternative within a group belongs to the group.
  const alternatives = pattern.includes("(") ? [pattern] : pattern.split("|");
  return alternatives.map((one) => {
    const { text, isAll } = longestText(one);
    const matches = isAll ? undefined : whenAsked(() => matcherOf(one));
    const places = whenAsked(() => placesOf(one, isAll ? text : undefined));
    return { text, matches, places, crawler };
  });
}

/** Makes the function when it is called first: most patterns are never met. */
function whenAsked<Answer>(make: () => (agent: string) => Answer): (agent: string) => Answer {
  let made: ((agent: string) => Answer) | undefined;
  return (agent) => {
    made ??= make();
    return made(agent);
  };
}

/** Returns how to find the places of a pattern; `text` is given if it is the whole pattern. */
function placesOf(
  pattern: string,
  text: string | undefined,
): (agent: string) => readonly TokenPlace[] {
  const steps = stepsOf(pattern);
  const sought = text ?? steps?.[0];
  if (sought !== undefined) return (agent) => occurrences(agent, sought);
  const expression = new RegExp(pattern, "g");
  return (agent) => {
    const places: TokenPlace[] = [];
    expression.lastIndex = 0;
    while (places.length < placesMax) {
      const found = expression.exec(agent);
      if (found === null) break;
      places.push({ from: found.index, to: found.index + found[0].length });
    }
    return places;
  };
}

function occurrences(agent: string, text: string): readonly TokenPlace[] {
  const places: TokenPlace[] = [];
  let from = agent.indexOf(text);
  while (from >= 0 && places.length < placesMax) {
    places.push({ from, to: from + text.length });
    from = agent.indexOf(text, from + text.length);
  }
  return places;
}

/** Returns the texts of a pattern such as "A[\s\S]*B" in their order; undefined for any other pattern. */
function stepsOf(pattern: string): readonly string[] | undefined {
  const steps = pattern.split("[\\s\\S]*").map((step) => longestText(step));
  if (steps.length === 1 || steps.some(({ isAll }) => !isAll)) return undefined;
  return steps.map(({ text }) => text);
}

/**
 * Makes the test of a pattern. As an expression "A[\s\S]*B" would look for B behind each A; here the first A
 * is enough.
 */
function matcherOf(pattern: string): (agent: string) => boolean {
  const steps = stepsOf(pattern);
  if (steps === undefined) {
    const expression = new RegExp(pattern);
    return (agent) => expression.test(agent);
  }
  return (agent) => {
    let at = 0;
    for (const text of steps) {
      const found = agent.indexOf(text, at);
      if (found < 0) return false;
      at = found + text.length;
    }
    return true;
  };
}

/** All but a few patterns. */
const standsForItself = /^(?:[^\\^$.|?*+()[\]{}]|\\[^A-Za-z0-9])*$/;

/**
 * Returns the longest run of characters that stand for themselves, and whether the pattern is nothing else.
 * Alternatives are not looked into.
 */
function longestText(pattern: string): { readonly text: string; readonly isAll: boolean } {
  if (standsForItself.test(pattern))
    return { text: pattern.replaceAll(/\\(.)/g, "$1"), isAll: true };
  const runs = [""];
  const part = /\\(?<escaped>[^A-Za-z0-9])|\\.|\[(?:\\.|[^\]])*\]|\((?:\\.|[^()])*\)|./gsu;
  let [isAll, isKnown] = [true, true];
  for (const { 0: found, groups } of pattern.matchAll(part)) {
    const char = groups?.["escaped"] ?? (/^[^\\^$.|?*+()[\]{}]$/u.test(found) ? found : undefined);
    const run = runs.at(-1) ?? "";
    if (char !== undefined) {
      runs[runs.length - 1] = run + char;
      continue;
    }
    isAll = false;
    // Groups in groups, counts, and alternatives beside groups are not understood; such a pattern is always
    // tried.
    if (/^[|(){}]$/.test(found)) isKnown = false;
    // A character that may be absent is not certain to occur.
    if (/^[?*+]$/.test(found)) runs[runs.length - 1] = run.slice(0, -1);
    runs.push("");
  }
  return { text: isKnown ? runs.reduce(longer) : "", isAll };
}

function longer(a: string, b: string): string {
  return b.length > a.length ? b : a;
}
