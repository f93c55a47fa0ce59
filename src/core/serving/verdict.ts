// Decides what happens to a request, and why: decision 14 of the API, as one pure function.
//
//   1  address in a set of the domain     the bot is that entry's name: VIP sets before bad ones, of a kind the host's own set before its main
//                                          domain's, in a set the most specific range
//        allow or deny pair (domain, bot)   decides
//        else                               VIP allows, bad blocks
//   2  address in no set, agent of a bot   the claimed name's pair decides, else that of another name of the same bot; an allow pair never helps a claim
//                                          to a name for which addresses are held
//        else domain policy, else general policy, else blocked, where a policy may say another thing of the bot's class; a claim to a name for which the VIP sets hold addresses is told as a fake
//   3  not a bot                           allowed

/**
 * What kind of bot an agent claims to be. `feed`: it reads feeds or podcasts for people who subscribed. `library`: a
 * program's HTTP library or a tool of the command line, whoever uses it. `crawler`: every other bot.
 */
export const botClasses = ["crawler", "feed", "library"] as const;
export type BotClass = (typeof botClasses)[number];
/** Whether unknown bots of a class can access; a class that is absent follows `unknownBotsCanAccess`. */
export type ClassAccess = { readonly [Class in BotClass]?: boolean };

/** How the bots of one domain are treated; allow and deny hold bot names, disjoint. */
export type BotRules = {
  readonly mode: "enforce" | "monitor";
  readonly allow: ReadonlySet<string>;
  readonly deny: ReadonlySet<string>;
  /** The domain policy before the general policy; null if neither says anything. */
  readonly unknownBotsCanAccess: boolean | null;
  /** What the same policy says of classes; absent: nothing. */
  readonly classes?: ClassAccess;
};

export const verdictReasons = [
  "not-a-bot",
  "vip-set",
  "bad-set",
  "allow-pair",
  "deny-pair",
  "unreviewed-allowed",
  "unreviewed-blocked",
  "unreviewed-blocked-by-default",
  "fake-allowed",
  "fake-blocked",
  "fake-blocked-by-default",
] as const;
export type VerdictReason = (typeof verdictReasons)[number];

export const verdictKinds = ["allow", "block", "would-block"] as const;

export type Verdict = {
  readonly kind: (typeof verdictKinds)[number];
  readonly reason: VerdictReason;
  readonly bot: string | null;
  /** The set that holds the address, if one does. */
  readonly set?: SetRef | undefined;
};

/** A set at a version, and whose it is. */
export type SetRef = {
  readonly kind: "vip" | "bad";
  readonly host: string;
  readonly version: number;
};

/** The owner of an address. */
export type Holder = {
  readonly kind: "vip" | "bad";
  readonly bot: string;
  /** The policy for this domain and this bot. */
  readonly pair: "allow" | "deny" | undefined;
  readonly set?: SetRef | undefined;
};

export type Evidence = {
  /** The owner that counts if several sets hold the address. */
  readonly holder: Holder | undefined;
  /** The name that the user agent claims; undefined for a browser. */
  readonly claimed: string | undefined;
  /** The class of the claimed bot. */
  readonly botClass?: BotClass | undefined;
  /** Other names of the claimed bot: those it had when pairs and lists were written. */
  readonly aliases?: readonly string[] | undefined;
  /**
   * Whether any set of the domain holds addresses for the claimed name or for another name of the bot. It
   * counts if a pair allows the bot.
   */
  readonly claimHasAddresses: boolean;
  /** Whether a VIP set holds addresses of the claimed bot, from none of which the visitor comes. */
  readonly isFake?: boolean;
};

const notABot: Verdict = Object.freeze({ kind: "allow", reason: "not-a-bot", bot: null });

export function decide(rules: BotRules, evidence: Evidence): Verdict {
  const { holder, claimed } = evidence;
  if (holder !== undefined) return decideHolder(rules.mode, holder);
  if (claimed === undefined) return notABot;
  return decideClaim(rules, claimed, evidence);
}

/**
 * Returns the name in the pair that decides about a claim: the claimed name before the aliases, in their
 * order. An allow pair that does not help counts as none.
 */
export function pairedName(
  { allow, deny }: Pick<BotRules, "allow" | "deny">,
  { claimed, aliases, claimHasAddresses }: Omit<Evidence, "holder">,
): string | undefined {
  const isPaired = (name: string): boolean =>
    deny.has(name) || (!claimHasAddresses && allow.has(name));
  return claimed === undefined || isPaired(claimed) ? claimed : aliases?.find(isPaired);
}

function decideHolder(mode: BotRules["mode"], { kind, bot, pair, set }: Holder): Verdict {
  if (pair === "allow") return { kind: "allow", reason: "allow-pair", bot, set };
  if (pair === "deny") return blocked(mode, "deny-pair", bot, set);
  return kind === "vip"
    ? { kind: "allow", reason: "vip-set", bot, set }
    : blocked(mode, "bad-set", bot, set);
}

function decideClaim(rules: BotRules, bot: string, evidence: Evidence): Verdict {
  const { mode, deny } = rules;
  const paired = pairedName(rules, evidence);
  if (paired !== undefined && deny.has(paired)) return blocked(mode, "deny-pair", bot);
  if (paired !== undefined) return { kind: "allow", reason: "allow-pair", bot };
  const what = evidence.isFake === true ? "fake" : "unreviewed";
  const canAccess = unknownCanAccess(rules, evidence.botClass);
  if (canAccess === true) return { kind: "allow", reason: `${what}-allowed`, bot };
  const isSaid = canAccess === false;
  return blocked(mode, isSaid ? `${what}-blocked` : `${what}-blocked-by-default`, bot);
}

/** Returns what the policy says of unknown bots of a class; null if it says nothing. */
export function unknownCanAccess(
  { unknownBotsCanAccess, classes }: Pick<BotRules, "unknownBotsCanAccess" | "classes">,
  botClass: BotClass | undefined,
): boolean | null {
  return (botClass === undefined ? undefined : classes?.[botClass]) ?? unknownBotsCanAccess;
}

function blocked(
  mode: BotRules["mode"],
  reason: VerdictReason,
  bot: string,
  set?: SetRef,
): Verdict {
  return { kind: mode === "monitor" ? "would-block" : "block", reason, bot, set };
}
