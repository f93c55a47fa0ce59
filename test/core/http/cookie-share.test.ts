// When it is told that many requests are passed for their cookies, and when that is taken back.

import { expect, it } from "vitest";
import {
  cookieWindowMs,
  judgeCookies,
  passedMin,
  type CookieWindow,
} from "../../../src/core/http/cookie-share.ts";

const start: CookieWindow = { sinceMs: 1_000, start: { requests: 1_000, passed: 500 } };
const after = (requests: number, passed: number, ms = 1) =>
  judgeCookies(start, { requests: 1_000 + requests, passed: 500 + passed }, 1_000 + ms);

it.each<[string, number, number, boolean]>([
  ["none", 0, 0, false],
  ["too few", passedMin - 1, passedMin - 1, false],
  ["just enough, all of them", passedMin, passedMin, true],
  ["just a quarter", 4 * passedMin, passedMin, true],
  ["less than a quarter", 4 * passedMin + 1, passedMin, false],
])("%s", (_name, requests, passed, isTold) => {
  expect(after(requests, passed).tell).toEqual(isTold ? { requests, passed } : undefined);
  expect(after(requests, passed).isSettled).toBe(false);
  const over = after(requests, passed, cookieWindowMs);
  expect(over.tell).toEqual(isTold ? { requests, passed } : undefined);
  expect(over.isSettled).toBe(!isTold);
});

it("counts a window from its start, and the next from its end", () => {
  expect(after(9, 9, cookieWindowMs - 1).window).toBe(start);
  const next = { sinceMs: 1_000 + cookieWindowMs, start: { requests: 1_009, passed: 509 } };
  expect(after(9, 9, cookieWindowMs).window).toEqual(next);
});

it("what was counted before, or by a counter that began anew, is of no window", () => {
  const counts = { requests: 10_000, passed: 9_000 };
  const begun = { window: { sinceMs: 5, start: counts }, tell: undefined, isSettled: false };
  expect(judgeCookies(undefined, counts, 5)).toEqual(begun);
  const future = { sinceMs: 1, start: { requests: 10_001, passed: 0 } };
  expect(judgeCookies(future, counts, 5)).toEqual(begun);
  expect(judgeCookies({ ...future, start: { requests: 0, passed: 9_001 } }, counts, 5)).toEqual(begun); // prettier-ignore
});
