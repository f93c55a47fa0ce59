// What `accel-agent why` and `bots` say of a visitor: what would happen to an address now and why, and what
// was decided about it before.

import type { EffectivePolicy } from "../core/serving/compose-state.ts";
import { AccelError } from "../core/faults.ts";
import { formatIp, parseIp } from "../core/addresses/ip.ts";
import { isExempt } from "../core/limits/limit-verdict.ts";
import { tellLimit } from "../core/limits/limit-words.ts";
import { compileLimits } from "../core/limits/site-limits.ts";
import { devloveWords } from "../core/serving/effective-devlove.ts";
import type { ServedDomain, ServedHost, ServingState } from "../core/serving/serving-state.ts";
import type { SetRef, Verdict } from "../core/serving/verdict.ts";
import { policySaid, tellStory } from "../core/serving/verdict-words.ts";
import type { RatesSeen } from "./accelerator/limits/rates-seen.ts";
import type { DecisionLog } from "./bots/decisions/decision-log.ts";
import type { KeptDecision } from "./bots/decisions/decision-ring.ts";
import type { ElementFinder } from "./bots/sets/element-finder.ts";
import { judgeVisitor } from "./bots/decisions/evidence.ts";
import type { ClaimedBot, ClaimedBotLookup } from "./bots/unreviewed/user-agents.ts";

/** The most decisions that are shown of an address; the newest are. */
const decisionsShown = 10;

export type VisitorParts = {
  readonly state: ServingState;
  readonly claimedBot: ClaimedBotLookup;
  readonly elements: ElementFinder;
  readonly decisions: Pick<DecisionLog, "find" | "about" | "facts">;
  readonly rates: Pick<RatesSeen, "left">;
  /** The policies as committed, by host. */
  readonly policies: ReadonlyMap<string, EffectivePolicy>;
  readonly policiesChangedAt: Date | undefined;
};

/** An address that was checked; `host` is undefined for every host. */
export type Visitor = {
  readonly ip: string;
  readonly userAgent: string | undefined;
  readonly host: string | undefined;
};

/** Says what would happen now. */
export function checkVisitor(parts: VisitorParts, { ip, userAgent, host }: Visitor) {
  const address = canonical(ip);
  const places = placesOf(parts.state).filter((place) => host === undefined || place.host === host);
  return {
    address,
    user_agent: userAgent ?? null,
    claims: claimSaid(parts.claimedBot(userAgent)),
    hosts: places.map((place) => onHost(parts, place, address, userAgent)),
  };
}

/** Says what would happen now, and what was decided before. */
export function whyAddress(parts: VisitorParts, visitor: Visitor) {
  const checked = checkVisitor(parts, visitor);
  const { total, newest } = parts.decisions.about(checked.address, decisionsShown);
  return {
    ...checked,
    decisions: { total, newest: newest.map((decision) => shortDecision(decision)) },
  };
}

/** Explains a decision. Throws NOT_FOUND for one that is not known. */
export function whyDecision(parts: VisitorParts, id: string) {
  const decision = parts.decisions.find(id);
  if (decision === undefined) {
    const { kept, dropped } = parts.decisions.facts();
    throw new AccelError(
      "NOT_FOUND",
      `decision ${id} is not known: ${kept} are kept since this agent's start, the last 100,000 at most${dropped === 0 ? "" : `, and ${dropped} came too fast to be kept`}`,
    );
  }
  const { clientIp, userAgent, verdict, policyOf, host } = decision;
  const place = placesOf(parts.state).find((one) => one.host === host);
  const mainDomain = place?.domain ?? host;
  return {
    ...shortDecision(decision),
    address: clientIp,
    user_agent: userAgent ?? null,
    ...("rule" in verdict
      ? {
          set: null,
          policy: null,
          ...tellLimit({ verdict, clientIp, host, devlove: ruleIn(place, verdict.rule) }),
        }
      : tellOf(parts, {
          verdict,
          clientIp,
          userAgent,
          host,
          policyOf,
          mainDomain,
          place,
          isPast: true,
        })),
    /** What would happen now to the same visitor on the same host. */
    now: place === undefined ? null : onHost(parts, place, clientIp, userAgent),
  };
}

