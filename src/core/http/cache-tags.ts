// The tags by which an origin groups its responses for clears, in the fields of the common caches:
//
//   Cache-Tag, X-Magento-Tags            separated by commas; a tag may hold blanks
//   Surrogate-Key                        separated by blanks
//   xkey, Cache-Tags, X-Cache-Tags       separated by either
//   Purge-Cache-Tags                     the same, of Drupal's Generic HTTP Purger
//
// A tag counts byte for byte. A list that is cut short would leave pages behind at a clear, so it is too much
// as a whole.

import { exactWord } from "../patterns/exact-word.ts";
import type { Field } from "./http-fields.ts";

/** The most bytes of a tag. */
export const tagBytesMax = 1_024;
/** The most tags of a response. */
export const tagsMax = 5_000;

const byComma = /,/;
const byBlank = /[ \t]+/;
const byEither = /[, \t]+/;
const separators: ReadonlyMap<string, RegExp> = new Map([
  ["cache-tag", byComma],
  ["x-magento-tags", byComma],
  ["surrogate-key", byBlank],
  ["xkey", byEither],
  ["cache-tags", byEither],
  ["purge-cache-tags", byEither],
  ["x-cache-tags", byEither],
]);

/** The names of the fields, in lower case. They are for caches: visitors do not get them. */
export const cacheTagFields: ReadonlySet<string> = new Set(separators.keys());

export type CacheTags =
  /** The response has no such field. */
  | { readonly kind: "none" }
  /** The tags as exact words, joined by blanks; "" if the fields are empty. */
  | { readonly kind: "tags"; readonly words: string }
  /** There are more, or longer ones, than are stored. */
  | { readonly kind: "too much" };

/** Reads the tags of a response. Values are as Node gives them: a character for each byte. */
export function cacheTagsOf(fields: readonly Field[]): CacheTags {
  let isSaid = false;
  const words = new Set<string>();
  for (const [name, value] of fields) {
    const separator = separators.get(name.toLowerCase());
    if (separator === undefined) continue;
    isSaid = true;
    for (const part of value.split(separator)) {
      const tag = part.trim();
      if (tag === "") continue;
      if (tag.length > tagBytesMax) return { kind: "too much" };
      words.add(exactWord(bytesOf(tag)));
      if (words.size > tagsMax) return { kind: "too much" };
    }
  }
  return isSaid ? { kind: "tags", words: [...words].join(" ") } : { kind: "none" };
}

function bytesOf(text: string): string | Uint8Array {
  return /^[\x20-\x7e]*$/.test(text)
    ? text
    : Uint8Array.from(text, (character) => character.charCodeAt(0));
}
