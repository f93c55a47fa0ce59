// The rules of policies for classes of unknown bots, and what deployments are told of them: a row each.

import { at, getPolicy, main, setPolicy, sub, type BotRule } from "./bot-requests.ts";

type Classes = {
  readonly crawlers?: unknown;
  readonly feeds?: unknown;
  readonly libraries?: unknown;
  readonly robots?: unknown;
};

const access = (said: unknown, classes: Classes = {}): object => ({
  unknown_bots_can_access: said,
  ...Object.fromEntries(
    Object.entries(classes).map(([name, value]) => [`unknown_${name}_can_access`, value]),
  ),
});
const per = (domain: string, said: unknown, classes: Classes = {}): object => ({
  domain,
  policy: access(said, classes),
});
/** As it is pushed, to every agent. */
const all = (said: boolean | null): object => ({
  domains: [{ domain: main, unknown_bots_can_access: said, allow: [], deny: [] }],
});

export const policyClassRules: readonly BotRule[] = [
  {
    rule: "classes: an access object may say another thing of crawlers, feeds and libraries; answers have what is set",
    steps: [
      [
        setPolicy({
          general_policy: access(false, { feeds: "True", libraries: null }),
          per_domain_policy: [per(main, true, { crawlers: "false", feeds: false }), per(sub, true)],
        }),
        200,
        {
          general_policy: access(false, { feeds: true }),
          per_domain_policy: [per(main, true, { crawlers: false, feeds: false }), per(sub, true)],
        },
      ],
      [
        getPolicy,
        200,
        {
          allow_access: [],
          deny_access: [],
          general_policy: access(false, { feeds: true }),
          per_domain_policy: [per(main, true, { crawlers: false, feeds: false }), per(sub, true)],
        },
      ],
    ],
    isExact: true,
  },
  {
    rule: "classes: a policy is replaced as a whole; what is not said again follows the other bots",
    steps: [
      [setPolicy({ general_policy: access(false, { feeds: true, crawlers: false }) }), 200],
      [
        setPolicy({ general_policy: access(false, { libraries: true }) }),
        200,
        { general_policy: access(false, { libraries: true }) },
      ],
      [setPolicy({ general_policy: access(null) }), 200, { general_policy: access(false) }],
    ],
    isExact: true,
  },
  {
    rule: "classes: another value, another key are refused",
    steps: [
      [
        setPolicy({ general_policy: access(true, { feeds: "yes" }) }),
        400,
        at("/general_policy/unknown_feeds_can_access"),
      ],
      [
        setPolicy({ per_domain_policy: [per(main, true, { robots: true })] }),
        400,
        at("/per_domain_policy/0/policy/unknown_robots_can_access"),
      ],
    ],
  },
  {
    rule: "classes: a policy that is taken away says nothing of them; null says nothing",
    steps: [
      [
        setPolicy({ general_policy: access(null, { libraries: "False" }) }),
        400,
        at("/general_policy/unknown_libraries_can_access"),
      ],
      [
        setPolicy({ per_domain_policy: [per(sub, true), per(main, null, { feeds: true })] }),
        400,
        at("/per_domain_policy/1/policy/unknown_feeds_can_access"),
      ],
      [getPolicy, 200, { general_policy: access(false), per_domain_policy: [] }],
      [setPolicy({ general_policy: access(null, { feeds: null }) }), 200],
    ],
    told: [all(null)],
  },
  {
    rule: "classes: they are told beside the policy, whose entry is what it was",
    steps: [[setPolicy({ general_policy: access(false, { feeds: true }) }), 200]],
    told: [{ domains: [{ domain: main, feed: true }] }, all(false)],
    isExact: true,
  },
  {
    rule: "classes: a domain's policy takes no word of the general one; a sub-domain has its main domain's",
    steps: [
      [
        setPolicy({
          allow_access: [{ domain: sub, bot: "A" }],
          general_policy: access(false, { feeds: true }),
        }),
        200,
      ],
      [setPolicy({ per_domain_policy: [per(main, true, { libraries: false })] }), 200],
      [setPolicy({ per_domain_policy: [per(main, true)] }), 200],
    ],
    told: [
      {
        domains: [
          { domain: main, feed: true },
          { domain: sub, feed: true },
        ],
      },
      {},
      {
        domains: [
          { domain: main, library: false },
          { domain: sub, library: false },
        ],
      },
      {},
      { domains: [] },
      {},
    ],
  },
  {
    rule: "classes: a site that was told of some is told when there are none any more, and one that was not is not",
    steps: [
      [setPolicy({ general_policy: access(true) }), 200],
      [setPolicy({ general_policy: access(false, { crawlers: true }) }), 200],
      [setPolicy({ general_policy: access(null) }), 200],
    ],
    told: [
      all(true),
      { domains: [{ domain: main, crawler: true }] },
      all(false),
      { domains: [] },
      all(null),
    ],
    isExact: true,
  },
];
