// Preconditions in the order of RFC 9110 §13.2.2, and ranges.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { formatHttpDate } from "../../../src/core/http/http-date.ts";
import { precondition, selectRange } from "../../../src/core/http/conditional.ts";

const modifiedMs = Date.UTC(2026, 0, 1) + 345;
const at = formatHttpDate(modifiedMs);
const earlier = formatHttpDate(modifiedMs - 1_000);
const strong = { etag: '"a"', modifiedMs };
const weak = { etag: 'W/"a"', modifiedMs };

describe("precondition", () => {
  it.each<[readonly Field[], typeof strong, string]>([
    [[], strong, "proceed"],
    [[["If-None-Match", '"a"']], strong, "not-modified"],
    [[["If-None-Match", 'W/"a"']], strong, "not-modified"],
    [[["If-None-Match", '"b", W/"a"']], weak, "not-modified"],
    [[["If-None-Match", "*"]], strong, "not-modified"],
    [
      [
        ["If-None-Match", '"b"'],
        ["If-Modified-Since", at],
      ],
      strong,
      "proceed",
    ],
    [[["If-Modified-Since", at]], strong, "not-modified"],
    [[["If-Modified-Since", earlier]], strong, "proceed"],
    [[["If-Modified-Since", "yesterday"]], strong, "proceed"],
    [[["If-Match", '"a"']], strong, "proceed"],
    [[["If-Match", '"a"']], weak, "failed"],
    [
      [
        ["If-Match", '"b"'],
        ["If-None-Match", '"a"'],
      ],
      strong,
      "failed",
    ],
    [
      [
        ["If-Match", "*"],
        ["If-Unmodified-Since", earlier],
      ],
      strong,
      "proceed",
    ],
    [[["If-Unmodified-Since", earlier]], strong, "failed"],
    [
      [
        ["If-Unmodified-Since", at],
        ["If-None-Match", '"a"'],
      ],
      strong,
      "not-modified",
    ],
  ])("%j of %j: %s", (request, validators, expected) => {
    expect(precondition(request, validators)).toBe(expected);
  });
});

describe("range", () => {
  const later = modifiedMs + 10_000;
  it.each<[string, number, unknown]>([
    ["bytes=0-0", 10, { first: 0, last: 0 }],
    ["bytes=5-", 10, { first: 5, last: 9 }],
    ["bytes=5-99", 10, { first: 5, last: 9 }],
    ["bytes=-3", 10, { first: 7, last: 9 }],
    ["bytes=-99", 10, { first: 0, last: 9 }],
    ["BYTES=1-2", 10, { first: 1, last: 2 }],
    ["bytes=10-", 10, "unsatisfiable"],
    ["bytes=-0", 10, "unsatisfiable"],
    ["bytes=0-", 0, "unsatisfiable"],
    ["bytes=-5", 0, "unsatisfiable"],
    ["bytes=5-4", 10, undefined],
    ["bytes=0-1,3-4", 10, undefined],
    ["bytes=-", 10, undefined],
    ["items=0-1", 10, undefined],
    ["bytes=+1-2", 10, undefined],
  ])("%s of %d bytes", (range, size, expected) => {
    expect(selectRange([["Range", range]], strong, size, later)).toEqual(expected);
  });

  it.each<[string, typeof strong, number, boolean]>([
    ['"a"', strong, later, true],
    ['"b"', strong, later, false],
    ['W/"a"', weak, later, false],
    [at, strong, later, true],
    [earlier, strong, later, false],
    [at, strong, modifiedMs + 500, false],
    ["nonsense", strong, later, false],
  ])("If-Range %s", (ifRange, validators, nowMs, applies) => {
    const fields: readonly Field[] = [
      ["Range", "bytes=0-1"],
      ["If-Range", ifRange],
    ];
    expect(selectRange(fields, validators, 10, nowMs) !== undefined).toBe(applies);
  });

  it("is always within the representation", () => {
    const position = fc.option(fc.nat(30).map(String), { nil: "" });
    fc.assert(
      fc.property(position, position, fc.nat(20), (from, to, size) => {
        const range = selectRange([["Range", `bytes=${from}-${to}`]], strong, size, later);
        if (range === undefined || range === "unsatisfiable") return;
        expect(range.first).toBeGreaterThanOrEqual(0);
        expect(range.last).toBeGreaterThanOrEqual(range.first);
        expect(range.last).toBeLessThan(size);
      }),
    );
  });
});
