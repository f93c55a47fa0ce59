// Path and name patterns: rows of data, a slow reference, and the time that hostile patterns take.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  canonicalName,
  canonicalPath,
  compileNamePattern,
  compilePathPattern,
  pathPatternFault,
} from "../../../src/core/serving/path-pattern.ts";
import { cpuMs } from "../../support/cpu-time.ts";

function matches(pattern: string, path: string): boolean {
  return compilePathPattern(pattern).matches(canonicalPath(path));
}

test.each([
  ["/img/**", "/img/a.png", true],
  ["/img/**", "/img/a/b.png", true],
  ["/img/**", "/img/", true],
  ["/img/**", "/img", false],
  ["/img/**", "/image/a.png", false],
  ["/img/*", "/img/a.png", true],
  ["/img/*", "/img/a/b.png", false],
  ["/img/*", "/img/", true],
  ["/*/edit", "/7/edit", true],
  ["/*/edit", "/7/8/edit", false],
  ["**", "/anything/at all", true],
  ["/**", "/", true],
  ["/**/*.png", "/a.png", true],
  ["/**/*.png", "/a/b/c.png", true],
  ["/**/*.png", "/a/b/c.png/d", false],
  ["**.png", "/a/b.png", true],
  ["/a/**/b", "/a/b", true],
  ["/a/**/b", "/a/x/y/b", true],
  ["/a/**/b", "/a/xb", false],
  ["/a/**/**/b", "/a/b", true],
  ["/a/**/b/**/c", "/a/b/b/x/c", true],
  ["/exact", "/exact", true],
  ["/exact", "/exact/", false],
  ["/Exact", "/exact", false],
  ["/a.c", "/abc", false],
  ["/a+(b)", "/a+(b)", true],
  ["/a*b*c", "/a-b-b-c", true],
  ["/a*b*c", "/a-b/c", false],
])("%s on %s: %s", (pattern, path, expected) => {
  expect(matches(pattern, path)).toBe(expected);
});

describe("pattern and path meet in one form", () => {
  test.each([
    ["/account/**", "/%61ccount/x", true],
    ["/account/**", "/public/../account/x", true],
    ["/account/**", "/public/%2e%2e/account/x", true],
    ["/account/**", "//account///x", true],
    ["/account/**", "/account%2Fx", false], // An encoded slash is not a slash.
    ["/account/**", "/%2561ccount/x", false], // Decoded once, never twice.
    ["/a%2fb", "/a%2Fb", true],
    ["/a%20b", "/a%20b", true],
    ["/%2A", "/*", true],
    ["/%2A", "/x", false], // An encoded star is no wildcard.
    ["/café/*", "/caf%C3%A9/x", true],
    ["/café/*", Buffer.from("/café/x").toString("latin1"), true],
    ["/caf%c3%a9", "/caf%C3%A9", true],
    ["/%zz", "/%zz", true],
  ])("%s on %s: %s", (pattern, path, expected) => {
    expect(matches(pattern, path)).toBe(expected);
  });

  test.each([
    ["/a/./b", "/a/b"],
    ["/a/b/..", "/a/"],
    ["/a/.", "/a/"],
    ["/../../x", "/x"],
    ["/..", "/"],
    ["/a//", "/a/"],
    ["/a/..b/.c", "/a/..b/.c"],
    ["/plain/path", "/plain/path"],
  ])("%s is %s", (raw, canonical) => {
    expect(canonicalPath(raw)).toBe(canonical);
  });

  test("the canonical form is a fixed point", () => {
    const path = fc.string({
      unit: fc.constantFrom("/", ".", "a", "%2e", "%2F", "%25", "é"),
      maxLength: 20,
    });
    fc.assert(
      fc.property(path, (tail) => {
        const once = canonicalPath(`/${tail}`);
        expect(canonicalPath(once)).toBe(once);
      }),
    );
  });
});

/** By the definition: tries every length of every wildcard. */
function slowMatches(pattern: string, path: string): boolean {
  if (pattern === "") return path === "";
  if (pattern.startsWith("/**/")) {
    if (!path.startsWith("/")) return false;
    const rest = pattern.slice(3);
    for (let at = 0; at < path.length; at++) {
      if (path[at] === "/" && slowMatches(rest, path.slice(at))) return true;
    }
    return false;
  }
  const stars = /^\*+/.exec(pattern)?.[0].length ?? 0;
  if (stars === 0) return pattern[0] === path[0] && slowMatches(pattern.slice(1), path.slice(1));
  for (let length = 0; length <= path.length; length++) {
    if (slowMatches(pattern.slice(stars), path.slice(length))) return true;
    if (stars === 1 && path[length] === "/") return false;
  }
  return false;
}

