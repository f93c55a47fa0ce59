// Patterns that FTS5 takes and that would clear nothing or more than was meant: what excludes each other, quotes that are none; and what is suggested for them
// and for the paths of other languages.

import fc from "fast-check";
import { expect, test } from "vitest";
import { urlOf } from "../../../src/core/patterns/index-schema.ts";
import { patternFault } from "../../../src/core/patterns/pattern-fault.ts";
import {
  directlyIn,
  exactUrl,
  extension,
  under,
} from "../../../src/core/patterns/pattern-recipes.ts";
import { entryOf, TextIndex } from "../../support/text-index.ts";

test.each([
  "url:z2fa* AND url:z2fab AND ext:png",
  "(url:z2fa* OR url:z2fb) AND (url:z2fac* OR url:z2fd) AND url:z2face",
  "ext:png NOT ext:jpg AND kind:stat* kind:STATIC",
  "param:az3d1 AND param:bz3d2 AND {url dir}:z2fa AND {url dir}:z2fb",
  "l’été",
  '"“blog”"',
])("%j is valid", (pattern) => {
  expect(patternFault(pattern)).toBe(undefined);
});

const nothing = undefined;
test.each<[pattern: string, position: number, says: string, suggestion: string | undefined]>([
  // No entry has both.
  ["/a && /b", 0, '"/"', "url:z2fa OR url:z2fb"],
  ["/a AND /b", 0, '"/"', "url:z2fa OR url:z2fb"],
  ["*.png AND *.jpg", 0, "* without a word", "ext:png OR ext:jpg"],
  ["url:z2fa AND url:z2fb", 17, "at once", "url:z2fa OR url:z2fb"],
  ["url:z2fa url:z2fa url:z2fb", 22, "at once", "url:z2fa OR url:z2fb"],
  ["dir:z2fcssz2f* AND dir:z2fjsz2f", 23, "at once", "dir:z2fcssz2f* OR dir:z2fjsz2f"],
  ["url:z2fab* AND url:z2fa", 19, "z2fab* and for z2fa at once", "url:z2fab* OR url:z2fa"],
  [
    "(ext:png OR ext:jpg) AND (ext:css OR ext:js)",
    30,
    "at once",
    "ext:png OR ext:jpg OR ext:css OR ext:js",
  ],
  ["x OR y NOT (ext:png AND kind:static AND ext:jpg)", 44, "at once", nothing],
  ["ext:png AND mime:image AND ext:jpg", 31, "at once", nothing],
  ["kind:static AND kind:GENERATED", 21, "at once", nothing],
  ["ext:(png AND (jpg))", 14, "at once", nothing],
  // Quotes that are none.
  ["“blog post”", 0, "no quote", '"blog post"'],
  ["path:“blog post” OR x", 5, "no quote", 'path:"blog post" OR x'],
  ["x OR «blog»", 5, "no quote", 'x OR "blog"'],
  ["path:‘blog post’", 5, "no quote", 'path:"blog post"'],
  // Exact columns, and other languages of patterns.
  ["dir:/css/*", 4, '"/"', "url:z2fcssz2f*"],
  ["dir:/css*", 4, '"/"', "dir:z2fcss*"],
  ["dir:/a*/b", 4, '"/"', nothing],
  ["url:z2fblog/", 11, '"/"', "url:z2fblogz2f OR url:z2fblogz2findexz2ehtml"],
  ["url:z2fblog/*", 11, '"/"', "url:z2fblogz2f*"],
  ["url:'/blog'", 4, '"\'"', "url:z2fblog"],
  ['url:"/blog"', 4, "exact words", "url:z2fblog"],
  ['url:"/blog/*" OR ext:png', 4, "exact words", "url:z2fblogz2f* OR ext:png"],
  ['param:"page=2"', 6, "exact words", "param:pagez3d2"],
  ["'/blog'", 0, '"\'"', "url:z2fblog"],
  ["/blog/*?page=2", 0, '"/"', "url:z2fblogz2f* AND param:pagez3d2"],
  ["/*?page=2", 0, '"/"', "param:pagez3d2"],
  ["ext:*", 4, "has * without", nothing],
  ["ext:.pn*", 4, '"."', "ext:pn*"],
  ["/a|/b", 0, '"/"', nothing],
  ["/x,/y", 0, '"/"', nothing],
  ["^/blog", 1, '"/"', nothing],
  ["^/blog$", 1, '"/"', nothing],
  ["/blog$", 0, '"/"', nothing],
  ["/a.(png|jpg)", 0, '"/"', nothing],
])("%j is refused at %d", (pattern, position, says, suggestion) => {
  const fault = patternFault(pattern);
  expect(fault?.message).toContain(says);
  expect(fault?.position).toBe(position);
  expect(fault?.suggestion).toBe(suggestion);
});

test("what is refused because no entry has both matches none, and the rest may match", () => {
  const entries = [
    "/a",
    "/ab",
    "/a/b.png",
    "/a/b.css",
    "/b/a.png",
    "file a/b.png",
    "file b.css",
    "/a/b/",
  ];
  using index = new TextIndex(entries.map(entryOf));
  const exact = entries.map(entryOf).map((entry) => urlOf(entry));
  const term = fc.oneof(
    fc.constantFrom(...exact).map(exactUrl),
    fc.constantFrom("/", "/a", "/a/", "/b").map(under),
    fc.constantFrom("/", "/a/", "/b/").map(directlyIn),
    fc.constantFrom("png", "css").map(extension),
    fc.constantFrom("kind:static", "kind:gen*", "kind:GENERATED", "path:b", "mime:image"),
  );
  const alternatives = fc.array(term, { minLength: 1, maxLength: 3 });
  let refused = 0;
  let matched = 0;
  fc.assert(
    fc.property(fc.array(alternatives, { minLength: 2, maxLength: 4 }), (groups) => {
      const pattern = groups.map((terms) => `(${terms.join(" OR ")})`).join(" AND ");
      const fault = patternFault(pattern);
      const found = index.matches(pattern);
      if (fault === undefined) matched += found.length;
      else {
        refused++;
        expect(fault.message).toContain("at once");
        expect(found).toEqual([]);
      }
    }),
    { numRuns: 3_000 },
  );
  expect(Math.min(refused, matched)).toBeGreaterThan(50);
});
