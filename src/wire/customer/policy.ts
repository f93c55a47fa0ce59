// `/bot-access-policy/`: who decides about bots that are in no list.

import { Type, type Static } from "typebox";
import { botClassWords } from "../../core/serving/bot-class-words.ts";
import type { BotClass } from "../../core/serving/verdict.ts";
import { closed } from "../validate.ts";
import { ofClasses } from "./bot-classes.ts";
import { body, BooleanLikeOrNull, DomainText, nameText, open, shape, type Body } from "./shape.ts";

const pairsMax = 10_000;
const Pairs = Type.Array(closed({ domain: DomainText, bot: nameText(255) }), {
  maxItems: pairsMax,
});

const which = {
  crawler: "all bots of no other class",
  feed: "what reads feeds or podcasts for people who subscribed",
  library: "HTTP libraries of programs, and tools of the command line",
} as const;

const whether = (botClass: BotClass): string =>
  `Whether unknown ${botClassWords[botClass].many} can access: ${which[botClass]}.`;

const Access = closed({
  unknown_bots_can_access: BooleanLikeOrNull,
  ...ofClasses((botClass) =>
    Type.Optional({
      ...BooleanLikeOrNull,
      description: `${whether(botClass)} Null or absent: as \`unknown_bots_can_access\` of this object says.`,
    }),
  ),
});

/**
 * Each key that is present replaces the whole of what is stored under that key; null removes a domain's
 * policy.
 */
export const policyWrite = body(
  {
    allow_access: Type.Optional(Pairs),
    deny_access: Type.Optional(Pairs),
    general_policy: Type.Optional(Access),
    per_domain_policy: Type.Optional(
      Type.Array(closed({ domain: DomainText, policy: Access }), { maxItems: pairsMax }),
    ),
  },
  ["aliases"],
  {
    description:
      "At least one of the four. Each replaces the stored one as a whole; null removes a domain's policy. A policy is one whole too: what it does not say of a class of bots follows its own `unknown_bots_can_access`, not the general policy.",
    examples: [
      { general_policy: { unknown_bots_can_access: true } },
      {
        allow_access: [{ domain: "www.example.com", bot: "Googlebot" }],
        deny_access: [{ domain: "www.example.com", bot: "BadCrawler" }],
        per_domain_policy: [
          { domain: "www.example.com", policy: { unknown_bots_can_access: "True" } },
        ],
      },
      { general_policy: { unknown_bots_can_access: false, unknown_feeds_can_access: true } },
    ],
  },
);

export type PolicyWrite = typeof policyWrite extends Body<infer T> ? T : never;

const BotPair = open({ domain: Type.String(), bot: Type.String() });
const StoredAccess = open({
  unknown_bots_can_access: Type.Boolean(),
  ...ofClasses((botClass) =>
    Type.Optional(
      Type.Boolean({
        description: `${whether(botClass)} Absent: as \`unknown_bots_can_access\` says.`,
      }),
    ),
  ),
});

const stored = {
  allow_access: Type.Array(BotPair),
  deny_access: Type.Array(BotPair),
  general_policy: StoredAccess,
  per_domain_policy: Type.Array(open({ domain: Type.String(), policy: StoredAccess })),
};
const general = { general_policy: { unknown_bots_can_access: true } };

const aliases = Type.Array(
  open({ bot: Type.String(), stands_for: Type.Array(Type.String(), { minItems: 1 }) }),
  {
    description:
      "Former names among those of the pairs, with what the bots to which they apply are called now. Absent if there is none.",
  },
);

export const Policy = open(
  { ...stored, aliases: Type.Optional(aliases) },
  {
    title: "BotAccessPolicy",
    examples: [
      {
        allow_access: [{ domain: "www.example.com", bot: "Googlebot" }],
        deny_access: [],
        ...general,
        per_domain_policy: [],
      },
    ],
  },
);
export type Policy = Static<typeof Policy>;
export const policyShape = shape(Policy);
/** A POST answers with the keys that were sent. */
export const policyPartShape = shape(
  Type.Partial(open(stored), {
    title: "BotAccessPolicyPart",
    description: "The keys that were sent, as they are now stored.",
    examples: [general],
  }),
);