/** Slashes are merged on both sides before anything is compared; three stars are refused. */
function merged(text: string): string {
  return text.replaceAll(/\/{2,}/g, "/").replaceAll(/\*{3,}/g, "**");
}

test("patterns match what the definition says", () => {
  const pieces = fc.constantFrom("a", "b", "/", "/", "*", "**", "/**/", "/*/", "ab");
  const pattern = fc.array(pieces, { maxLength: 8 }).map((parts) => merged(`/${parts.join("")}`));
  const path = fc
    .string({ unit: fc.constantFrom("a", "b", "/"), maxLength: 10 })
    .map((tail) => merged(`/${tail}`));
  fc.assert(
    fc.property(pattern, path, (p, t) => {
      expect([p, t, compilePathPattern(p).matches(t)]).toEqual([p, t, slowMatches(p, t)]);
    }),
    { numRuns: 3_000 },
  );
});

test("long patterns, whose states fill several words, match what the definition says", () => {
  const filler = fc.integer({ min: 20, max: 40 }).map((length) => "a".repeat(length));
  const piece = fc.oneof(filler, fc.constantFrom("*", "**", "/", "/**/", "b"));
  const pattern = fc
    .array(piece, { minLength: 3, maxLength: 7 })
    .map((parts) => merged(`/*${parts.join("")}*`));
  fc.assert(
    fc.property(
      pattern,
      fc.infiniteStream(fc.constantFrom("", "a", "b", "/", "b/a")),
      (p, fills) => {
        const text = merged(p.replaceAll(/\*+/g, () => fills.next().value ?? ""));
        for (const t of [text, text.slice(0, -1), text.replace("aaa", "aba")]) {
          expect([p, t, compilePathPattern(p).matches(t)]).toEqual([p, t, slowMatches(p, t)]);
        }
      },
    ),
    { numRuns: 300 },
  );
});

test("literal text of any bytes matches itself only", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 20 }), (text) => {
      const path = canonicalPath(`/${encodeURIComponent(text)}`);
      const pattern = `/${encodeURIComponent(text).replaceAll("*", "%2A")}`.replaceAll("%2E", ".");
      const { literal } = compilePathPattern(pattern);
      if (text !== "." && text !== "..") expect(literal).toBe(path);
    }),
  );
});

test("no pattern takes long", () => {
  const path = `/${"a".repeat(8_190)}`;
  const hostile = [`/${"*a".repeat(250)}b`, `/${"**a".repeat(150)}*b`, `/**${"a".repeat(500)}*b`];
  const began = cpuMs();
  for (const pattern of hostile) expect(compilePathPattern(pattern).matches(path)).toBe(false);
  // Ends with another byte at once; the middle is what costs.
  for (const pattern of hostile)
    expect(compilePathPattern(`${pattern}*`).matches(path)).toBe(false);
  expect(cpuMs(began)).toBeLessThan(500);
});

test.each([
  ["img/**", /must start/],
  ["", /must start/],
  ["/a?b=1", /must be a path/],
  ["/a#b", /must be a path/],
  ["/a b", /must be a path/],
  ["/a\r\nb", /must be a path/],
  ["/a***", /three stars/],
  ["/a/../b", /segments/],
  [`/${"a".repeat(600)}`, /longer/],
])("%j is refused", (pattern, reason) => {
  expect(pathPatternFault(pattern)).toMatch(reason);
});

test.each(["/", "**", "*", "/img/**", "/a.b/..c", "/café"])("%s is accepted", (pattern) => {
  expect(pathPatternFault(pattern)).toBeUndefined();
});

test.each([
  ["utm_*", "utm_source", true],
  ["utm_*", "utm%5Fsource", true],
  ["utm_*", "%75tm_", true],
  ["utm_*", "xutm_a", false],
  ["*id", "gcl/id", true],
  ["a b", "a+b", true],
  ["a b", "a%20b", true],
  ["größe", "gr%C3%B6%C3%9Fe", true],
  ["*", "", true],
  ["id", "ID", false],
])("name pattern %s on %s: %s", (pattern, name, expected) => {
  expect(compileNamePattern(pattern).matches(canonicalName(name))).toBe(expected);
});
