// The bot access policy of a customer: what it stored. What follows for each host: effective-policy.ts.

import type { ClassAccess } from "../../../core/serving/verdict.ts";
import { classAccessKeys, ofClasses } from "../../../wire/customer/bot-classes.ts";
import type { Policy } from "../../../wire/customer/policy.ts";
import { announcePolicy } from "../journal/links.ts";
import { policyBytes, storedPolicy } from "../journal/site-state.ts";
import type { BotClassColumns } from "../engine/bot-class-schema.ts";
import { pacedParts } from "../engine/parts.ts";
import type { Work } from "../engine/work.ts";

export type BotPair = { readonly domain: string; readonly bot: string };
/** One policy, a whole: null is "not set", and then it says nothing of classes. */
export type StatedAccess = { readonly access: boolean | null; readonly classes: ClassAccess };
/** A change: undefined leaves a value as it is. */
export type PolicyChange = {
  readonly allow: readonly BotPair[] | undefined;
  readonly deny: readonly BotPair[] | undefined;
  readonly general: StatedAccess | undefined;
  readonly perDomain: readonly (StatedAccess & { readonly domain: string })[] | undefined;
};

export type PolicyChanged =
  | { readonly outcome: "changed" }
  /** The policies that follow for all hosts are more than an agent can be told. */
  | { readonly outcome: "too-large"; readonly bytes: number; readonly bytesMax: number };

/**
 * The most bytes of the effective policies of all hosts of a customer as JSON: half of what a message of the
 * channel may have.
 */
const effectiveBytesMax = 4 * 2 ** 20;

export async function readPolicy({ tx }: Work, customerId: number): Promise<Policy> {
  const { general, perDomain, classes, pairs } = await storedPolicy(tx, customerId);
  const pairsOf = (list: "allow" | "deny"): BotPair[] =>
    pairs.filter((pair) => pair.list === list).map(({ domain, bot }) => ({ domain, bot }));
  return {
    allow_access: pairsOf("allow"),
    deny_access: pairsOf("deny"),
    // Where nothing was said, unreviewed bots are blocked.
    general_policy: {
      unknown_bots_can_access: general === 1,
      ...classAccessKeys(classes?.general ?? {}),
    },
    per_domain_policy: [...perDomain].map(([domain, access]) => ({
      domain,
      policy: {
        unknown_bots_can_access: access === 1,
        ...classAccessKeys(classes?.perDomain.get(domain) ?? {}),
      },
    })),
  };
}

/** Domains are hosts of the customer; `allow` and `deny` share no pair. */
export async function changePolicy(
  work: Work,
  customerId: number,
  { allow, deny, general, perDomain }: PolicyChange,
): Promise<PolicyChanged> {
  if (allow !== undefined) await replacePairs(work, customerId, "allow", allow);
  if (deny !== undefined) await replacePairs(work, customerId, "deny", deny);
  if (general !== undefined) {
    const { access, classes } = general;
    const value = {
      unknown_bots_can_access: access === null ? null : Number(access),
      ...classColumns(classes),
    };
    await work.tx
      .insertInto("general_policies")
      .values({ customer_id: customerId, ...value })
      .onConflict((conflict) => conflict.column("customer_id").doUpdateSet(value))
      .execute();
  }
  if (perDomain !== undefined) await replaceDomainPolicies(work, customerId, perDomain);
  const bytes = await policyBytes(work.tx, customerId);
  if (bytes > effectiveBytesMax)
    return { outcome: "too-large", bytes, bytesMax: effectiveBytesMax };
  await announcePolicy(work, await sitesOfCustomer(work, customerId));
  return { outcome: "changed" };
}

async function replacePairs(
  { tx }: Work,
  customerId: number,
  list: "allow" | "deny",
  pairs: readonly BotPair[],
): Promise<void> {
  await tx
    .deleteFrom("policy_pairs")
    .where((pair) => pair.and({ customer_id: customerId, list }))
    .execute();
  for await (const part of pacedParts(pairs)) {
    await tx
      .insertInto("policy_pairs")
      .values(part.map(({ domain, bot }) => ({ customer_id: customerId, list, domain, bot })))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  // A pair that is sent for one list leaves the other.
  await tx
    .deleteFrom("policy_pairs")
    .where("customer_id", "=", customerId)
    .where("list", "!=", list)
    .where((where) =>
      where.exists(
        where
          .selectFrom("policy_pairs as sent")
          .select("sent.list")
          .where((sent) => sent.and({ "sent.customer_id": customerId, "sent.list": list }))
          .whereRef("sent.domain", "=", "policy_pairs.domain")
          .whereRef("sent.bot", "=", "policy_pairs.bot"),
      ),
    )
    .execute();
}

async function replaceDomainPolicies(
  { tx }: Work,
  customerId: number,
  perDomain: NonNullable<PolicyChange["perDomain"]>,
): Promise<void> {
  await tx.deleteFrom("domain_policies").where("customer_id", "=", customerId).execute();
  const rows = perDomain.flatMap(({ domain, access, classes }) => {
    const own = { customer_id: customerId, domain, unknown_bots_can_access: Number(access) };
    return access === null ? [] : [{ ...own, ...classColumns(classes) }];
  });
  for await (const part of pacedParts(rows))
    await tx.insertInto("domain_policies").values(part).execute();
}

/** The columns of all classes, so that what was said before is gone. */
function classColumns(classes: ClassAccess): BotClassColumns {
  return ofClasses((botClass) => {
    const said = classes[botClass];
    return said === undefined ? null : Number(said);
  });
}

async function sitesOfCustomer({ tx }: Work, customerId: number): Promise<readonly number[]> {
  const rows = await tx
    .selectFrom("domain_links")
    .innerJoin("domains", "domains.id", "domain_links.domain_id")
    .select("deployment_site_id")
    .distinct()
    .where("domains.customer_id", "=", customerId)
    .orderBy("deployment_site_id")
    .execute();
  return rows.map((row) => row.deployment_site_id);
}
