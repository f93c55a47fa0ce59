// Every reason in words: why, and what would change it, so that following the advice changes the verdict.

import { expect, test } from "vitest";
import { policySaid, tellStory, type Story } from "../../../src/core/serving/verdict-words.ts";
import type {
  BotClass,
  SetRef,
  Verdict,
  VerdictReason,
} from "../../../src/core/serving/verdict.ts";

const host = "www.a.example";
const devlove = "the devlove of a.example, which www.a.example follows";
const set = (kind: SetRef["kind"]): SetRef => ({ kind, host: "a.example", version: 3 });

function story(
  kind: Verdict["kind"],
  reason: VerdictReason,
  over: {
    readonly set?: SetRef;
    readonly policyOf?: string;
    readonly range?: string;
    readonly isAllowedElsewhere?: boolean;
    readonly botClass?: BotClass;
    readonly saidOfOthers?: boolean;
    readonly isPast?: boolean;
  } = {},
): Story {
  const bot = reason === "not-a-bot" ? null : "evil";
  const verdict: Verdict = { kind, reason, bot, set: over.set };
  return {
    verdict,
    clientIp: "192.0.2.1",
    host,
    devlove,
    policy: policySaid(verdict, over.policyOf, "a.example"),
    range: over.range,
    isAllowedElsewhere: over.isAllowedElsewhere ?? false,
    botClass: over.botClass,
    saidOfOthers: over.saidOfOthers,
    isPast: over.isPast ?? false,
  };
}

const range = "192.0.2.0/24";
const inBad = `${range} is evil's in the bad set of a.example, version 3`;
const inVip = `${range} is evil's in the VIP set of a.example, version 3`;
const claims = "the address is in no set and the user agent claims to be evil";
const monitor = `bots.mode: monitor in ${devlove}: it lets through and counts`;
const unknown = (can: boolean): string =>
  `unknown_bots_can_access: ${can} for ${host} in per_domain_policy`;

test.each([
  [
    story("block", "bad-set", { set: set("bad"), range }),
    "blocked with 403",
    inBad,
    [
      `removing ${range} of evil from the bad bots of a.example`,
      `an allow_access pair of ${host} and evil`,
      `marking 192.0.2.1 as a VIP bot of ${host}, because VIP sets come first`,
      monitor,
    ],
  ],
  [
    story("would-block", "bad-set", { set: set("bad") }),
    "let through, because the domain is in monitor mode; in enforce mode it is blocked with 403",
    "192.0.2.1 is evil's in the bad set of a.example, version 3",
    [
      "removing 192.0.2.1 of evil from the bad bots of a.example",
      `an allow_access pair of ${host} and evil`,
      `marking 192.0.2.1 as a VIP bot of ${host}, because VIP sets come first`,
      `bots.mode: enforce in ${devlove}: it blocks`,
    ],
  ],
  [
    story("allow", "vip-set", { set: set("vip"), range }),
    "allowed",
    `${inVip}; VIP bots are allowed unless a pair denies them`,
    [
      `removing ${range} of evil from the VIP bots of a.example`,
      `a deny_access pair of ${host} and evil`,
    ],
  ],
  [
    story("block", "deny-pair", { set: set("vip"), range }),
    "blocked with 403",
    `${inVip}; the pair of a.example and evil says that it can not access`,
    [
      "taking the pair of a.example and evil out of deny_access",
      `removing ${range} of evil from the VIP bots of a.example`,
      monitor,
    ],
  ],
  [
    story("allow", "allow-pair", { set: set("bad"), range }),
    "allowed",
    `${inBad}; the pair of a.example and evil says that it can access`,
    [
      "taking the pair of a.example and evil out of allow_access",
      `removing ${range} of evil from the bad bots of a.example`,
    ],
  ],
  [
    story("block", "deny-pair"),
    "blocked with 403",
    `${claims}; the pair of a.example and evil says that it can not access`,
    [
      "taking the pair of a.example and evil out of deny_access",
      `marking 192.0.2.1 as a VIP bot of ${host} under another name`,
      monitor,
    ],
  ],
  [
    story("allow", "allow-pair"),
    "allowed",
    `${claims}; the pair of a.example and evil says that it can access`,
    [
      "taking the pair of a.example and evil out of allow_access",
      `marking 192.0.2.1 as a bad bot of ${host}`,
    ],
  ],
  [
    story("allow", "unreviewed-allowed", { policyOf: "a.example" }),
    "allowed",
    `${claims}; the policy of a.example says that unknown bots can access`,
    [unknown(false), `a deny_access pair of ${host} and evil`],
  ],
  [
    story("block", "unreviewed-blocked"),
    "blocked with 403",
    `${claims}; the general policy says that unknown bots can not access`,
    [
      unknown(true),
      `an allow_access pair of ${host} and evil, as long as no set holds addresses of evil`,
      `marking 192.0.2.1 as a VIP bot of ${host}`,
      monitor,
    ],
  ],
  [
    story("block", "unreviewed-blocked-by-default", { isAllowedElsewhere: true }),
    "blocked with 403",
    `${claims}; neither a policy of the domain nor a general one says anything, so unknown bots are blocked; that evil is allowed does not help: its addresses are in the sets, and this address is not`,
    [unknown(true), `marking 192.0.2.1 as evil's in the VIP bots of ${host}`, monitor],
  ],
  [
    story("allow", "unreviewed-allowed", { botClass: "feed", saidOfOthers: false }),
    "allowed",
    `${claims}; the general policy says that unknown feed readers can access`,
    [
      `unknown_feeds_can_access: false beside unknown_bots_can_access: false for ${host} in per_domain_policy`,
      `a deny_access pair of ${host} and evil`,
    ],
  ],
  [
    // What is advised holds now; what was said then is not known.
    story("allow", "unreviewed-allowed", { botClass: "feed", saidOfOthers: true, isPast: true }),
    "allowed",
    `${claims}; the general policy says that unknown bots like it can access`,
    [
      `unknown_feeds_can_access: false beside unknown_bots_can_access: true for ${host} in per_domain_policy`,
      `a deny_access pair of ${host} and evil`,
    ],
  ],
  [
    // The class follows what is said of all unknown bots.
    story("allow", "unreviewed-allowed", { botClass: "library" }),
    "allowed",
    `${claims}; the general policy says that unknown bots can access`,
    [unknown(false), `a deny_access pair of ${host} and evil`],
  ],
  [
    story("allow", "not-a-bot"),
    "allowed",
    "the address is in no set and the user agent is no bot's",
    [`marking 192.0.2.1 as a bad bot of ${host}`],
  ],
])("%# %o", (given, what, why, changes) => {
  expect(tellStory(given)).toEqual({ what, why, would_change_it: changes });
});
