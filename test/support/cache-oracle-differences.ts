// Where http-cache-semantics and src/core/http decide differently, and why: one at a time, by the section that they are about.

import { httpDate, type Decided, type Fields, type Scene } from "./cache-oracle.ts";

/** What the package leaves out of RFC 9111 or reads in another way, and what we are stricter in on purpose. */
export type Difference = {
  readonly section: string;
  readonly what: string;
  readonly applies: (scene: Scene) => boolean;
  /** A scene with this difference alone. */
  readonly example: Partial<Scene>;
  readonly ours: Partial<Decided>;
  readonly theirs: Partial<Decided>;
};

const control = (fields: Fields): string => fields["cache-control"] ?? "";
const says = (fields: Fields, ...names: readonly string[]): boolean =>
  names.some((name) => new RegExp(`(?:^|, )${name}(?:=|,|$)`, "i").test(control(fields)));
const by = (value: string, more: Fields = {}) => ({
  response: { "cache-control": value, ...more },
});
const asking = (value: string) => ({ second: { "cache-control": value } });
const fresh = { serves: "fresh" } as const;
const unstored = { isStored: false } as const;
const fetched = { isStored: true, serves: "no" } as const;

export const differences: readonly Difference[] = [
  {
    section: "RFC 9111 §3",
    what: "the package stores statuses of a list of its own; any final status may be stored that says how long it is fresh",
    applies: ({ status }) => status === 418,
    example: { status: 418 },
    ours: fresh,
    theirs: unstored,
  },
  {
    section: "RFC 9110 §15.4.5",
    what: "a 304 says that a GET would have succeeded; the package has other statuses confirmed by it too",
    applies: ({ status, response }) =>
      ![200, 203].includes(status) && ("etag" in response || "last-modified" in response),
    example: { status: 404, laterS: 60, ...by("max-age=60", { etag: '"a"' }) },
    ours: { ...fetched, conditions: [] },
    theirs: { ...fetched, conditions: ["if-none-match"] },
  },
  {
    section: "RFC 9110 §8.8.2",
    what: "a Last-Modified that is no date is no validator; the package sends it back",
    applies: ({ response }) => response["last-modified"] === "long ago",
    example: { laterS: 60, ...by("max-age=60", { "last-modified": "long ago" }) },
    ours: { ...fetched, conditions: [] },
    theirs: { ...fetched, conditions: ["if-modified-since"] },
  },
  {
    section: "RFC 9111 §7.3",
    what: "nothing with Set-Cookie is stored without a rule that strips it; the package stores it, and serves it where it is public",
    applies: ({ response }) => "set-cookie" in response,
    example: by("public, max-age=60", { "set-cookie": "a=1" }),
    ours: unstored,
    theirs: fresh,
  },
  {
    section: "RFC 9111 §3",
    what: "an answer to a visitor's cookies is for all only where the origin gives it a lifetime or calls it public; the package does not ask for cookies",
    applies: ({ first }) => "cookie" in first,
    example: { first: { cookie: "visitor=1" }, response: { etag: '"a"' } },
    ours: unstored,
    theirs: fetched,
  },
  {
    section: "RFC 9111 §5.4",
    what: "Pragma means nothing in a response; to the package it is Cache-Control: no-cache",
    applies: ({ response }) => "pragma" in response && !("cache-control" in response),
    example: { response: { pragma: "no-cache", expires: httpDate(60) } },
    ours: fresh,
    theirs: unstored,
  },
  {
    section: "RFC 9111 §5.4",
    what: "Pragma of a request is for caches that know no Cache-Control; the package hears it beside one",
    applies: ({ second }) => "pragma" in second && "cache-control" in second,
    example: { second: { pragma: "no-cache", "cache-control": "max-age=600" } },
    ours: fresh,
    theirs: fetched,
  },
  {
    section: "RFC 9111 §5.2",
    what: "the case of a directive means nothing; the package knows small letters alone",
    applies: ({ response }) => control(response).includes("Max-Age"),
    example: by("Max-Age=60"),
    ours: fresh,
    theirs: unstored,
  },
  {
    section: "RFC 9111 §4.2.1",
    what: "a lifetime that is no number is none; the package takes the number it begins with",
    applies: ({ response }) => /max-age=(?: 60|60x|-1)/.test(control(response)),
    example: by("max-age=60x"),
    ours: unstored,
    theirs: fresh,
  },
  {
    section: "RFC 9111 §4.2.1",
    what: "an empty lifetime is none; the package goes on to Expires",
    applies: ({ response }) => /max-age=(?:,|$)/.test(control(response)),
    example: by("max-age=", { expires: httpDate(60) }),
    ours: unstored,
    theirs: fresh,
  },
  {
    section: "RFC 9111 §5.1",
    what: "an Age that is no single number is to be passed over; to us it is a sign of confusion, and what has it is old",
    applies: ({ response }) => /\D/.test(response["age"] ?? ""),
    example: by("max-age=60", { age: "x" }),
    ours: unstored,
    theirs: fresh,
  },
  {
    section: "RFC 9111 §5.2.2.2",
    what: "must-revalidate speaks of stale responses; the package never uses what has it without asking",
    applies: ({ response }) => says(response, "must-revalidate"),
    example: by("max-age=60, must-revalidate"),
    ours: fresh,
    theirs: fetched,
  },
  {
    section: "RFC 9111 §5.2.2.8",
    what: "proxy-revalidate speaks of stale responses; to the package nothing that has it is fresh",
    applies: ({ response }) => says(response, "proxy-revalidate"),
    example: by("max-age=60, proxy-revalidate"),
    ours: fresh,
    theirs: unstored,
  },
  {
    section: "RFC 9111 §4.2.4",
    what: "no-cache and s-maxage forbid stale answers; the package gives them to max-stale and by RFC 5861",
    applies: ({ response, second }) =>
      says(response, "no-cache", "s-maxage") &&
      (says(second, "max-stale") || says(response, "stale-while-revalidate", "stale-if-error")),
    example: { laterS: 61, ...by("s-maxage=60"), ...asking("max-stale=10") },
    ours: fetched,
    theirs: { serves: "stale" },
  },
  {
    section: "RFC 9111 §5.2.2.3",
    what: "must-understand lifts the no-store beside it; the package does not know it",
    applies: ({ response }) => says(response, "must-understand"),
    example: by("max-age=60, must-understand, no-store"),
    ours: fresh,
    theirs: unstored,
  },
  {
    section: "RFC 9111 §4.1",
    what: "what varies by everything answers nobody and is not stored; the package leaves that to whoever stores",
    applies: ({ response }) => response["vary"] === "*",
    example: by("max-age=60", { vary: "*", etag: '"a"' }),
    ours: unstored,
    theirs: fetched,
  },
  {
    section: "RFC 5861 §3, §4",
    what: "what says no lifetime does not begin to be stale; the package serves it stale from the first moment",
    applies: ({ response }) =>
      says(response, "stale-while-revalidate", "stale-if-error") &&
      !says(response, "max-age", "s-maxage") &&
      !("expires" in response),
    example: by("stale-while-revalidate=60"),
    ours: unstored,
    theirs: { serves: "stale, and refreshes" },
  },
  {
    section: "RFC 5861 §3",
    what: "what is used stale within its time is refreshed; not by the package where max-stale would do as well",
    applies: ({ response, second }) =>
      says(response, "stale-while-revalidate") && says(second, "max-stale"),
    example: { laterS: 61, ...by("max-age=60, stale-while-revalidate=60"), ...asking("max-stale") },
    ours: { serves: "stale, and refreshes" },
    theirs: { serves: "stale" },
  },
  {
    section: "RFC 9111 §5.2.1.7",
    what: "only-if-cached asks for no fetch; the package does not know it",
    applies: ({ second }) => says(second, "only-if-cached"),
    example: {
      laterS: 61,
      ...by("max-age=60, stale-while-revalidate=60"),
      ...asking("only-if-cached"),
    },
    ours: { serves: "stale" },
    theirs: { serves: "stale, and refreshes" },
  },
  {
    section: "RFC 5861 §4",
    what: "a request may allow stale answers in place of errors; the package does not ask it",
    applies: ({ second }) => says(second, "stale-if-error"),
    example: { laterS: 61, ...asking("stale-if-error=60") },
    ours: { ...fetched, standsIn: true },
    theirs: { ...fetched, standsIn: false },
  },
  {
    section: "RFC 9111 §5.2.1.4",
    what: "no-cache asks for an answer that was confirmed; the package gives a stored one in place of an error",
    applies: ({ second }) =>
      says(second, "no-cache") || ("pragma" in second && !("cache-control" in second)),
    example: asking("no-cache"),
    ours: { ...fetched, standsIn: false },
    theirs: { ...fetched, standsIn: true },
  },
  {
    section: "RFC 5861 §4",
    what: "an error that is stored is no better than the error that it would stand in for",
    applies: ({ status }) => status >= 500,
    example: { status: 501, laterS: 61, ...by("max-age=60, stale-if-error=60") },
    ours: { ...fetched, standsIn: false },
    theirs: { ...fetched, standsIn: true },
  },
];
