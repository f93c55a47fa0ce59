// Puts a verdict into words: why it is what it is, and what would change it, in the terms of the customer
// API. It reads decision 14 backwards.

import { botClassWords } from "./bot-class-words.ts";
import type { BotClass, SetRef, Verdict } from "./verdict.ts";

/** The policy that decided beside the sets; null if the set decided alone, or nobody is a bot. */
export type PolicySaid =
  /**
   * `domain` is null if it is no longer known whose pair it was. `bot` is the name in the pair, if that is an
   * older name of the bot.
   */
  | {
      readonly kind: "pair";
      readonly says: "allow" | "deny";
      readonly domain: string | null;
      readonly bot?: string;
    }
  | { readonly kind: "domain"; readonly says: "allow" | "deny"; readonly domain: string }
  | { readonly kind: "general"; readonly says: "allow" | "deny" }
  /** It is not known whether a policy of the domain said it or the general one. */
  | { readonly kind: "either"; readonly says: "allow" | "deny" }
  | { readonly kind: "default"; readonly says: "deny" };

export type Story = {
  readonly verdict: Verdict;
  readonly clientIp: string;
  readonly host: string;
  /** Where the host's configuration stands, in words. */
  readonly devlove: string;
  readonly policy: PolicySaid | null;
  /** The range of the verdict's set that holds the address; undefined if the set no longer holds it. */
  readonly range: string | undefined;
  /**
   * Whether the name is allowed, which does not help a claim: the sets hold other addresses for it than this
   * one.
   */
  readonly isAllowedElsewhere: boolean;
  /** What kind of bot the user agent claims to be; undefined for people. */
  readonly botClass: BotClass | undefined;
  /** What the policy says of other unknown bots, where it says something of its own about that class now. */
  readonly saidOfOthers: boolean | undefined;
  /** Whether it was decided before: nobody knows any more whether the policy spoke of all unknown bots or of a class. */
  readonly isPast: boolean;
};

export type StoryWords = {
  readonly what: string;
  readonly why: string;
  /** Each of these alone would change it. */
  readonly would_change_it: readonly string[];
};

export function tellStory(story: Story): StoryWords {
  return {
    what: whatWords(story.verdict.kind),
    why: whyWords(story),
    would_change_it: changeWords(story),
  };
}

/**
 * `policyOf` is the domain whose policy on unknown bots holds for the host, `pairOf` the domain whose pair of
 * this bot does, and `pairedAs` the bot's name in that pair.
 */
export function policySaid(
  { reason, bot }: Verdict,
  policyOf: string | undefined,
  pairOf: string | null,
  pairedAs: string | null = bot,
): PolicySaid | null {
  switch (reason) {
    case "allow-pair":
    case "deny-pair":
      return {
        kind: "pair",
        says: reason === "allow-pair" ? "allow" : "deny",
        domain: pairOf,
        ...(pairedAs !== null && pairedAs !== bot && { bot: pairedAs }),
      };
    case "fake-allowed":
    case "fake-blocked":
    case "unreviewed-allowed":
    case "unreviewed-blocked": {
      const says = reason.endsWith("-allowed") ? "allow" : "deny";
      return policyOf === undefined
        ? { kind: "general", says }
        : { kind: "domain", says, domain: policyOf };
    }
    case "fake-blocked-by-default":
    case "unreviewed-blocked-by-default":
      return { kind: "default", says: "deny" };
    case "not-a-bot":
    case "vip-set":
    case "bad-set":
      return null;
    default:
      return reason satisfies never;
  }
}

function whatWords(kind: Verdict["kind"]): string {
  if (kind === "allow") return "allowed";
  return kind === "block"
    ? "blocked with 403"
    : "let through, because the domain is in monitor mode; in enforce mode it is blocked with 403";
}

/** A verdict as a record tells it: neither whose the set or the policy was, nor what range held the address. */
export type RecordedVerdict = Pick<Verdict, "kind" | "reason" | "bot"> & {
  readonly clientIp: string;
};

export function tellVerdict({ kind, reason, bot, clientIp }: RecordedVerdict): string {
  return `${whatWords(kind)}: ${recordedWhy(reason, bot ?? "a bot", clientIp)}`;
}

function recordedWhy(reason: Verdict["reason"], bot: string, clientIp: string): string {
  const said = policySaid({ kind: "allow", reason, bot }, undefined, null);
  const policy = said?.kind === "general" ? ({ ...said, kind: "either" } as const) : said;
  switch (reason) {
    case "not-a-bot":
      return nobodyWords;
    case "vip-set":
    case "bad-set": {
      const set = reason === "vip-set" ? "vip" : "bad";
      const who = `${clientIp} is ${bot}'s in a ${kindWords[set]} set of the domain`;
      return set === "bad" ? who : `${who}; ${vipWords}`;
    }
    case "allow-pair":
    case "deny-pair":
      return `its address or its user agent is ${bot}'s; ${said === null ? "" : policyWords(said, bot, likeIt)}`;
    case "unreviewed-allowed":
    case "unreviewed-blocked":
    case "unreviewed-blocked-by-default":
      return `${claimWords(bot)}; ${policy === null ? "" : policyWords(policy, bot, likeIt)}`;
    case "fake-allowed":
    case "fake-blocked":
    case "fake-blocked-by-default":
      return `${fakeWords(bot)}; ${policy === null ? "" : policyWords(policy, bot, likeIt)}`;
    default:
      return reason satisfies never;
  }
}

