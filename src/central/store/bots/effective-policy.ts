// From what a customer stored to what holds for each host: pure.
//
// Domain policy before general policy: each is one whole, so a domain's policy that says nothing of a class takes no word of the general one on it. What is stored for a main domain holds for its sub-domains too; what is stored for a sub-domain
// holds for it alone and wins over the main domain's where both name a bot.

import type { ClassAccess } from "../../../core/serving/verdict.ts";
import type { JournalBody } from "../../../wire/journal.ts";

export type StoredPolicy = {
  /** The general policy as stored: 1, 0, or null if nothing was said. */
  readonly general: number | null;
  readonly perDomain: ReadonlyMap<string, number>;
  /** What the same policies say of classes of bots; absent: nothing. */
  readonly classes?: {
    readonly general: ClassAccess;
    readonly perDomain: ReadonlyMap<string, ClassAccess>;
  };
  readonly pairs: readonly {
    readonly list: "allow" | "deny";
    readonly domain: string;
    readonly bot: string;
  }[];
};

type EffectivePolicy = JournalBody<"policy.changed">["domains"][number];
type EffectiveClasses = JournalBody<"policy.classes">["domains"][number];

type DomainWithSubs = {
  readonly name: string;
  readonly sub_domains: readonly { readonly name: string }[];
};

/** One for each main domain, and one for each sub-domain for which something of its own is stored. */
export function effectivePolicies(
  domains: readonly DomainWithSubs[],
  stored: StoredPolicy,
): EffectivePolicy[] {
  return hostsOf(domains, stored).map(effective);
}

/** One for each host of `effectivePolicies` whose policy says something of a class, be it what it says of other bots too. */
export function effectiveClasses(
  domains: readonly DomainWithSubs[],
  stored: StoredPolicy,
): EffectiveClasses[] {
  const { classes } = stored;
  if (classes === undefined) return [];
  return hostsOf(domains, stored).flatMap(({ domain, access: { said, policyOf } }) => {
    const own = policyOf === undefined ? classes.general : (classes.perDomain.get(policyOf) ?? {});
    return said === null || Object.keys(own).length === 0 ? [] : [{ domain, ...own }];
  });
}

/** A host with an entry of its own: the policy in force there, and the bots that are named for it. */
type Host = { readonly domain: string; readonly access: Access; readonly bots: Bots };

function hostsOf(domains: readonly DomainWithSubs[], stored: StoredPolicy): readonly Host[] {
  const pairsOf = Map.groupBy(stored.pairs, ({ domain }) => domain);
  const botsOf = (domain: string): Bots => {
    const { allow = [], deny = [] } = Object.groupBy(
      pairsOf.get(domain) ?? [],
      (pair) => pair.list,
    );
    return {
      allow: new Set(allow.map(({ bot }) => bot)),
      deny: new Set(deny.map(({ bot }) => bot)),
    };
  };
  const accessOf = (domain: string): Access | undefined => {
    const said = stored.perDomain.get(domain);
    return said === undefined ? undefined : { said, policyOf: domain };
  };
  const hosts: Host[] = [];
  for (const { name, sub_domains } of domains) {
    const access = accessOf(name) ?? { said: stored.general };
    const main = botsOf(name);
    hosts.push({ domain: name, access, bots: main });
    for (const { name: sub } of sub_domains) {
      const own = botsOf(sub);
      const ownAccess = accessOf(sub);
      if (ownAccess === undefined && !pairsOf.has(sub)) continue;
      const bots = {
        allow: main.allow.difference(own.deny).union(own.allow),
        deny: main.deny.difference(own.allow).union(own.deny),
      };
      hosts.push({ domain: sub, access: ownAccess ?? access, bots });
    }
  }
  return hosts;
}

type Bots = { readonly allow: ReadonlySet<string>; readonly deny: ReadonlySet<string> };

/** An access; without a domain it is the general one. */
type Access = { readonly said: number | null; readonly policyOf?: string };

function effective({
  domain,
  access: { said, policyOf },
  bots: { allow, deny },
}: Host): EffectivePolicy {
  return {
    domain,
    unknown_bots_can_access: said === null ? null : said === 1,
    ...(policyOf !== undefined && { unknown_bots_policy_of: policyOf }),
    allow: [...allow].sort(),
    deny: [...deny].sort(),
  };
}
