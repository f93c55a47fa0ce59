// The query of a request: which parameters an endpoint reads, and how others are refused. A parameter that
// was ignored would be a filter or a wait that nobody applies.

import { nearest } from "../../../core/nearest.ts";
import { invalid, type ProblemAnswer } from "./answer.ts";
import type { Told } from "./endpoint.ts";

const listParameters = ["limit", "after"];
/** Clients of other services send it everywhere; JSON is what they get. */
const formatParameter = "format";
/** The most faults of one request that are named. */
const faultsMax = 20;
const nameCharsShown = 100;

/** Returns the query: all behind the first question mark (RFC 3986 §3.4); further ones are part of it. */
export function queryOf(url: string): URLSearchParams {
  const at = url.indexOf("?");
  return new URLSearchParams(at < 0 ? "" : url.slice(at + 1));
}

/**
 * Says what is wrong with the query. Returns undefined if the endpoint knows every parameter, each is there
 * once, and none is missing.
 */
export function queryFault(
  { query, gives }: Pick<Told, "query" | "gives">,
  given: URLSearchParams,
): ProblemAnswer | undefined {
  const missing = Object.entries(query ?? {}).flatMap(([name, { required }]) =>
    required === true && !given.has(name) ? [{ path: `?${name}`, message: "is missing" }] : [],
  );
  if (given.size + missing.length === 0) return undefined;
  const known = [...Object.keys(query ?? {}), ...(gives.kind === "list" ? listParameters : [])];
  const names = [...new Set(given.keys())];
  const faults = names.flatMap((name) => {
    const message = faultOf(name, given.getAll(name), known);
    return message === undefined ? [] : [{ path: `?${name.slice(0, nameCharsShown)}`, message }];
  });
  const all = [...faults, ...missing];
  return all.length === 0 ? undefined : invalid(all.slice(0, faultsMax));
}

function faultOf(
  name: string,
  values: readonly string[],
  known: readonly string[],
): string | undefined {
  const isKnown = known.includes(name);
  if (name === formatParameter && !isKnown)
    return values.every((value) => value === "json") ? undefined : "must be json";
  if (isKnown) return values.length === 1 ? undefined : "must be given once";
  const near = nearest(name, known);
  if (near !== undefined) return `unknown parameter; did you mean ${near}?`;
  return known.length === 0
    ? "unknown parameter; this call has none"
    : `unknown parameter; this call has ${known.join(", ")}`;
}
