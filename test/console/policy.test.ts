// The bot access policy as a table of what would happen.

import { expect, test } from "vitest";
import { outcomesOf, ownPolicyOf } from "../../src/console/policy.ts";
import type { Policy } from "../../src/wire/customer/policy.ts";

const domain = "www.example.com";
const other = "shop.example.com";
const policy: Policy = {
  general_policy: { unknown_bots_can_access: false },
  per_domain_policy: [{ domain: other, policy: { unknown_bots_can_access: true } }],
  allow_access: [
    { domain, bot: "Good" },
    { domain: other, bot: "Elsewhere" },
  ],
  deny_access: [{ domain, bot: "Bad" }],
};

const said = (found: Policy, of: string): readonly (readonly [string, boolean])[] =>
  outcomesOf(found, of).map(({ who, isLetIn }) => [who, isLetIn]);

test("in the order in which it is decided: lists, refusals, permissions, any other bot, people", () => {
  expect(said(policy, domain)).toEqual([
    ["whoever comes from an address of the VIP list", true],
    ["whoever comes from an address of the bad list", false],
    ["Bad", false],
    ["Good", true],
    ["any other bot", false],
    ["people", true],
  ]);
});

test("a domain has its own pairs and its own policy", () => {
  expect(said(policy, other).slice(2)).toEqual([
    ["Elsewhere", true],
    ["any other bot", true],
    ["people", true],
  ]);
});

test("only what somebody decided can be taken back: its reason begins with you", () => {
  const decided = outcomesOf(policy, domain).filter(({ why }) => why.startsWith("you "));
  expect(decided.map(({ who }) => who)).toEqual(["Bad", "Good"]);
});

test.each([
  [domain, "general"],
  [other, "let-in"],
] as const)("%s: %s", (of, own) => {
  expect(ownPolicyOf(policy, of)).toBe(own);
});
