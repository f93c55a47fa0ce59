// Decision 14, a row a case.

import { expect, test } from "vitest";
import {
  decide,
  type BotRules,
  type Evidence,
  type Holder,
} from "../../../src/core/serving/verdict.ts";

const rules = (over: Partial<BotRules> = {}): BotRules => ({
  mode: "enforce",
  allow: new Set(),
  deny: new Set(),
  unknownBotsCanAccess: null,
  ...over,
});
const evidence = (over: Partial<Evidence> = {}): Evidence => ({
  holder: undefined,
  claimed: undefined,
  claimHasAddresses: false,
  ...over,
});

const held = (
  kind: Holder["kind"],
  bot: string,
  pair?: Holder["pair"],
  claimed?: string,
): Evidence => evidence({ holder: { kind, bot, pair }, claimed });

test.each([
  ["a browser from nowhere known", rules(), evidence(), "allow", "not-a-bot"],
  ["an address in the bad set", rules(), held("bad", "evil"), "block", "bad-set"],
  ["an address in the VIP set", rules(), held("vip", "good"), "allow", "vip-set"],
  [
    "a VIP that is denied",
    rules({ deny: new Set(["good"]) }),
    held("vip", "good", "deny"),
    "block",
    "deny-pair",
  ],
  [
    "a bad one that is allowed",
    rules({ allow: new Set(["evil"]) }),
    held("bad", "evil", "allow"),
    "allow",
    "allow-pair",
  ],
  [
    "an unreviewed bot without any policy",
    rules(),
    evidence({ claimed: "curl" }),
    "block",
    "unreviewed-blocked-by-default",
  ],
  [
    "an unreviewed bot where policy says no",
    rules({ unknownBotsCanAccess: false }),
    evidence({ claimed: "curl" }),
    "block",
    "unreviewed-blocked",
  ],
  [
    "an unreviewed bot where policy says yes",
    rules({ unknownBotsCanAccess: true }),
    evidence({ claimed: "curl" }),
    "allow",
    "unreviewed-allowed",
  ],
  [
    "a claimed name that is denied",
    rules({ unknownBotsCanAccess: true, deny: new Set(["curl"]) }),
    evidence({ claimed: "curl" }),
    "block",
    "deny-pair",
  ],
  [
    "a claimed name that is allowed",
    rules({ allow: new Set(["curl"]) }),
    evidence({ claimed: "curl" }),
    "allow",
    "allow-pair",
  ],
  [
    "an allow pair never helps a claim to a name with addresses",
    rules({ allow: new Set(["Googlebot"]) }),
    evidence({ claimed: "Googlebot", claimHasAddresses: true }),
    "block",
    "unreviewed-blocked-by-default",
  ],
  [
    "a deny pair holds for such a claim too",
    rules({ unknownBotsCanAccess: true, deny: new Set(["Googlebot"]) }),
    evidence({ claimed: "Googlebot", claimHasAddresses: true }),
    "block",
    "deny-pair",
  ],
  [
    "a claim to a name whose addresses are VIPs, from elsewhere",
    rules(),
    evidence({ claimed: "Googlebot", isFake: true }),
    "block",
    "fake-blocked-by-default",
  ],
  [
    "a fake where policy says no",
    rules({ unknownBotsCanAccess: false }),
    evidence({ claimed: "Googlebot", isFake: true }),
    "block",
    "fake-blocked",
  ],
  [
    "a fake where policy says yes",
    rules({ unknownBotsCanAccess: true }),
    evidence({ claimed: "Googlebot", isFake: true }),
    "allow",
    "fake-allowed",
  ],
  [
    "a fake that is denied",
    rules({ unknownBotsCanAccess: true, deny: new Set(["Googlebot"]) }),
    evidence({ claimed: "Googlebot", isFake: true }),
    "block",
    "deny-pair",
  ],
  [
    "monitor lets through and says so",
    rules({ mode: "monitor" }),
    held("bad", "evil"),
    "would-block",
    "bad-set",
  ],
  [
    "the user agent does not matter for an address in a set",
    rules({ deny: new Set(["curl"]) }),
    held("vip", "good", undefined, "curl"),
    "allow",
    "vip-set",
  ],
] as const)("%s", (_, given, seen, kind, reason) => {
  expect(decide(given, seen)).toMatchObject({ kind, reason });
});

// A bot that was called otherwise when pairs were written: the claimed name first, then the others in their order.
test.each([
  ["an alias that is denied", { deny: ["old"] }, false, "deny-pair"],
  ["an alias that is allowed", { allow: ["old"] }, false, "allow-pair"],
  ["the claimed name before an alias", { allow: ["new"], deny: ["old"] }, false, "allow-pair"],
  ["a denied name before an allowed alias", { allow: ["old"], deny: ["new"] }, false, "deny-pair"],
  ["the first alias before the second", { allow: ["old"], deny: ["older"] }, false, "allow-pair"],
  ["an allow pair that does not help", { allow: ["old"] }, true, "unreviewed-allowed"],
  [
    "a denied alias behind an allow pair that does not help",
    { allow: ["new"], deny: ["old"] },
    true,
    "deny-pair",
  ],
  ["the pair of another bot", { deny: ["other"] }, false, "unreviewed-allowed"],
] as const)("%s decides about a claim", (_, pairs: Pairs, claimHasAddresses, reason) => {
  const { allow = [], deny = [] } = pairs;
  const said = rules({ allow: new Set(allow), deny: new Set(deny), unknownBotsCanAccess: true });
  const claim = evidence({ claimed: "new", aliases: ["old", "older"], claimHasAddresses });
  expect(decide(said, claim)).toMatchObject({ reason, bot: "new" });
});
type Pairs = { readonly allow?: readonly string[]; readonly deny?: readonly string[] };
