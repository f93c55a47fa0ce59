// What answers a challenge: the token of the host, for as long as it is open, and nothing else.

import { expect, test } from "vitest";
import { challengeAnswer, challengesOf } from "../../../src/core/acme/open-challenges.ts";
import { parseTarget } from "../../../src/core/http/request-path.ts";

const told = [
  { host: "a.example", token: "t-1", keyAuthorization: "t-1.key", untilMs: 1_000 },
  { host: "b.example", token: "t-2", keyAuthorization: "t-2.key", untilMs: 1_000 },
];
const path = "/.well-known/acme-challenge/";

test("each host has its own", () => {
  expect([...(challengesOf("a.example", told) ?? [])]).toEqual([
    ["t-1", { keyAuthorization: "t-1.key", untilMs: 1_000 }],
  ]);
  expect(challengesOf("c.example", told)).toBeUndefined();
});

test.each([
  ["the token", "GET", `${path}t-1`, 999, "t-1.key"],
  ["its head", "HEAD", `${path}t-1`, 999, "t-1.key"],
  ["the token with a query", "GET", `${path}t-1?a=1`, 999, "t-1.key"],
  ["the whole URL", "GET", `http://a.example${path}t-1`, 999, "t-1.key"],
  ["one that is over", "GET", `${path}t-1`, 1_000, undefined],
  ["another host's", "GET", `${path}t-2`, 999, undefined],
  ["more than the token", "GET", `${path}t-1/`, 999, undefined],
  ["a token that is encoded", "GET", `${path}t%2D1`, 999, undefined],
  ["no token", "GET", path, 999, undefined],
  ["another path", "GET", "/t-1", 999, undefined],
  ["a write", "POST", `${path}t-1`, 999, undefined],
  ["no target", "OPTIONS", "*", 999, undefined],
])("%s", (_, method, url, nowMs, answer) => {
  const open = challengesOf("a.example", told) ?? new Map();
  expect(challengeAnswer(open, method, parseTarget(url), nowMs)).toBe(answer);
});
