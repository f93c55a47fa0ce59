// What a site says of headers: which are set, and which are removed. The domain says it of every answer (`headers`), a cache rule of the answers under it and of
// the requests that an origin is asked with (`cache.rules[].headers`).
//
// The requests of a rule need care, because its answers are shared. A header that the rule sets or removes is told alike for every visitor, so it tells no answers apart,
// whatever `Vary` says: what a visitor sends of it never reached the origin. In exchange, what was told is a part of what an entry means (requestEditsName).

import { createHash } from "node:crypto";
import type { SiteSettings } from "../serving/effective-devlove.ts";
import type { Field } from "./http-fields.ts";

export type HeaderEdits = SiteSettings["headers"];

/** Removes, then sets; a header with a name that is set is replaced. Returns the same list where nothing is said. */
export function withEdits(
  fields: readonly Field[],
  { set, remove }: HeaderEdits,
): readonly Field[] {
  const said = Object.entries(set);
  if (said.length === 0 && remove.length === 0) return fields;
  const gone = editedNames({ set, remove });
  return [...fields.filter(([name]) => !gone.has(name.toLowerCase())), ...said];
}

/** Returns the names that are set or removed, in lower case. */
export function editedNames({ set, remove }: HeaderEdits): ReadonlySet<string> {
  return new Set([...remove, ...Object.keys(set)].map((name) => name.toLowerCase()));
}

/** Returns edits that do what both do, one after the other; `second` itself where `first` says nothing. */
export function editsInTurn(first: HeaderEdits, second: HeaderEdits): HeaderEdits {
  if (isEmpty(first)) return second;
  const said = editedNames(second);
  const stays = Object.entries(first.set).filter(([name]) => !said.has(name.toLowerCase()));
  return {
    set: { ...Object.fromEntries(stays), ...second.set },
    remove: [...first.remove, ...Object.keys(first.set), ...second.remove],
  };
}

/** The representation metadata that a 304 leaves to the stored response (RFC 9110 §15.4.5). */
const ofRepresentation: ReadonlySet<string> = new Set([
  "content-disposition",
  "content-language",
  "content-type",
  "last-modified",
]);

/**
 * Returns what a rule says of a 304. A field that describes the body is not set there, and what the origin says of it is left
 * out: browsers would take that over in place of what the rule set with the body (RFC 9111 §4.3.4).
 */
export function editsOfNotModified({ set, remove }: HeaderEdits): HeaderEdits {
  const isLeftOut = (name: string): boolean => ofRepresentation.has(name.toLowerCase());
  const stays = Object.entries(set).filter(([name]) => !isLeftOut(name));
  return {
    set: Object.fromEntries(stays),
    remove: [...remove, ...Object.keys(set).filter(isLeftOut)],
  };
}

/** Returns a short name for what is said of the requests of a rule, the same for rules that say the same; "" if nothing is. */
export function requestEditsName({ set, remove }: HeaderEdits): string {
  if (isEmpty({ set, remove })) return "";
  const said = Object.entries(set).map(([name, value]) => [name.toLowerCase(), value] as const);
  const sorted = said.toSorted(([a], [b]) => (a < b ? -1 : 1));
  const gone = remove.map((name) => name.toLowerCase()).toSorted();
  const text = JSON.stringify([sorted, gone]);
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

function isEmpty({ set, remove }: HeaderEdits): boolean {
  return remove.length === 0 && Object.keys(set).length === 0;
}
