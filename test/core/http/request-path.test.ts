// Request targets: what is routed, what is looked up, what never leaves the root.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  decodePath,
  isServable,
  parseTarget,
  sentPath,
} from "../../../src/core/http/request-path.ts";

test.each([
  ["/", { rawPath: "/", rawQuery: "", hasLoneMark: false, authority: undefined }],
  ["/a?b=c?d", { rawPath: "/a", rawQuery: "b=c?d", hasLoneMark: false, authority: undefined }],
  [
    "http://Example.com:80/x?y",
    { rawPath: "/x", rawQuery: "y", hasLoneMark: false, authority: "Example.com:80" },
  ],
  [
    "https://example.com?q",
    { rawPath: "/", rawQuery: "q", hasLoneMark: false, authority: "example.com" },
  ],
  ["/a?", { rawPath: "/a", rawQuery: "", hasLoneMark: true, authority: undefined }],
  [
    "http://example.com?",
    { rawPath: "/", rawQuery: "", hasLoneMark: true, authority: "example.com" },
  ],
])("%s", (target, parsed) => {
  expect(parseTarget(target)).toEqual(parsed);
});

test.each(["/", "/a", "/a?", "/a??", "/a?b=c", "http://example.com?"])(
  "%s is asked as sent",
  (target) => {
    const parsed = parseTarget(target);
    const sent = target.replace("http://example.com", "/");
    expect(parsed && sentPath(parsed)).toBe(sent);
  },
);

test.each(["*", "example.com:443", "", "ftp://x/", "a/b"])("%j has no path", (target) => {
  expect(parseTarget(target)).toBeUndefined();
});

test.each([
  ["/", ""],
  ["/a/b.html", "a/b.html"],
  ["/a%20b/%C3%A9", "a b/é"],
  ["/a/./b/../c", "a/c"],
  ["/a/..", ""],
  ["/a/b/..", "a/"],
  ["/a/.", "a/"],
  ["/%2e%2e/x", undefined],
  ["/../etc/passwd", undefined],
  ["/a/../../x", undefined],
  ["/a%2Fb", undefined],
  ["/a%00", undefined],
  ["/%", undefined],
  ["/%ff", undefined],
])("%s decodes to %j", (raw, decoded) => {
  expect(decodePath(raw)).toBe(decoded);
});

test("no decoded path has a dot segment or a NUL", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom("a", ".", "..", "%2e", "%2E%2e", "/", "%2f", "%00", "%c3%a9", "\\"),
        { maxLength: 12 },
      ),
      (parts) => {
        const decoded = decodePath(`/${parts.join("")}`);
        if (decoded === undefined) return;
        expect(decoded.split("/").some((segment) => segment === "." || segment === "..")).toBe(
          false,
        );
        expect(decoded).not.toContain("\0");
      },
    ),
  );
});

const parts = ["a", "b.c", ".", "..", ".d", ".well-known", "/", "//", "\\", "\0", "~", "\u00e9"];
const paths = fc.array(fc.constantFrom(...parts), { maxLength: 8 }).map((all) => all.join(""));

test("a path with an encoded character names the same as without", () => {
  fc.assert(
    fc.property(paths, (path) => {
      const plain = decodePath(`/x/${path}/z`);
      expect(decodePath(`/%78/${path}/z`)).toBe(plain);
      expect(decodePath(`/x/${path}/%7a`)).toBe(plain);
    }),
  );
});

test("what is hidden or empty names no file, but for what is below /.well-known/", () => {
  fc.assert(
    fc.property(paths, (path) => {
      const segments = path.split("/");
      const named = path.endsWith("/") || path === "" ? segments.slice(0, -1) : segments;
      const [first, ...rest] = named;
      const isNamed = (segment: string): boolean => segment !== "" && segment[0] !== ".";
      const isFirst = first === undefined || first === ".well-known" || isNamed(first);
      expect(isServable(path)).toBe(isFirst && rest.every(isNamed));
    }),
    { numRuns: 1_000 },
  );
});
