// The rules of the bot access policy, and what deployments are told of it: a row each.

import { expect } from "vitest";
import { addDomain, at, getPolicy, main, setPolicy, sub, type BotRule } from "./bot-requests.ts";

const access = (said: unknown): object => ({ unknown_bots_can_access: said });
const pair = (bot: string, domain = main): object => ({ domain, bot });
const per = (domain: string, said: unknown): object => ({ domain, policy: access(said) });
/** As it is pushed. */
const effective = (
  domain: string,
  said: boolean | null,
  allow: readonly string[] = [],
  deny: readonly string[] = [],
): object => ({
  domain,
  unknown_bots_can_access: said,
  allow,
  deny,
});
const many = (count: number, length: number): readonly object[] =>
  Array.from({ length: count }, (_, n) => pair(`${n}`.padStart(length, "b")));
const nothing = {
  allow_access: [],
  deny_access: [],
  general_policy: access(false),
  per_domain_policy: [],
};

const withOlderNames = {
  ...nothing,
  allow_access: [pair("Netumonetumo")],
  deny_access: [pair("AhrefsBotSiteAudit"), pair("B"), pair("AhrefsBotSiteAudit", sub)],
  aliases: [
    { bot: "AhrefsBotSiteAudit", stands_for: ["AhrefsBot", "AhrefsSiteAudit"] },
    { bot: "Netumonetumo", stands_for: ["Netumo"] },
  ],
};

