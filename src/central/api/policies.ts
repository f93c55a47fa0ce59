// `/bot-access-policy/`: each key that is sent replaces what is stored under it; keys that are not sent stay.

import { presentNamesOf } from "../../core/former-bot-names.ts";
import { botClasses } from "../../core/serving/verdict.ts";
import { botClassKeys, classAccessOf, type BotClassKey } from "../../wire/customer/bot-classes.ts";
import { gives } from "../../wire/customer/operation.ts";
import {
  policyPartShape,
  policyShape,
  policyWrite,
  type Policy,
} from "../../wire/customer/policy.ts";
import { isTrue } from "../../wire/customer/shape.ts";
import { conflict, invalid, ok, type Answer, type ProblemAnswer } from "./http/answer.ts";
import { forUsers, type EndpointCall, type Endpoint } from "./http/endpoint.ts";
import { hostNamed, isProblem } from "./http/path-values.ts";
import type { BotPair, PolicyChange, StatedAccess } from "../store/bots/policies.ts";
import type { Actor } from "../store/people/tokens.ts";
import { changePolicy, readPolicy } from "../store/bots/policies.ts";
import type { Work } from "../store/engine/work.ts";

type Said = NonNullable<Parameters<typeof isTrue>[0]> | null;
type Access = { unknown_bots_can_access: Said } & { [Key in BotClassKey]?: Said };
type Write = {
  allow_access?: readonly BotPair[];
  deny_access?: readonly BotPair[];
  general_policy?: Access;
  per_domain_policy?: readonly { domain: string; policy: Access }[];
};

const keys = ["allow_access", "deny_access", "general_policy", "per_domain_policy"] as const;

export function policyEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "POST",
      path: "/bot-access-policy/",
      id: "setBotAccessPolicy",
      needs: { role: "write", scope: "customer" },
      summary: "Set the rules for bots that are in no list",
      gives: gives(policyPartShape),
      refuses: [404],
      body: policyWrite,
      handle: setPolicy,
    }),
    forUsers({
      method: "GET",
      path: "/bot-access-policy/",
      id: "getBotAccessPolicy",
      needs: { role: "read", scope: "customer" },
      summary: "Read the bot access policy",
      gives: gives(policyShape),
      handle: async ({ actor, read }) =>
        ok(withAliases(await read(async (work) => readPolicy(work, actor.customerId)))),
    }),
  ];
}

/** Tells which names of the pairs are older ones, and for whom they hold. */
function withAliases(policy: Policy): Policy {
  const names = [...policy.allow_access, ...policy.deny_access].map(({ bot }) => bot);
  const aliases = [...new Set(names)].toSorted().flatMap((bot) => {
    const standsFor = presentNamesOf(bot);
    return standsFor.length === 0 ? [] : [{ bot, stands_for: [...standsFor] }];
  });
  return aliases.length === 0 ? policy : { ...policy, aliases };
}

async function setPolicy({ actor, body, change }: EndpointCall<Write, Actor>): Promise<Answer> {
  const sent = keys.filter((key) => body[key] !== undefined);
  if (sent.length === 0)
    return invalid([{ path: "", message: `must hold at least one of ${keys.join(", ")}` }]);
  const classless = classOfNoPolicy(body);
  if (classless !== undefined) return classless;
  return change(async (work) => {
    const wanted = await changeOf(work, actor, body);
    if (isProblem(wanted)) return wanted;
    const fault = conflictIn(wanted);
    if (fault !== undefined) return fault;
    const changed = await changePolicy(work, actor.customerId, wanted);
    if (changed.outcome === "too-large")
      return conflict(
        `with the pairs that sub-domains inherit the policy has ${changed.bytes} bytes, at most ${changed.bytesMax} are sent to deployments`,
      );
    const stored = await readPolicy(work, actor.customerId);
    return ok(Object.fromEntries(sent.map((key) => [key, stored[key]])));
  });
}

/** Reads a change, with the names of domains as the customer has them. */
async function changeOf(
  work: Work,
  actor: Actor,
  body: Write,
): Promise<PolicyChange | ProblemAnswer> {
  const canonical = new Map<string, string>();
  for (const key of ["allow_access", "deny_access", "per_domain_policy"] as const) {
    for (const [at, { domain }] of (body[key] ?? []).entries()) {
      if (canonical.has(domain)) continue;
      const host = await hostNamed(work, actor, domain, `/${key}/${at}/domain`);
      if (isProblem(host)) return host;
      canonical.set(domain, host.host);
    }
  }
  const named = (domain: string): string => canonical.get(domain) ?? domain;
  const pairs = (list: readonly BotPair[] | undefined): readonly BotPair[] | undefined =>
    list?.map(({ domain, bot }) => ({ domain: named(domain), bot }));
  const { general_policy: general, per_domain_policy: perDomain } = body;
  return {
    allow: pairs(body.allow_access),
    deny: pairs(body.deny_access),
    general: general === undefined ? undefined : statedAccess(general),
    perDomain: perDomain?.map(({ domain, policy }) => ({
      domain: named(domain),
      ...statedAccess(policy),
    })),
  };
}

function statedAccess(said: Access): StatedAccess {
  const access = said.unknown_bots_can_access;
  return {
    access: access === null ? null : isTrue(access),
    classes: classAccessOf(said, (value) => isTrue(value)),
  };
}

/** Finds a class of which something is said where the policy itself is taken away. */
function classOfNoPolicy({ general_policy, per_domain_policy }: Write): ProblemAnswer | undefined {
  const all = [
    ...(general_policy === undefined ? [] : [["/general_policy", general_policy] as const]),
    ...(per_domain_policy ?? []).map(
      ({ policy }, at) => [`/per_domain_policy/${at}/policy`, policy] as const,
    ),
  ];
  for (const [path, access] of all) {
    if (access.unknown_bots_can_access !== null) continue;
    const key = botClasses
      .map((botClass) => botClassKeys[botClass])
      .find((one) => isSaid(access[one]));
    if (key === undefined) continue;
    const message = `unknown_bots_can_access is null, which takes this policy away: it says nothing of a class then. Leave ${key} out, or say in unknown_bots_can_access what holds for other bots`;
    return invalid([{ path: `${path}/${key}`, message }]);
  }
  return undefined;
}

const isSaid = (value: Said | undefined): boolean => value !== undefined && value !== null;

/** Finds a pair that is in both lists, and a domain that is given twice. */
function conflictIn({ allow, deny, perDomain }: PolicyChange): ProblemAnswer | undefined {
  const keyOf = ({ domain, bot }: BotPair): string => `${domain}\n${bot}`;
  const allowed = new Set(allow?.map((pair) => keyOf(pair)));
  for (const [at, pair] of (deny ?? []).entries()) {
    if (!allowed.has(keyOf(pair))) continue;
    const message = `${pair.bot} of ${pair.domain} is in allow_access too`;
    return invalid([{ path: `/deny_access/${at}`, message }]);
  }
  const seen = new Set<string>();
  for (const [at, { domain }] of (perDomain ?? []).entries()) {
    if (seen.has(domain))
      return invalid([{ path: `/per_domain_policy/${at}`, message: `${domain} is given twice` }]);
    seen.add(domain);
  }
  return undefined;
}
