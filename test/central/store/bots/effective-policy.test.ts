// Which policy holds for which host.

import { describe, expect, test } from "vitest";
import {
  effectiveClasses,
  effectivePolicies,
} from "../../../../src/central/store/bots/effective-policy.ts";
import type { ClassAccess } from "../../../../src/core/serving/verdict.ts";

const domains = [{ name: "a.org", sub_domains: [{ name: "x.a.org" }, { name: "y.a.org" }] }];
const pair = (list: "allow" | "deny", domain: string, bot: string) => ({ list, domain, bot });

test.each([
  [null, [], null],
  [1, [], true],
  [0, [], false],
  [1, [["a.org", 0]], false],
  [0, [["a.org", 1]], true],
  [null, [["b.org", 1]], null],
] as const)("general %s, by domain %j: %s", (general, perDomain, access) => {
  const stored = { general, perDomain: new Map(perDomain), pairs: [] };
  const own = perDomain.some(([domain]) => domain === "a.org");
  expect(effectivePolicies(domains, stored)).toEqual([
    {
      domain: "a.org",
      unknown_bots_can_access: access,
      ...(own && { unknown_bots_policy_of: "a.org" }),
      allow: [],
      deny: [],
    },
  ]);
});

test("a sub-domain with something of its own has an entry: its own before the main domain's", () => {
  const stored = {
    general: null,
    perDomain: new Map([["a.org", 1]]),
    pairs: [
      pair("allow", "a.org", "Good"),
      pair("allow", "a.org", "Both"),
      pair("deny", "a.org", "Bad"),
      pair("deny", "x.a.org", "Both"),
      pair("allow", "other.org", "Else"),
    ],
  };
  expect(effectivePolicies(domains, stored)).toEqual([
    {
      domain: "a.org",
      unknown_bots_can_access: true,
      unknown_bots_policy_of: "a.org",
      allow: ["Both", "Good"],
      deny: ["Bad"],
    },
    {
      domain: "x.a.org",
      unknown_bots_can_access: true,
      unknown_bots_policy_of: "a.org",
      allow: ["Good"],
      deny: ["Bad", "Both"],
    },
  ]);
});

describe("classes of bots", () => {
  const told = (
    general: number | null,
    perDomain: readonly (readonly [string, number])[],
    classes: {
      readonly general?: ClassAccess;
      readonly perDomain?: readonly (readonly [string, ClassAccess])[];
    },
    pairs: readonly ReturnType<typeof pair>[] = [],
  ) =>
    effectiveClasses(domains, {
      general,
      perDomain: new Map(perDomain),
      classes: { general: classes.general ?? {}, perDomain: new Map(classes.perDomain) },
      pairs,
    });

  test("nothing is said of them where no policy does", () => {
    expect(effectiveClasses(domains, { general: 0, perDomain: new Map(), pairs: [] })).toEqual([]);
    expect(told(0, [["a.org", 1]], {})).toEqual([]);
  });

  test("what is said holds, though it is what holds for other bots", () => {
    expect(told(0, [], { general: { feed: true, crawler: false } })).toEqual([
      { domain: "a.org", feed: true, crawler: false },
    ]);
  });

  test("a domain's policy is one whole: it takes no word of the general one", () => {
    const general = { feed: true };
    expect(told(0, [["a.org", 0]], { general })).toEqual([]);
    expect(told(0, [["a.org", 0]], { general, perDomain: [["a.org", { library: true }]] })).toEqual(
      [{ domain: "a.org", library: true }],
    );
  });

  test("a sub-domain has its main domain's with its policy, be its entry one of pairs alone", () => {
    const perDomain = [["a.org", { feed: true }]] as const;
    const pairs = [pair("deny", "x.a.org", "Bad")];
    expect(told(null, [["a.org", 0]], { perDomain }, pairs)).toEqual([
      { domain: "a.org", feed: true },
      { domain: "x.a.org", feed: true },
    ]);
    const own = [
      ["a.org", 0],
      ["x.a.org", 1],
    ] as const;
    expect(told(null, own, { perDomain }, pairs)).toEqual([{ domain: "a.org", feed: true }]);
    expect(told(null, own, { perDomain: [["x.a.org", { feed: false }]] })).toEqual([
      { domain: "x.a.org", feed: false },
    ]);
  });

  test("each host of them has an entry of its policy, which says nothing of classes", () => {
    const stored = {
      general: 0,
      perDomain: new Map([["x.a.org", 1]]),
      classes: { general: { feed: true }, perDomain: new Map([["x.a.org", { crawler: false }]]) },
      pairs: [],
    };
    const hosts = effectivePolicies(domains, stored);
    const { classes: _classes, ...others } = stored;
    expect(hosts).toEqual(effectivePolicies(domains, others));
    expect(effectiveClasses(domains, stored).map(({ domain }) => domain)).toEqual(
      hosts.map(({ domain }) => domain),
    );
  });
});