export const policyRules: readonly BotRule[] = [
  {
    rule: "policy: by default unreviewed bots are blocked, and no domain has its own",
    steps: [[getPolicy, 200, nothing]],
  },
  {
    rule: "policy: at least one of the four objects must be there",
    steps: [
      [setPolicy({}), 400, { detail: expect.stringContaining("at least one of") }],
      [setPolicy({ unknown_bots_can_access: true }), 400, at("/unknown_bots_can_access")],
    ],
  },
  {
    rule: "policy: the answer has the keys that were sent, as they are stored",
    steps: [
      [
        setPolicy({ allow_access: [pair("B"), pair("A")] }),
        200,
        { allow_access: [pair("A"), pair("B")] },
      ],
      [setPolicy({ general_policy: access("True") }), 200, { general_policy: access(true) }],
      [
        setPolicy({ deny_access: [], per_domain_policy: [per(main.toUpperCase(), true)] }),
        200,
        { deny_access: [], per_domain_policy: [per(main, true)] },
      ],
    ],
  },
  {
    rule: 'policy: unknown_bots_can_access is true, false, "true", "True", "false" or "False"',
    steps: [true, "true", "True", false, "false", "False"].map((said) => [
      setPolicy({ general_policy: access(said), per_domain_policy: [per(main, said)] }),
      200,
      {
        general_policy: access(String(said).toLowerCase() === "true"),
        per_domain_policy: [per(main, String(said).toLowerCase() === "true")],
      },
    ]),
  },
  {
    rule: "policy: another value, a missing value, an unknown key are refused",
    steps: [
      [
        setPolicy({ general_policy: access("yes") }),
        400,
        at("/general_policy/unknown_bots_can_access"),
      ],
      [setPolicy({ general_policy: {} }), 400, at("/general_policy/unknown_bots_can_access")],
      [
        setPolicy({ per_domain_policy: [{ domain: main }] }),
        400,
        at("/per_domain_policy/0/policy"),
      ],
      [setPolicy({ allow_access: [{ domain: main }] }), 400, at("/allow_access/0/bot")],
      [setPolicy({ deny_access: [pair(" A")] }), 400, at("/deny_access/0/bot")],
    ],
  },
  {
    rule: "policy: a key that is sent replaces what is stored of it whole; the others stay; [] empties",
    steps: [
      [
        setPolicy({
          allow_access: [pair("A"), pair("B")],
          deny_access: [pair("C")],
          general_policy: access(true),
          per_domain_policy: [per(sub, false)],
        }),
        200,
      ],
      [setPolicy({ allow_access: [pair("D")] }), 200],
      [
        getPolicy,
        200,
        {
          allow_access: [pair("D")],
          deny_access: [pair("C")],
          general_policy: access(true),
          per_domain_policy: [per(sub, false)],
        },
      ],
      [setPolicy({ deny_access: [], per_domain_policy: [per(main, true)] }), 200],
      [
        getPolicy,
        200,
        {
          allow_access: [pair("D")],
          deny_access: [],
          general_policy: access(true),
          per_domain_policy: [per(main, true)],
        },
      ],
      [setPolicy({ per_domain_policy: [] }), 200, { per_domain_policy: [] }],
    ],
  },
  {
    rule: "policy: null takes a domain's policy away, and the general one back to the default",
    steps: [
      [
        setPolicy({
          general_policy: access(true),
          per_domain_policy: [per(main, false), per(sub, true)],
        }),
        200,
      ],
      [
        setPolicy({ per_domain_policy: [per(main, null), per(sub, true)] }),
        200,
        { per_domain_policy: [per(sub, true)] },
      ],
      [setPolicy({ general_policy: access(null) }), 200, { general_policy: access(false) }],
    ],
    told: [
      { domains: [effective(main, true), effective(sub, true)] },
      { domains: [effective(main, null), effective(sub, true)] },
    ],
  },
  {
    rule: "policy: the same bot of a domain in both lists is refused, naming it, and nothing changes",
    steps: [
      [
        setPolicy({
          allow_access: [pair("Z"), pair("A")],
          deny_access: [pair("B"), pair("A", main.toUpperCase())],
          general_policy: access(true),
        }),
        400,
        at("/deny_access/1"),
      ],
      [getPolicy, 200, nothing],
    ],
    told: [],
  },
  {
    rule: "policy: the same bot may be allowed for one domain and denied for another, its sub-domain included",
    steps: [
      [addDomain("other.example.com"), 201],
      [
        setPolicy({
          allow_access: [pair("A")],
          deny_access: [pair("A", sub), pair("A", "other.example.com")],
        }),
        200,
      ],
    ],
    told: [{ domains: [effective(main, null, ["A"]), effective(sub, null, [], ["A"])] }],
  },
  {
    rule: "policy: a pair that is sent for one list leaves the other; one sent twice is there once",
    steps: [
      [setPolicy({ allow_access: [pair("A"), pair("B")] }), 200],
      [setPolicy({ deny_access: [pair("B"), pair("B")] }), 200, { deny_access: [pair("B")] }],
      [getPolicy, 200, { allow_access: [pair("A")], deny_access: [pair("B")] }],
    ],
  },
  {
    rule: "policy: bots of other case are other bots",
    steps: [[setPolicy({ allow_access: [pair("curl")], deny_access: [pair("Curl")] }), 200]],
  },
  {
    rule: "policy: GET tells for whom an older name holds, and takes that back without effect",
    steps: [
      [
        setPolicy({
          allow_access: [pair("Netumonetumo")],
          deny_access: [pair("AhrefsBotSiteAudit"), pair("AhrefsBotSiteAudit", sub), pair("B")],
        }),
        200,
        {
          allow_access: [pair("Netumonetumo")],
          deny_access: [pair("AhrefsBotSiteAudit"), pair("B"), pair("AhrefsBotSiteAudit", sub)],
        },
      ],
      [getPolicy, 200, withOlderNames],
      [setPolicy(withOlderNames), 200],
      [getPolicy, 200, withOlderNames],
      [setPolicy({ aliases: [] }), 400, { detail: expect.stringContaining("at least one of") }],
    ],
  },
  {
    rule: "policy: a domain twice in per_domain_policy is refused",
    steps: [
      [
        setPolicy({ per_domain_policy: [per(main, true), per(main.toUpperCase(), false)] }),
        400,
        at("/per_domain_policy/1"),
      ],
    ],
  },
  {
    rule: "policy: a domain that is not the customer's is not there, and nothing changes",
    steps: [
      [{ ...addDomain("other.example.com"), asOther: true }, 201],
      [
        setPolicy({
          general_policy: access(true),
          deny_access: [pair("A"), pair("A", "other.example.com")],
        }),
        404,
        at("/deny_access/1/domain"),
      ],
      [
        setPolicy({ per_domain_policy: [per("other.example.com", true)] }),
        404,
        at("/per_domain_policy/0/domain"),
      ],
      [getPolicy, 200, nothing],
    ],
    told: [],
  },
  {
    rule: "limit: a list has at most 10,000 pairs",
    steps: [
      [setPolicy({ deny_access: many(10_000, 5) }), 200],
      [setPolicy({ deny_access: many(10_001, 5) }), 400, at("/deny_access")],
    ],
  },
  {
    rule: "limit: what follows from the policy for all hosts has at most 4 MiB",
    steps: [
      ...["a", "b", "c", "d"].map(
        (label) =>
          [
            {
              method: "PUT",
              path: `/domain/${main}/`,
              body: { sub_domain: { name: `${label}.${main}` } },
            },
            200,
          ] as const,
      ),
      [setPolicy({ allow_access: many(3_500, 255) }), 200],
      [
        setPolicy({
          per_domain_policy: ["a", "b", "c", "d"].map((label) => per(`${label}.${main}`, true)),
        }),
        409,
        { detail: expect.stringContaining("4194304") },
      ],
      [getPolicy, 200, { per_domain_policy: [] }],
    ],
  },
  {
    rule: "effective: the domain's policy, else the general one, else not said",
    steps: [
      [setPolicy({ general_policy: access(true) }), 200],
      [setPolicy({ per_domain_policy: [per(main, false)] }), 200],
      [setPolicy({ per_domain_policy: [] }), 200],
    ],
    told: [effective(main, true), effective(main, false), effective(main, true)].map((domain) => ({
      domains: [domain],
    })),
  },
  {
    rule: "effective: a sub-domain has its main domain's policy and pairs, its own come first",
    steps: [
      [
        setPolicy({
          allow_access: [pair("A"), pair("B"), pair("C", sub)],
          deny_access: [pair("D"), pair("B", sub)],
          per_domain_policy: [per(main, true)],
        }),
        200,
      ],
      [setPolicy({ per_domain_policy: [per(main, true), per(sub, false)] }), 200],
    ],
    told: [
      {
        domains: [
          effective(main, true, ["A", "B"], ["D"]),
          effective(sub, true, ["A", "C"], ["B", "D"]),
        ],
      },
      {
        domains: [
          effective(main, true, ["A", "B"], ["D"]),
          effective(sub, false, ["A", "C"], ["B", "D"]),
        ],
      },
    ],
  },
];
