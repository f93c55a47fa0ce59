// From what a customer stored to what holds for each host: pure.
//
// Domain policy before general policy. What is stored for a main domain holds for its sub-domains too; what is stored for a sub-domain
// holds for it alone and wins over the main domain's where both name a bot.

import type { JournalBody } from "../../../wire/journal.ts";

export type StoredPolicy = {
  /** The general policy as stored: 1, 0, or null if nothing was said. */
  readonly general: number | null;
  readonly perDomain: ReadonlyMap<string, number>;
  readonly pairs: readonly {
    readonly list: "allow" | "deny";
    readonly domain: string;
    readonly bot: string;
  }[];
};

type EffectivePolicy = JournalBody<"policy.changed">["domains"][number];

type DomainWithSubs = {
  readonly name: string;
  readonly sub_domains: readonly { readonly name: string }[];
};

/** One for each main domain, and one for each sub-domain for which something of its own is stored. */
export function effectivePolicies(
  domains: readonly DomainWithSubs[],
  stored: StoredPolicy,
): EffectivePolicy[] {
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
  const policies: EffectivePolicy[] = [];
  for (const { name, sub_domains } of domains) {
    const domainAccess = stored.perDomain.get(name);
    const access: Access =
      domainAccess === undefined
        ? { said: stored.general }
        : { said: domainAccess, policyOf: name };
    const main = botsOf(name);
    policies.push(effective(name, access, main));
    for (const { name: sub } of sub_domains) {
      const own = botsOf(sub);
      const ownAccess = stored.perDomain.get(sub);
      if (ownAccess === undefined && !pairsOf.has(sub)) continue;
      const both = {
        allow: main.allow.difference(own.deny).union(own.allow),
        deny: main.deny.difference(own.allow).union(own.deny),
      };
      policies.push(
        effective(sub, ownAccess === undefined ? access : { said: ownAccess, policyOf: sub }, both),
      );
    }
  }
  return policies;
}

type Bots = { readonly allow: ReadonlySet<string>; readonly deny: ReadonlySet<string> };

/** An access; without a domain it is the general one. */
type Access = { readonly said: number | null; readonly policyOf?: string };

function effective(
  domain: string,
  { said, policyOf }: Access,
  { allow, deny }: Bots,
): EffectivePolicy {
  return {
    domain,
    unknown_bots_can_access: said === null ? null : said === 1,
    ...(policyOf !== undefined && { unknown_bots_policy_of: policyOf }),
    allow: [...allow].sort(),
    deny: [...deny].sort(),
  };
}
