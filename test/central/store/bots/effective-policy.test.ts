// Which policy holds for which host.

import { expect, test } from "vitest";
import { effectivePolicies } from "../../../../src/central/store/bots/effective-policy.ts";

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
