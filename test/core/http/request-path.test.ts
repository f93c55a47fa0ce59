// Request targets: what is routed, what is looked up, what never leaves the root.

import fc from "fast-check";
import { expect, test } from "vitest";
import { decodePath, parseTarget } from "../../../src/core/http/request-path.ts";

test.each([
  ["/", { rawPath: "/", rawQuery: "", authority: undefined }],
  ["/a?b=c?d", { rawPath: "/a", rawQuery: "b=c?d", authority: undefined }],
  ["http://Example.com:80/x?y", { rawPath: "/x", rawQuery: "y", authority: "Example.com:80" }],
  ["https://example.com?q", { rawPath: "/", rawQuery: "q", authority: "example.com" }],
])("%s", (target, parsed) => {
  expect(parseTarget(target)).toEqual(parsed);
});

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