/** Lists the sets and policies in force. */
export function listBots({ state, elements, policiesChangedAt }: VisitorParts) {
  const inForce = new Map(
    placesOf(state).flatMap(({ bots }) =>
      [
        ...bots.vip.map((set) => ["vip", set] as const),
        ...bots.bad.map((set) => ["bad", set] as const),
      ].map(([kind, { host, version }]) => [`${kind}/${host}`, version] as const),
    ),
  );
  return {
    sets: elements.sets().map(({ changedAt, ...set }) => ({
      ...set,
      changed_at: iso(changedAt),
      /** An empty set is in force without a table. */
      in_force: inForce.get(`${set.kind}/${set.host}`) ?? (set.count === 0 ? set.version : null),
    })),
    hosts: placesOf(state).map(({ host, domain, bots }) => ({
      host,
      domain,
      mode: bots.mode,
      unknown_bots: unknownWord(bots.unknownBotsCanAccess),
      /** What the same policy says of classes; a class that is absent is treated as other unknown bots. */
      classes: Object.fromEntries(
        Object.entries(bots.classes ?? {}).map(([name, allowed]) => [name, unknownWord(allowed)]),
      ),
      said_by: bots.unknownBotsCanAccess === null ? null : policyName(bots.unknownBotsPolicyOf),
      allowed_pairs: bots.allow.size,
      denied_pairs: bots.deny.size,
    })),
    policies_changed_at: iso(policiesChangedAt),
  };
}

function claimSaid(claimed: ClaimedBot | undefined) {
  if (claimed === undefined) return null;
  const { botClass, ...claim } = claimed;
  return { ...claim, class: botClass };
}

type Place = {
  readonly domain: string;
  readonly host: string;
  readonly bots: ServedHost["bots"];
  readonly site: ServedHost["site"];
};

function placesOf({ domains }: ServingState): readonly Place[] {
  return domains.flatMap(({ name, hosts }: ServedDomain) =>
    hosts.map(({ name: host, bots, site }) => ({ domain: name, host, bots, site })),
  );
}

function onHost(
  parts: VisitorParts,
  place: Place,
  clientIp: string,
  userAgent: string | undefined,
) {
  const { domain, host, bots, site } = place;
  const claimed = parts.claimedBot(userAgent);
  const verdict = judgeVisitor(bots, clientIp, claimed);
  const { kind, reason, bot } = verdict;
  const policyOf = bots.unknownBotsPolicyOf;
  return {
    host,
    mode: bots.mode,
    verdict: kind,
    reason,
    bot,
    limits: site === null ? [] : limitsTold(parts, site, verdict, clientIp),
    ...tellOf(parts, {
      verdict,
      clientIp,
      userAgent,
      host,
      policyOf,
      mainDomain: domain,
      place,
      isPast: false,
    }),
  };
}

/** Says what the rules of `limits.requests` leave the visitor now; VIP bots are not counted. */
function limitsTold(
  { rates }: VisitorParts,
  site: NonNullable<ServedHost["site"]>,
  verdict: Verdict,
  clientIp: string,
) {
  if (isExempt(verdict)) return [];
  return compileLimits(site).all.map((limit) => ({
    rule: limit.text,
    mode: limit.isEnforced ? "enforce" : "monitor",
    /** How many requests would be let in at once; null where the address is none. */
    left: rates.left(limit, clientIp) ?? null,
  }));
}

/** Says where a rule of `limits.requests` stands now; undefined where the host has none of these words any more. */
function ruleIn(place: Place | undefined, rule: string): string | undefined {
  const site = place?.site ?? null;
  if (site === null || !compileLimits(site).all.some(({ text }) => text === rule)) return undefined;
  return devloveWords(site);
}

