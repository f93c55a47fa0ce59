// The bot access policy as a table of what would happen, and the changes of it that pages make. Pure but for the three calls at the end.

import { botClassWords } from "../core/serving/bot-class-words.ts";
import { botClasses, type BotClass } from "../core/serving/verdict.ts";
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
type Access = Policy["general_policy"];
/** The policies of domains as they are sent; null takes one away. */
type DomainPolicies = readonly {
  readonly domain: string;
  readonly policy: Access | { readonly unknown_bots_can_access: null };
}[];

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
    ...unknownBots(policy, domain),
    { who: "people", isLetIn: true, why: "they are no bots" },
  ];
}

/** Classes of which another thing is said, then all others. */
function unknownBots(policy: Policy, domain: string): readonly Outcome[] {
  const own = ownAccess(policy, domain);
  const access = own ?? policy.general_policy;
  const isLetIn = access.unknown_bots_can_access;
  const classes = botClasses.filter((one) => access[botClassWords[one].key] === !isLetIn);
  return [
    ...classes.map((botClass) => ({
      who: `an unknown ${botClassWords[botClass].one}`,
      isLetIn: !isLetIn,
      why: own === undefined ? "the general policy" : "the policy of this domain",
    })),
    {
      who: "any other bot",
      isLetIn,
      why:
        own === undefined
          ? "the general policy; without one, unreviewed bots are refused"
          : "the policy of this domain",
    },
  ];
}

function ownAccess(policy: Policy, domain: string): Access | undefined {
  return policy.per_domain_policy.find((one) => one.domain === domain)?.policy;
}

/** The policy of a domain on bots that nobody reviewed: its own, or the general one. */
export function ownPolicyOf(policy: Policy, domain: string): "let-in" | "refuse" | "general" {
  const own = ownAccess(policy, domain);
  return own === undefined ? "general" : own.unknown_bots_can_access ? "let-in" : "refuse";
}

/** What a domain's own policy says of a class of those bots. */
export function ownClassOf(
  policy: Policy,
  domain: string,
  botClass: BotClass,
): "as-others" | "let-in" | "refuse" {
  const said = ownAccess(policy, domain)?.[botClassWords[botClass].key];
  return said === undefined ? "as-others" : said ? "let-in" : "refuse";
}

/**
 * Returns the policies of all domains, with another word of one on bots that nobody reviewed. What it says of classes
 * stays; it goes with the policy.
 */
export function withUnreviewed(
  policy: Policy,
  domain: string,
  say: ReturnType<typeof ownPolicyOf>,
): DomainPolicies {
  const own = ownAccess(policy, domain);
  return withOwn(
    policy,
    domain,
    say === "general"
      ? { unknown_bots_can_access: null }
      : { ...own, unknown_bots_can_access: say === "let-in" },
  );
}

/** Returns the policies of all domains, with another word of one on a class. It needs a policy of its own for that. */
export function withClass(
  policy: Policy,
  domain: string,
  botClass: BotClass,
  say: ReturnType<typeof ownClassOf>,
): DomainPolicies {
  const own = ownAccess(policy, domain);
  if (own === undefined) return policy.per_domain_policy;
  const { [botClassWords[botClass].key]: _said, ...others } = own;
  const said = say === "as-others" ? {} : { [botClassWords[botClass].key]: say === "let-in" };
  return withOwn(policy, domain, { ...others, ...said });
}

function withOwn(
  policy: Policy,
  domain: string,
  own: DomainPolicies[number]["policy"],
): DomainPolicies {
  const others = policy.per_domain_policy.filter((one) => one.domain !== domain);
  return [...others, { domain, policy: own }];
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
  const body = { per_domain_policy: withUnreviewed(policy, domain, say) };
  await send("POST", "/bot-access-policy/", body);
}

/** Sets what happens to a class of those bots, at one domain that has a policy of its own. */
export async function setClass(
  domain: string,
  botClass: BotClass,
  say: ReturnType<typeof ownClassOf>,
): Promise<void> {
  const policy = await ask<Policy>("/bot-access-policy/");
  const body = { per_domain_policy: withClass(policy, domain, botClass, say) };
  await send("POST", "/bot-access-policy/", body);
}
