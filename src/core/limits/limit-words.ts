// Puts into words that a rule of `limits.requests` was against a request, and what would change it.

import type { StoryWords } from "../serving/verdict-words.ts";
import type { LimitVerdict } from "./limit-verdict.ts";

/** `rule` is undefined where it is not known any more which one it was. */
export type LimitStory = {
  readonly verdict: Pick<LimitVerdict, "kind"> & { readonly rule?: string | undefined };
  readonly clientIp: string;
  readonly host: string;
  /** Where the rule stands, in words; undefined where it is not in force any more. */
  readonly devlove: string | undefined;
};

export function tellLimit({ verdict, clientIp, host, devlove }: LimitStory): StoryWords {
  return {
    what: whatWords(verdict.kind),
    why: whyWords(verdict, clientIp),
    would_change_it: [
      `fewer requests from ${visitorWords(clientIp)}`,
      ...(devlove === undefined
        ? [`nothing in a devlove: ${host} has this rule no more`]
        : [
            `a larger rate or burst of this rule in limits.requests of ${devlove}`,
            verdict.kind === "limit"
              ? "mode: monitor of this rule, which lets through and counts"
              : "mode: enforce of this rule, which answers 429",
          ]),
      `marking ${clientIp} as a VIP bot of ${host}, because VIP bots are not counted`,
    ],
  };
}

/** Says the same in one line, for a record, which does not tell which rule it was. */
export function tellRecordedLimit(kind: LimitVerdict["kind"], clientIp: string): string {
  return `${whatWords(kind)}: ${whyWords({ kind }, clientIp)}`;
}

function whatWords(kind: LimitVerdict["kind"]): string {
  return kind === "limit"
    ? "refused with 429"
    : "let through, because the rule is in monitor mode; in enforce mode it is refused with 429";
}

function whyWords({ rule }: LimitStory["verdict"], clientIp: string): string {
  const which =
    rule === undefined ? "a rule of limits.requests allows" : `the rule allows: ${rule}`;
  return `${visitorWords(clientIp)} asked more often than ${which}`;
}

function visitorWords(clientIp: string): string {
  return clientIp.includes(":") ? `the /64 of ${clientIp}` : clientIp;
}
