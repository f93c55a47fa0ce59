// What a rule of `limits.requests` comes to for a request, and how it is recorded: beside the verdict on the visitor, in the same words.

import type { Verdict } from "../serving/verdict.ts";

/** What the rules of a host say of a request. */
export type LimitFact =
  | { readonly kind: "within" }
  /** It is too much, and may be sent again after so many whole seconds. */
  | { readonly kind: "over"; readonly waitS: number };

export const limitKinds = ["limit", "would-limit"] as const;
export const limitReasons = ["request-rate"] as const;

/** A rule was against the request. `would-limit`: the rule's mode let it through. */
export type LimitVerdict = {
  readonly kind: (typeof limitKinds)[number];
  readonly reason: (typeof limitReasons)[number];
  /** The bot that the visitor is, or claims to be. */
  readonly bot: string | null;
  /** The rule, in words. */
  readonly rule: string;
};

/** What a record says of a visitor. */
export type ToldVerdict = {
  readonly kind: Verdict["kind"] | LimitVerdict["kind"];
  readonly reason: Verdict["reason"] | LimitVerdict["reason"];
  readonly bot: string | null;
};

/** Returns what the record tells of both. What monitor mode of bots let through says more than what a rule did. */
export function toldVerdict(
  verdict: Verdict | undefined,
  limit: LimitVerdict | undefined,
): ToldVerdict | undefined {
  if (limit === undefined) return verdict;
  return limit.kind === "would-limit" && verdict?.kind === "would-block" ? verdict : limit;
}

/** VIP bots spend nothing: an address in a VIP set, unless a pair denies it. */
export function isExempt({ kind, set }: Pick<Verdict, "kind" | "set">): boolean {
  return kind === "allow" && set?.kind === "vip";
}
