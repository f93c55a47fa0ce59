// How long browsers may keep an answer, where a rule says so (`browser_ttl_s`): for answers that the cache shares, in place of the lifetime that the origin
// names to them.
//
// What a soft clear has made stale is told with no lifetime at all.
//
// As with `ttl_s`, no prohibition is lifted: what the origin wants to be asked about each time, and what is for one visitor, stays as it says.

import { directiveSeconds, responseDirectives } from "./cache-control.ts";
import { lastsByRule } from "./http-cache.ts";
import { fieldValue, listMembers, withoutFields, type Field } from "./http-fields.ts";

export type ToBrowser = {
  /** Of the response, also where a 304 or a part of it is sent. */
  readonly status: number;
  /** What its Age field says: browsers take it off the lifetime (RFC 9111 §4.2). */
  readonly ageS: number;
  readonly browserTtlS: number | null;
};

const replaced: ReadonlySet<string> = new Set(["cache-control", "expires"]);
/** Directives that forbid browsers to keep an answer, or to use it unasked. */
const forbidding = ["no-store", "no-cache", "private"];
const binding = ["must-revalidate", "proxy-revalidate"];

/** Returns the fields of a shared answer as browsers are told them. */
export function forBrowsers(
  fields: readonly Field[],
  { status, ageS, browserTtlS }: ToBrowser,
): readonly Field[] {
  if (browserTtlS === null || !lastsByRule.has(status)) return fields;
  const said = fieldValue(fields, "cache-control");
  if (isForbidden(said) || (said === undefined && isForbidden(fieldValue(fields, "pragma"))))
    return fields;
  const others = listMembers(said ?? "").filter((member) => !/^max-age *(?:=|$)/i.test(member));
  const told = [...others, `max-age=${browserTtlS === 0 ? 0 : browserTtlS + ageS}`].join(", ");
  return [...withoutFields(fields, replaced), ["Cache-Control", told]];
}

/** The fields that name a lifetime to browsers, or to caches between them and this one. */
const lifetimes = ["cache-control", "cdn-cache-control"];
const lifetime = /^(?:max-age|s-maxage|stale-while-revalidate|stale-if-error) *(?:=|$)/i;

/**
 * Returns the fields of a stored answer that a soft clear has made stale as everybody behind is told them: whoever
 * keeps it has to ask before the next use, for here it is replaced in a moment.
 */
export function forOutdated(fields: readonly Field[]): readonly Field[] {
  const told = lifetimes.flatMap((name): readonly Field[] => {
    const said = fieldValue(fields, name);
    if (said === undefined && name !== "cache-control") return [];
    const others = listMembers(said ?? "").filter((member) => !lifetime.test(member));
    const spelt = name === "cache-control" ? "Cache-Control" : "CDN-Cache-Control";
    return [[spelt, [...others, "max-age=0"].join(", ")]];
  });
  return [...withoutFields(fields, new Set([...lifetimes, "expires"])), ...told];
}

function isForbidden(said: string | undefined): boolean {
  const directives = responseDirectives(said);
  if (forbidding.some((name) => directives.has(name))) return true;
  const isBinding = binding.some((name) => directives.has(name));
  return isBinding && directiveSeconds(directives, "max-age") === 0;
}