type Told = {
  readonly verdict: Verdict;
  readonly clientIp: string;
  readonly userAgent: string | undefined;
  readonly host: string;
  readonly mainDomain: string;
  readonly policyOf: string | undefined;
  /** The host as it is now; undefined if it is not served any more. */
  readonly place: Place | undefined;
  /** Whether it was decided before. */
  readonly isPast: boolean;
};

function tellOf(
  parts: VisitorParts,
  { verdict, clientIp, userAgent, host, mainDomain, policyOf, place, isPast }: Told,
) {
  const { bots, site } = place ?? {};
  const { bot, set, reason } = verdict;
  const element =
    set === undefined || bot === null ? undefined : parts.elements.element(set, bot, clientIp);
  // A name from a set stands in a pair unchanged; a claimed name may stand there in its former form.
  const claimed = set === undefined ? parts.claimedBot(userAgent) : undefined;
  const aliases = claimed?.aliases ?? [];
  const names = bot === null ? [] : [bot, ...aliases];
  const pair = pairOf(parts.policies, [mainDomain, host], reason, names);
  const policy = policySaid(verdict, policyOf, pair?.domain ?? null, pair?.bot);
  const isAllowedElsewhere =
    !isPast &&
    set === undefined &&
    /^(?:unreviewed|fake)-/.test(reason) &&
    names.some((name) => bots?.allow.has(name) === true);
  const botClass = claimed?.botClass;
  const isClassSaid = botClass !== undefined && bots?.classes?.[botClass] !== undefined;
  return {
    set: set === undefined ? null : setFacts(parts, set, element),
    policy: policy === null ? null : { ...policy, changed_at: iso(parts.policiesChangedAt) },
    ...tellStory({
      verdict,
      clientIp,
      host,
      devlove: devloveWords(site ?? { host, main_domain: mainDomain, said_of: mainDomain }),
      policy,
      range: element?.range,
      isAllowedElsewhere,
      botClass,
      saidOfOthers: isClassSaid ? bots?.unknownBotsCanAccess === true : undefined,
      isPast,
    }),
  };
}

function setFacts(
  { elements }: VisitorParts,
  set: SetRef,
  element: ReturnType<ElementFinder["element"]>,
) {
  const now = elements.set(set);
  return {
    host: set.host,
    kind: set.kind,
    version: set.version,
    /** The element; null if no element of the bot holds the address any more. */
    range: element?.range ?? null,
    since: iso(element?.since),
    version_now: now?.version ?? null,
    changed_at: iso(now?.changedAt),
  };
}

/**
 * Returns the domain whose pair it is, and what that domain calls the bot. A pair that a sub-domain inherits
 * from its main domain is in the lists of both.
 */
function pairOf(
  policies: VisitorParts["policies"],
  domains: readonly string[],
  reason: Verdict["reason"],
  names: readonly string[],
): { readonly domain: string; readonly bot: string } | undefined {
  if (reason !== "allow-pair" && reason !== "deny-pair") return undefined;
  const list = reason === "allow-pair" ? "allow" : "deny";
  for (const bot of names) {
    const domain = domains.find((one) => policies.get(one)?.[list].includes(bot) === true);
    if (domain !== undefined) return { domain, bot };
  }
  return undefined;
}

function shortDecision({ id, atMs, host, userAgent, verdict }: KeptDecision) {
  const { kind, reason, bot } = verdict;
  return {
    decision: id,
    at: new Date(atMs).toISOString(),
    host,
    verdict: kind,
    reason,
    bot,
    user_agent: userAgent ?? null,
  };
}

function policyName(domain: string | undefined): string {
  return domain === undefined ? "the general policy" : `the policy of ${domain}`;
}

function unknownWord(allowed: boolean | null): "allowed" | "blocked" | "blocked by default" {
  if (allowed === null) return "blocked by default";
  return allowed ? "allowed" : "blocked";
}

function iso(at: Date | undefined): string | null {
  return at?.toISOString() ?? null;
}

function canonical(ip: string): string {
  const address = parseIp(ip);
  return address === undefined ? ip : formatIp(address);
}
