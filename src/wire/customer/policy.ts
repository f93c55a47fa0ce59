// `/bot-access-policy/`: who decides about bots that are in no list.

import { Type, type Static } from "typebox";
import { closed } from "../validate.ts";
import { body, BooleanLikeOrNull, DomainText, nameText, open, shape, type Body } from "./shape.ts";

const pairsMax = 10_000;
const Pairs = Type.Array(closed({ domain: DomainText, bot: nameText(255) }), {
  maxItems: pairsMax,
});
const Access = closed({ unknown_bots_can_access: BooleanLikeOrNull });

/** Each key that is present replaces what is stored of that key whole; null removes a domain's policy. */
export const policyWrite = body({
  allow_access: Type.Optional(Pairs),
  deny_access: Type.Optional(Pairs),
  general_policy: Type.Optional(Access),
  per_domain_policy: Type.Optional(
    Type.Array(closed({ domain: DomainText, policy: Access }), { maxItems: pairsMax }),
  ),
});

export type PolicyWrite = typeof policyWrite extends Body<infer T> ? T : never;

const BotPair = open({ domain: Type.String(), bot: Type.String() });
const StoredAccess = open({ unknown_bots_can_access: Type.Boolean() });

export const Policy = open({
  allow_access: Type.Array(BotPair),
  deny_access: Type.Array(BotPair),
  general_policy: StoredAccess,
  per_domain_policy: Type.Array(open({ domain: Type.String(), policy: StoredAccess })),
});
export type Policy = Static<typeof Policy>;
export const policyShape = shape(Policy);
/** A POST answers with the keys that were sent. */
export const policyPartShape = shape(Type.Partial(Policy));
