// What a record's words are told as: each verdict in the words of `why`, each outcome of the cache, and words that only a newer release knows.

import { expect, test } from "vitest";
import { tellRecord, type RecordedRequest } from "../../../src/core/serving/record-words.ts";
import { verdictReasons, type VerdictReason } from "../../../src/core/serving/verdict.ts";
import { tellStory } from "../../../src/core/serving/verdict-words.ts";

const plain: RecordedRequest = {
  verdict: "allow",
  reason: "not-a-bot",
  bot: null,
  clientIp: "192.0.2.7",
  cache: "hit",
  status: 200,
  backendSeconds: 0,
};
const tell = (more: Partial<RecordedRequest>): string => tellRecord({ ...plain, ...more });

test.each<[VerdictReason, string]>([
  ["not-a-bot", "the address is in no set and the user agent is no bot's"],
  [
    "vip-set",
    "192.0.2.7 is B's in a VIP set of the domain; VIP bots are allowed unless a pair denies them",
  ],
  ["bad-set", "192.0.2.7 is B's in a bad set of the domain"],
  [
    "allow-pair",
    "its address or its user agent is B's; the pair of the domain and B says that it can access",
  ],
  [
    "deny-pair",
    "its address or its user agent is B's; the pair of the domain and B says that it can not access",
  ],
  [
    "unreviewed-allowed",
    "the address is in no set and the user agent claims to be B; the policy of the domain, or the general one, says that unknown bots like it can access",
  ],
  [
    "unreviewed-blocked",
    "the address is in no set and the user agent claims to be B; the policy of the domain, or the general one, says that unknown bots like it can not access",
  ],
  [
    "unreviewed-blocked-by-default",
    "the address is in no set and the user agent claims to be B; neither a policy of the domain nor a general one says anything, so unknown bots are blocked",
  ],
  [
    "fake-allowed",
    "the user agent claims to be B, and the address is none of those that the VIP sets hold for it: a fake; the policy of the domain, or the general one, says that unknown bots like it can access",
  ],
  [
    "fake-blocked",
    "the user agent claims to be B, and the address is none of those that the VIP sets hold for it: a fake; the policy of the domain, or the general one, says that unknown bots like it can not access",
  ],
  [
    "fake-blocked-by-default",
    "the user agent claims to be B, and the address is none of those that the VIP sets hold for it: a fake; neither a policy of the domain nor a general one says anything, so unknown bots are blocked",
  ],
])("%s: %s", (reason, words) => {
  const told = tell({ verdict: "allow", reason, bot: reason === "not-a-bot" ? null : "B" });
  expect(told).toBe(`allowed: ${words}. The cache had the answer.`);
});

test("what was done with the visitor is told as `why` tells it", () => {
  for (const kind of ["allow", "block", "would-block"] as const) {
    const verdict = { kind, reason: "unreviewed-blocked-by-default", bot: "B" } as const;
    const story = { verdict, clientIp: "192.0.2.7", host: "a.example", range: undefined };
    const policy = { kind: "default", says: "deny" } as const;
    const nothing = {
      devlove: "the devlove of a.example",
      isAllowedElsewhere: false,
      botClass: undefined,
      saidOfOthers: undefined,
      isPast: false,
    };
    const { what, why } = tellStory({ ...story, policy, ...nothing });
    expect(tell({ verdict: kind, reason: verdict.reason, bot: "B" })).toBe(
      `${what}: ${why}. The cache had the answer.`,
    );
  }
  expect(verdictReasons).toHaveLength(11);
});

test.each<[Partial<RecordedRequest>, string]>([
  [
    { verdict: "limit", cache: "none", status: 429 },
    "refused with 429: 192.0.2.7 asked more often than a rule of limits.requests allows. The cache was not asked.",
  ],
  [
    { verdict: "limit", cache: "none", status: 429, clientIp: "2001:db8::7" },
    "refused with 429: the /64 of 2001:db8::7 asked more often than a rule of limits.requests allows. The cache was not asked.",
  ],
  [
    { verdict: "would-limit" },
    "let through, because the rule is in monitor mode; in enforce mode it is refused with 429: 192.0.2.7 asked more often than a rule of limits.requests allows. The cache had the answer.",
  ],
])("a limit of requests: %j", (more, said) => {
  expect(tell({ reason: "request-rate", ...more })).toBe(said);
});

test.each<[Partial<RecordedRequest>, string]>([
  [{ cache: "miss", backendSeconds: 0.1 }, "so the backend was asked."],
  [{ cache: "miss" }, "it came from the site's files, or was shared with another request."],
  [{ cache: "stale" }, "no longer fresh and could still be sent."],
  [
    { cache: "stale", backendSeconds: 1 },
    "no longer fresh; it was sent because the backend failed.",
  ],
  [{ cache: "pass" }, "It was passed on to the backend, and not stored."],
  [
    { cache: "pass", backendSeconds: 0.1 },
    "It was passed on to the backend, and not stored: what the visitor sent, a rule, or the backend's answer keeps it out of the cache. Cache-Status of the answer says which (`fwd` and `detail`).",
  ],
  [{ cache: "blocked", status: 403 }, "The cache was not asked."],
  [
    { cache: "none", status: 301 },
    "not asked: a redirect, or what the visitor has is still right.",
  ],
  [{ cache: "none", status: 404 }, "not asked: it was refused, or nothing is there."],
  [{ cache: "none", status: 503 }, "not asked: it could not be answered."],
  [{ cache: "none", status: 204 }, "not asked: it was answered without it."],
  [{ cache: "warm" }, "The cache says warm."],
  [
    { status: 499 },
    "The cache had the answer. The visitor left, or was cut off, before all of it was sent.",
  ],
])("%j: %s", (more, end) => {
  const told = tell(more);
  expect(told.slice(-end.length)).toBe(end);
});

test("nobody was judged, or a newer release judged", () => {
  const nobody = { verdict: "none", reason: "", cache: "none", status: 400 };
  expect(tell(nobody)).toMatch(
    /^answered before anything was decided about the visitor\. The cache/,
  );
  expect(tell({ verdict: "slow", reason: "too-many" })).toBe(
    "slow too-many. The cache had the answer.",
  );
});
