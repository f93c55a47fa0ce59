// Makes patterns from what they are to clear; docs/clear-cache.md has the same recipes for customers.

import { exactWord } from "./exact-word.ts";
import { urlOf, type IndexedEntry } from "./index-schema.ts";
import { patternCharsMax } from "./pattern-budget.ts";

/** Every entry has one of these two words. */
export const everything = "kind:static OR kind:generated";

/**
 * Returns the pattern of one URL: the path as sent, with `?` and the query if there is one; for a static
 * file, "/" and its path below the site root.
 */
export function exactUrl(url: string): string {
  return `url:${exactWord(url)}`;
}

/** Returns the pattern of every URL that begins like this: for `/css/`, all that lies there, however deep. */
export function under(url: string): string {
  return `url:${exactWord(url)}*`;
}

/**
 * Returns the pattern of what lies in a directory itself, not in those below it. The directory's name ends
 * with "/".
 */
export function directlyIn(directory: string): string {
  return `dir:${exactWord(directory)}`;
}

/** Returns the pattern of an extension without its dot, as it is written: `png` is not `PNG`. */
export function extension(name: string): string {
  return `ext:${exactWord(name)}`;
}

/** Returns the pattern of one parameter of the query, as it was sent: `page=2`. */
export function parameter(text: string): string {
  return `param:${exactWord(text)}`;
}

/** Returns the pattern of one tag of a response, byte for byte. */
export function tagged(tag: string): string {
  return `tag:${exactWord(tag)}`;
}

/**
 * Returns the pattern that clears this entry's URL and no other. If the URL is too long for a pattern, it
 * clears what begins like it too.
 */
export function exactPatternOf(entry: Pick<IndexedEntry, "kind" | "path" | "query">): string {
  const pattern = exactUrl(urlOf(entry));
  return pattern.length <= patternCharsMax ? pattern : `${pattern.slice(0, patternCharsMax - 1)}*`;
}