/** Where it is not known of whom a policy spoke. */
const likeIt = "unknown bots like it";
const nobodyWords = "the address is in no set and the user agent is no bot's";
const vipWords = "VIP bots are allowed unless a pair denies them";

function claimWords(bot: string): string {
  return `the address is in no set and the user agent claims to be ${bot}`;
}

function fakeWords(bot: string): string {
  return `the user agent claims to be ${bot}, and the address is none of those that the VIP sets hold for it: a fake`;
}

const kindWords = { vip: "VIP", bad: "bad" } as const;
const listWords = { vip: "VIP bots", bad: "bad bots" } as const;

function whyWords(story: Story): string {
  const { verdict, clientIp, policy, range, isAllowedElsewhere } = story;
  const { bot, set } = verdict;
  if (bot === null) return nobodyWords;
  const who =
    set === undefined
      ? verdict.reason.startsWith("fake-")
        ? fakeWords(bot)
        : claimWords(bot)
      : `${range ?? clientIp} is ${bot}'s in the ${kindWords[set.kind]} set of ${set.host}, version ${set.version}`;
  if (policy === null) return set?.kind === "bad" ? who : `${who}; ${vipWords}`;
  const elsewhere = isAllowedElsewhere
    ? `; that ${bot} is allowed does not help: its addresses are in the sets, and this address is not`
    : "";
  return `${who}; ${policyWords(policy, bot, unknownWords(story))}${elsewhere}`;
}

function unknownWords({ botClass, saidOfOthers, isPast }: Story): string {
  if (isPast) return likeIt;
  return saidOfOthers !== undefined && botClass !== undefined
    ? `unknown ${botClassWords[botClass].many}`
    : "unknown bots";
}

/** `unknown` says whom a policy means that names no bot. */
function policyWords(policy: PolicySaid, bot: string, unknown: string): string {
  const can = policy.says === "allow" ? "can access" : "can not access";
  switch (policy.kind) {
    case "pair":
      return policy.bot === undefined
        ? `the pair of ${policy.domain ?? "the domain"} and ${bot} says that it ${can}`
        : `the pair of ${policy.domain ?? "the domain"} and ${policy.bot}, another name of this bot, says that it ${can}`;
    case "domain":
      return `the policy of ${policy.domain} says that ${unknown} ${can}`;
    case "either":
      return `the policy of the domain, or the general one, says that ${unknown} ${can}`;
    case "general":
      return `the general policy says that ${unknown} ${can}`;
    case "default":
      return "neither a policy of the domain nor a general one says anything, so unknown bots are blocked";
    default:
      return policy satisfies never;
  }
}

function changeWords(story: Story): readonly string[] {
  const { verdict, clientIp, host, devlove } = story;
  const { bot, set, kind } = verdict;
  if (bot === null) return [`marking ${clientIp} as a bad bot of ${host}`];
  const changes = set === undefined ? claimChanges(story, bot) : setChanges(story, bot, set);
  if (kind === "allow") return changes;
  return kind === "block"
    ? [...changes, `bots.mode: monitor in ${devlove}: it lets through and counts`]
    : [...changes, `bots.mode: enforce in ${devlove}: it blocks`];
}

function setChanges(
  { verdict, clientIp, host, policy, range }: Story,
  bot: string,
  set: SetRef,
): readonly string[] {
  const element = range ?? clientIp;
  const removal = `removing ${element} of ${bot} from the ${listWords[set.kind]} of ${set.host}`;
  if (policy?.kind === "pair") return [withoutPair(policy, bot, host), removal];
  return verdict.kind === "allow"
    ? [removal, `a deny_access pair of ${host} and ${bot}`]
    : [
        removal,
        `an allow_access pair of ${host} and ${bot}`,
        `marking ${clientIp} as a VIP bot of ${host}, because VIP sets come first`,
      ];
}

function claimChanges(
  { verdict, clientIp, host, policy, isAllowedElsewhere, botClass, saidOfOthers }: Story,
  bot: string,
): readonly string[] {
  if (policy?.kind === "pair")
    return [
      withoutPair(policy, bot, host),
      policy.says === "allow"
        ? `marking ${clientIp} as a bad bot of ${host}`
        : `marking ${clientIp} as a VIP bot of ${host} under another name`,
    ];
  const can = verdict.kind === "allow" ? "false" : "true";
  const isOfClass = saidOfOthers !== undefined && botClass !== undefined;
  const key = isOfClass ? botClassWords[botClass].key : "unknown_bots_can_access";
  const beside = isOfClass ? ` beside unknown_bots_can_access: ${saidOfOthers}` : "";
  const unknown = `${key}: ${can}${beside} for ${host} in per_domain_policy`;
  if (verdict.kind === "allow") return [unknown, `a deny_access pair of ${host} and ${bot}`];
  return [
    unknown,
    isAllowedElsewhere
      ? `marking ${clientIp} as ${bot}'s in the VIP bots of ${host}`
      : `an allow_access pair of ${host} and ${bot}, as long as no set holds addresses of ${bot}`,
    ...(isAllowedElsewhere ? [] : [`marking ${clientIp} as a VIP bot of ${host}`]),
  ];
}

function withoutPair(
  { says, domain, bot: paired }: PolicySaid & { kind: "pair" },
  bot: string,
  host: string,
): string {
  return `taking the pair of ${domain ?? host} and ${paired ?? bot} out of ${says}_access`;
}
