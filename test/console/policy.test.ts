// The bot access policy as a table of what would happen.

import { expect, test } from "vitest";
import {
  outcomesOf,
  ownClassOf,
  ownPolicyOf,
  withClass,
  withUnreviewed,
} from "../../src/console/policy.ts";
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

const own = { domain, policy: { unknown_bots_can_access: false, unknown_feeds_can_access: true } };
const others = [
  { domain: other, policy: { unknown_bots_can_access: true, unknown_crawlers_can_access: false } },
];
const withClasses: Policy = { ...policy, per_domain_policy: [...others, own] };

test("a class has a row where its answer is not that of other bots", () => {
  expect(said(withClasses, domain).slice(4)).toEqual([
    ["an unknown feed reader", true],
    ["any other bot", false],
    ["people", true],
  ]);
  expect(said(withClasses, other).slice(3, 5)).toEqual([
    ["an unknown crawler", false],
    ["any other bot", true],
  ]);
  const asOthers = { ...own, policy: { ...own.policy, unknown_bots_can_access: true } };
  const found = { ...policy, per_domain_policy: [asOthers] };
  expect(said(found, domain).slice(4)[0]).toEqual(["any other bot", true]);
  // The general policy says nothing of classes at a domain that has its own.
  const general = { unknown_bots_can_access: false, unknown_libraries_can_access: true };
  const all = { ...withClasses, general_policy: general };
  expect(said(all, domain)).toEqual(said(withClasses, domain));
  expect(said(all, "third.example.com").slice(2)).toEqual([
    ["an unknown library or tool", true],
    ["any other bot", false],
    ["people", true],
  ]);
});

test.each([
  ["crawler", "as-others"],
  ["feed", "let-in"],
] as const)("of a %s the domain's own policy says: %s", (botClass, word) => {
  expect(ownClassOf(withClasses, domain, botClass)).toBe(word);
  expect(ownClassOf(policy, domain, botClass)).toBe("as-others");
});

test("another word on bots that nobody reviewed leaves the classes of the domain, and all of others", () => {
  expect(withUnreviewed(withClasses, domain, "let-in")).toEqual([
    ...others,
    { domain, policy: { unknown_bots_can_access: true, unknown_feeds_can_access: true } },
  ]);
  expect(withUnreviewed(withClasses, domain, "general")).toEqual([
    ...others,
    { domain, policy: { unknown_bots_can_access: null } },
  ]);
  expect(withUnreviewed(policy, domain, "refuse")).toEqual([
    ...policy.per_domain_policy,
    { domain, policy: { unknown_bots_can_access: false } },
  ]);
});

test("another word on a class leaves the other classes, and what happens to other bots", () => {
  expect(withClass(withClasses, domain, "library", "let-in")).toEqual([
    ...others,
    { domain, policy: { ...own.policy, unknown_libraries_can_access: true } },
  ]);
  expect(withClass(withClasses, domain, "feed", "refuse")).toEqual([
    ...others,
    { domain, policy: { ...own.policy, unknown_feeds_can_access: false } },
  ]);
  expect(withClass(withClasses, domain, "feed", "as-others")).toEqual([
    ...others,
    { domain, policy: { unknown_bots_can_access: false } },
  ]);
  // Its policy was taken back elsewhere meanwhile.
  expect(withClass(policy, domain, "feed", "let-in")).toEqual(policy.per_domain_policy);
});
