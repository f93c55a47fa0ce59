// `If-Match` and `If-None-Match` of a change (RFC 9110, sections 13.1.1 and 13.1.2), so that nobody writes over what somebody else wrote meanwhile.

import { problem, type ProblemAnswer } from "./answer.ts";

/** Of 128 bits; enough that two contents never share one. */
const digits = 32;

/** Returns the entity tag of contents with this digest, for `ETag`. */
export function tagOf(digest: string): string {
  return `"${digest.slice(0, digits)}"`;
}

/** Says that what is there, or undefined for nothing, is not what the request is for. */
export function preconditionFault(
  header: (name: string) => string | undefined,
  held: { readonly digest: string } | undefined,
): ProblemAnswer | undefined {
  const tag = held === undefined ? undefined : tagOf(held.digest);
  const [match, noneMatch] = [header("if-match"), header("if-none-match")];
  if (match !== undefined && !isIn(match, tag))
    return problem(
      412,
      `If-Match is ${match.slice(0, 100)}, and what is there ${tag === undefined ? "is nothing" : `has ${tag}`}: read it again`,
    );
  if (noneMatch !== undefined && isIn(noneMatch, tag))
    return problem(412, `If-None-Match is ${noneMatch.slice(0, 100)}, and ${tag} is there`);
  return undefined;
}

/** Weak tags match nothing: they are for caches. */
function isIn(list: string, tag: string | undefined): boolean {
  if (tag === undefined) return false;
  return list.trim() === "*" || list.split(",").some((one) => one.trim() === tag);
}
