// How long browsers may keep an answer, where a rule says so (`browser_ttl_s`): for answers that the cache shares, in place of the lifetime that the origin
// names to them.
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

function isForbidden(said: string | undefined): boolean {
  const directives = responseDirectives(said);
  if (forbidding.some((name) => directives.has(name))) return true;
  const isBinding = binding.some((name) => directives.has(name));
  return isBinding && directiveSeconds(directives, "max-age") === 0;
}
