// What happens to a request, and why: decision 14 of the API, as one pure function.
//
//   1  address in a set of the domain     the bot is that entry's name, VIP before bad
//        allow or deny pair (domain, bot)   decides
//        else                               VIP allows, bad blocks
//   2  address in no set, agent of a bot   the claimed name's pair decides; an allow pair never helps a claim to a name for which addresses are held
//        else domain policy, else general policy, else blocked
//   3  not a bot                           allowed

/** How the bots of one domain are treated; allow and deny hold bot names, disjoint. */
export type BotRules = {
  readonly mode: "enforce" | "monitor";
  readonly allow: ReadonlySet<string>;
  readonly deny: ReadonlySet<string>;
  /** Domain policy before general policy; null where neither says. */
  readonly unknownBotsCanAccess: boolean | null;
};

export type VerdictReason =
  | "not-a-bot"
  | "vip-set"
  | "bad-set"
  | "allow-pair"
  | "deny-pair"
  | "unreviewed-allowed"
  | "unreviewed-blocked"
  | "unreviewed-blocked-by-default";

export type Verdict = {
  readonly kind: "allow" | "block" | "would-block";
  readonly reason: VerdictReason;
  readonly bot: string | null;
};

export type Evidence = {
  /** Bot that holds the address in the VIP set, in the bad set of the domain. */
  readonly vip: string | undefined;
  readonly bad: string | undefined;
  /** Name that the user agent claims; undefined for a browser's. */
  readonly claimed: string | undefined;
  /** Whether any set of the domain holds addresses for the claimed name. */
  readonly claimHasAddresses: boolean;
};

export function decide(rules: BotRules, evidence: Evidence): Verdict {
  const { allowed, reason, bot } = judge(rules, evidence);
  if (allowed) return { kind: "allow", reason, bot };
  return { kind: rules.mode === "monitor" ? "would-block" : "block", reason, bot };
}

type Judgement = {
  readonly allowed: boolean;
  readonly reason: VerdictReason;
  readonly bot: string | null;
};

function judge(rules: BotRules, { vip, bad, claimed, claimHasAddresses }: Evidence): Judgement {
  const held = vip ?? bad;
  if (held !== undefined) {
    if (rules.allow.has(held)) return { allowed: true, reason: "allow-pair", bot: held };
    if (rules.deny.has(held)) return { allowed: false, reason: "deny-pair", bot: held };
    return vip === undefined
      ? { allowed: false, reason: "bad-set", bot: held }
      : { allowed: true, reason: "vip-set", bot: held };
  }
  if (claimed === undefined) return { allowed: true, reason: "not-a-bot", bot: null };
  if (rules.deny.has(claimed)) return { allowed: false, reason: "deny-pair", bot: claimed };
  if (rules.allow.has(claimed) && !claimHasAddresses)
    return { allowed: true, reason: "allow-pair", bot: claimed };
  if (rules.unknownBotsCanAccess === true)
    return { allowed: true, reason: "unreviewed-allowed", bot: claimed };
  const reason =
    rules.unknownBotsCanAccess === false ? "unreviewed-blocked" : "unreviewed-blocked-by-default";
  return { allowed: false, reason, bot: claimed };
}
