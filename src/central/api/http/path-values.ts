// Values in paths and texts: ids, names, tags. A text that is no such value names nothing that exists.

import { parseDomainName } from "../../../core/ids.ts";
import { invalid, notFound, type ProblemAnswer } from "./answer.ts";
import { reaches, type Reach } from "../../store/people/tokens.ts";
import type { DomainRow, HostRow } from "../../store/content/domains.ts";
import { findDomain, findHost } from "../../store/content/domains.ts";
import type { Work } from "../../store/engine/work.ts";

const nameCharsMax = 255;
const idCharsShown = 40;

/** Returns the id, or 0 for a text that is none; no row has the id 0. */
export function idOf(text: string): number {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0;
}

/** Shows in refusals what a path has in the place of an id: as it is, or quoted and with what an id is. */
export function shownId(text: string): string {
  if (/^[1-9]\d*$/.test(text) && text.length <= idCharsShown) return text;
  const shown = JSON.stringify(text.slice(0, nameCharsMax));
  return `${shown} (an id is a whole number from 1 on, without zeros in front)`;
}

/** Returns a main domain that the actor's token is for; any other is as one that does not exist. */
export async function mainDomain(
  work: Work,
  actor: Reach,
  text: string,
): Promise<DomainRow | ProblemAnswer> {
  const name = parseDomainName(text);
  const domain = name === undefined ? undefined : await findDomain(work, actor.customerId, name);
  if (domain === undefined || !reaches(actor, domain.name))
    return notFound(`domain ${JSON.stringify(text)}`);
  work.concerned.add(domain.name);
  return domain;
}

/** Returns a main domain or a sub-domain, as `mainDomain` does. `path` is where in the body it was named. */
export async function hostNamed(
  work: Work,
  actor: Reach,
  text: string,
  path?: string,
): Promise<HostRow | ProblemAnswer> {
  const name = parseDomainName(text);
  const host = name === undefined ? undefined : await findHost(work, actor.customerId, name);
  if (host !== undefined && reaches(actor, host.main)) {
    work.concerned.add(host.main);
    return host;
  }
  const what = `domain ${JSON.stringify(text)}`;
  return path === undefined
    ? notFound(what)
    : notFound(what, [{ path, message: "is no domain of this customer" }]);
}

export function isProblem(value: object): value is ProblemAnswer {
  return "kind" in value && value.kind === "problem";
}

/**
 * Checks the name of a viewset version. Names come in paths, so they are visible at both ends and have no
 * control characters.
 */
export function viewsetName(text: string): string | ProblemAnswer {
  const isName = text.length <= nameCharsMax && text.trim() === text && !/\p{Cc}/u.test(text);
  return isName && text !== ""
    ? text
    : invalid([
        {
          path: "viewset",
          message: `must be 1 to ${nameCharsMax} characters, without blanks at the ends and control characters`,
        },
      ]);
}

const tagsMax = 100;
const tagCharsMax = 255;

/**
 * Parses comma-separated tags: trimmed, case kept, each once, in the order given. Returns undefined if there
 * are too many or one is too long.
 */
export function parseTags(text: string): readonly string[] | undefined {
  const tags = new Set(
    text
      .split(",")
      .map((tag) => tag.trim())
      .filter((tag) => tag !== ""),
  );
  const isBounded = tags.size <= tagsMax && [...tags].every((tag) => tag.length <= tagCharsMax);
  return isBounded ? [...tags] : undefined;
}

export function tagsProblem(path: string): ProblemAnswer {
  return invalid([
    { path, message: `must be at most ${tagsMax} tags of at most ${tagCharsMax} characters` },
  ]);
}
