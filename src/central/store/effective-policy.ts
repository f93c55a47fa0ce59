// From what a customer stored to what holds for each host: pure.
//
// Domain policy before general policy. What is stored for a main domain holds for its sub-domains too; what is stored for a sub-domain
// holds for it alone and wins over the main domain's where both name a bot.

import type { JournalBody } from "../../wire/journal.ts";

export type StoredPolicy = {
  /** As stored: 1, 0, or null where nothing was said. */
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
  const botsOf = (list: "allow" | "deny", domain: string): readonly string[] =>
    stored.pairs.filter((pair) => pair.list === list && pair.domain === domain).map((p) => p.bot);
  const policies: EffectivePolicy[] = [];
  for (const { name, sub_domains } of domains) {
    const access = stored.perDomain.get(name) ?? stored.general;
    const main = { allow: botsOf("allow", name), deny: botsOf("deny", name) };
    policies.push(effective(name, access, main.allow, main.deny));
    for (const { name: sub } of sub_domains) {
      const own = { allow: botsOf("allow", sub), deny: botsOf("deny", sub) };
      const ownAccess = stored.perDomain.get(sub);
      if (ownAccess === undefined && own.allow.length + own.deny.length === 0) continue;
      const inherited = (bots: readonly string[], contrary: readonly string[]): string[] =>
        bots.filter((bot) => !contrary.includes(bot));
      policies.push(
        effective(
          sub,
          ownAccess ?? access,
          [...inherited(main.allow, own.deny), ...own.allow],
          [...inherited(main.deny, own.allow), ...own.deny],
        ),
      );
    }
  }
  return policies;
}

function effective(
  domain: string,
  access: number | null,
  allow: readonly string[],
  deny: readonly string[],
): EffectivePolicy {
  return {
    domain,
    unknown_bots_can_access: access === null ? null : access === 1,
    allow: [...new Set(allow)].sort(),
    deny: [...new Set(deny)].sort(),
  };
}
