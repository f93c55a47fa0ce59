// The bot access policy as a table of what would happen, and the changes of it that pages make. Pure but for the two calls at the end.

import type { Policy } from "../wire/customer/policy.ts";
import { ask, send } from "./api.ts";

export type Outcome = {
  readonly who: string;
  readonly isLetIn: boolean;
  readonly why: string;
  /** The bot that was let in or refused here by name. */
  readonly decided?: string;
};

type Pair = Policy["allow_access"][number];

/** What happens to whom at a domain, in the order in which it is decided. */
export function outcomesOf(policy: Policy, domain: string): readonly Outcome[] {
  const of = (pairs: readonly Pair[]): readonly string[] =>
    pairs.flatMap((pair) => (pair.domain === domain ? [pair.bot] : []));
  return [
    {
      who: "whoever comes from an address of the VIP list",
      isLetIn: true,
      why: "the list decides first",
    },
    {
      who: "whoever comes from an address of the bad list",
      isLetIn: false,
      why: "the list decides",
    },
    ...of(policy.deny_access).map((bot) => ({
      who: bot,
      isLetIn: false,
      decided: bot,
      why: `you refused ${bot} here`,
    })),
    ...of(policy.allow_access).map((bot) => ({
      who: bot,
      isLetIn: true,
      decided: bot,
      why: `you let ${bot} in here; where a list has addresses of it, from those only`,
    })),
    { who: "any other bot", ...othersOf(policy, domain) },
    { who: "people", isLetIn: true, why: "they are no bots" },
  ];
}

function othersOf(policy: Policy, domain: string): Omit<Outcome, "who"> {
  const own = policy.per_domain_policy.find((one) => one.domain === domain);
  if (own !== undefined)
    return { isLetIn: own.policy.unknown_bots_can_access, why: "the policy of this domain" };
  return {
    isLetIn: policy.general_policy.unknown_bots_can_access,
    why: "the general policy; without one, unreviewed bots are refused",
  };
}

/** The policy of a domain on bots that nobody reviewed: its own, or the general one. */
export function ownPolicyOf(policy: Policy, domain: string): "let-in" | "refuse" | "general" {
  const own = policy.per_domain_policy.find((one) => one.domain === domain);
  return own === undefined ? "general" : own.policy.unknown_bots_can_access ? "let-in" : "refuse";
}

/**
 * Lets a bot in, refuses it, or takes either back. The pairs are read at that moment: central replaces all of
 * them at once.
 */
export async function decideOnBot(
  domain: string,
  bot: string,
  say: "let-in" | "refuse" | "nothing",
): Promise<void> {
  const policy = await ask<Policy>("/bot-access-policy/");
  const others = (pairs: readonly Pair[]): readonly Pair[] =>
    pairs.filter((pair) => pair.domain !== domain || pair.bot !== bot);
  const own = [{ domain, bot }];
  await send("POST", "/bot-access-policy/", {
    allow_access: [...others(policy.allow_access), ...(say === "let-in" ? own : [])],
    deny_access: [...others(policy.deny_access), ...(say === "refuse" ? own : [])],
  });
}

/** Sets what happens to bots that nobody reviewed, at one domain. */
export async function setUnreviewed(
  domain: string,
  say: ReturnType<typeof ownPolicyOf>,
): Promise<void> {
  const policy = await ask<Policy>("/bot-access-policy/");
  const others = policy.per_domain_policy.filter((one) => one.domain !== domain);
  const own = {
    domain,
    policy: { unknown_bots_can_access: say === "general" ? null : say === "let-in" },
  };
  await send("POST", "/bot-access-policy/", { per_domain_policy: [...others, own] });
}
