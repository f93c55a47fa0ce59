// Which token is the session's own: told only where it is certain.

import { expect, test } from "vitest";
import { isSessionToken, ownTokenId } from "../../src/console/own-token.ts";
import type { ApiSession } from "../../src/wire/customer/session.ts";
import type { ApiToken } from "../../src/wire/customer/token.ts";

const session: ApiSession = {
  username: "anna",
  user_id: 5,
  customer_id: 3,
  role: "owner",
  domains: null,
  may_read_logs: true,
  when_expires: "2026-11-28T20:00:00.000Z",
};
const own: ApiToken = {
  id: 12,
  name: "session of the console",
  role: "owner",
  domains: null,
  username: "anna",
  when_created: "2026-11-28T08:00:00.000Z",
  when_expires: "2026-11-28T20:00:00.000Z",
  when_last_used: null,
};

test.each<readonly [string, Partial<ApiToken>]>([
  ["another user", { username: "berta" }],
  ["another role", { role: "write" }],
  ["some domains", { domains: ["www.example.com"] }],
  ["another end", { when_expires: "2026-11-28T20:00:00.001Z" }],
  ["no end", { when_expires: null }],
])("a token of %s is another one", (_what, differs) => {
  const other = { ...own, id: 13, ...differs };
  expect(ownTokenId(session, [other, own])).toBe(12);
  expect(ownTokenId(session, [other])).toBeUndefined();
});

test("two that could be it: neither is said to be", () => {
  expect(ownTokenId(session, [own, { ...own, id: 13 }])).toBeUndefined();
});

test("the order of domains does not count", () => {
  const domains = ["a.example.com", "b.example.com"];
  const token = { ...own, domains: domains.toReversed() };
  expect(ownTokenId({ ...session, domains }, [token])).toBe(12);
});

test("sessions are told by the name that central gives them", () => {
  expect(isSessionToken(own)).toBe(true);
  expect(isSessionToken({ name: "deploy of the shop" })).toBe(false);
});
