// One path is spelled in many ways: composed or decomposed letters, percent-encoded by one client and not by another, upper or lower case. What is
// suggested in place of a refused pattern clears all of them.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { IndexedEntry } from "../../../src/core/patterns/index-schema.ts";
import { patternFault } from "../../../src/core/patterns/pattern-fault.ts";
import { querySpellings, urlSpellings } from "../../../src/core/http/url-spellings.ts";
import { entryOf, TextIndex } from "../../support/text-index.ts";

/** Of these, what the suggestion leaves. */
function left(pattern: string, entries: readonly (string | IndexedEntry)[]): readonly unknown[] {
  using index = new TextIndex(entries.map((one) => (typeof one === "string" ? entryOf(one) : one)));
  const meant = patternFault(pattern)?.suggestion;
  const cleared = new Set(meant === undefined ? [] : index.matches(meant));
  return entries.filter((_, at) => !cleared.has(at));
}

const nfd = "cafe\u0301";
const encoded = "%E6%97%A5%E6%9C%AC";

test.each<[pattern: string, ...clears: string[]]>([
  [
    `/${nfd}/*`,
    `file ${nfd}/x.html`,
    "/cafe%CC%81/x.html",
    "file café/x.html",
    "/caf%C3%A9/x.html",
  ],
  [`/${nfd}/x.html`, `file ${nfd}/x.html`, "/cafe%CC%81/x.html", "/caf%C3%A9/x.html"],
  [`${nfd}/x.html`, `file ${nfd}/x.html`, "/cafe%CC%81/x.html"],
  [`dir:/${nfd}/`, `file ${nfd}/x`, "/cafe%CC%81/x", "file café/x"],
  [`path:/${nfd}/x`, `file ${nfd}/x`, "/cafe%CC%81/x", "/caf%C3%A9/x"],
  ["/caf%c3%a9/x", "/caf%c3%a9/x", "/caf%C3%A9/x", "file café/x"],
  ["/日本 語/*", "file 日本 語/a", `/${encoded}%20%E8%AA%9E/a`],
  ["/a b/c%20d", "/a%20b/c%20d", "file a b/c d"],
  ["/100%/x", "file 100%/x", "/100%25/x", "/100%/x"],
  ["/日本%", "file 日本%", `/${encoded}%`, `/${encoded}%25`],
  ['/say"hi"', 'file say"hi"', "/say%22hi%22"],
  ['/say"hi there".html', 'file say"hi there".html', "/say%22hi%20there%22.html"],
  ["/photo (1).jpg", "file photo (1).jpg", "/photo%20(1).jpg", "/photo%20%281%29.jpg"],
  ["/it's", "file it's", "/it's", "/it%27s"],
  ["/a[1].png", "file a[1].png", "/a[1].png", "/a%5B1%5D.png"],
  ["/日[1]", "file 日[1]", "/%E6%97%A5[1]", "/%E6%97%A5%5B1%5D"],
  ["/a%2Fb/é", "/a%2Fb/%C3%A9"],
  ["/a/?", "/a/", "file a/index.html"],
  ["/a?*", "/a?b"],
  ["/s?q=日本", `/s?q=${encoded}`],
  ["/s?q=a b&c='", "/s?q=a%20b&c=%27", "/s?q=a+b&c=%27", "/s?q=a+b&c='"],
  ["param:q=日本", `/s?q=${encoded}`, `/s?a=1&q=${encoded}`],
  ["param:q=日本*", `/s?q=${encoded}1`],
  ["名=日本", `/s?%E5%90%8D=${encoded}`],
  ["?q=summer sale", "/s?q=summer+sale", "/s?q=summer%20sale"],
  ["?q=c++", "/s?q=c++", "/s?q=c%2B%2B"],
  ["?to=https://a/b", "/s?to=https://a/b", "/s?to=https%3A%2F%2Fa%2Fb"],
  ["?q=é&p=ö", "/s?q=%C3%A9&p=%C3%B6"],
  ["query:summer-sale", "/s?q=summer+sale"],
  ["dir:/日本/", "file 日本/a", `/${encoded}/a`],
  ["url:/日本", "file 日本", `/${encoded}`],
  ["ext:日本", "file a.日本", `/a.${encoded}`],
  ["*.日本", "file a.日本", `/a.${encoded}`],
  ["/img/*.日本", "file img/a.日本", `/img/b/a.${encoded}`],
  ["https://www.example.com/日本/*", "file 日本/a", `/${encoded}/a`],
  ["path:/caf%C3%A9/x", "file café/x", "/caf%c3%a9/x"],
  ["caf%C3%A9-bar", "file café-bar", "/caf%C3%A9/bar"],
  ["“image/png”", "file a.png"],
  ["mime:“image/png”", "file a.png"],
  ["a OR „image/png“", "file a.png"],
  ["‘blog-post’", "/blog-post"],
])("%j", (pattern, ...clears) => {
  expect(left(pattern, clears)).toEqual([]);
});

test.each([
  ["/caf%C3%A9", "/cafe", "/caf%C3%A9/", "file cafe"],
  ["/a%2Fb", "/a/b", "file a/b"],
  ["?q=a%26b", "/s?q=a&b"],
  ['/say"hi"', "/say", "/hi"],
  ["/photo (1).jpg", "/photo", "/1.jpg"],
])("%j leaves what is something else", (pattern, ...leaves) => {
  expect(patternFault(pattern)?.suggestion).toBeDefined();
  expect(left(pattern, leaves)).toEqual(leaves);
});

test.each(['/a"b', '"hi"/x', "url:“/x”", "/a)"])(
  "%j, cut in pieces, is not known for what it is",
  (pattern) => {
    expect(patternFault(pattern)?.suggestion ?? "").not.toMatch(/z2f\w*"|"url/);
  },
);

/** Names of files as people give them; not what patterns have a meaning of their own for, nor what reads as an escape. */
const units = ["x", "é", "oe\u0301", "日", " z", "%", "'", '"q"', "(1)", "{i}", "[", "]", "|", "!", "&", "+", ".", "^"]; // prettier-ignore
const names = fc
  .array(fc.constantFrom(...units), { minLength: 1, maxLength: 6 })
  .map((parts) => `x${parts.join("")}x`);
const rfc3986 = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );

describe("whatever a name is made of, its path clears the file and what clients ask for", () => {
  test("given as it is called", () => {
    fc.assert(
      fc.property(names, (name) => {
        const sent = [encodeURI(name), new URL(`/${name}`, "http://a").pathname.slice(1)];
        const file: IndexedEntry = { kind: "static", path: name, query: "", mime: "text/html" };
        const asked = sent.map((path): IndexedEntry => ({
          ...file,
          kind: "generated",
          path: `/${path}`,
        }));
        expect(left(`/${name}`, [file, ...asked])).toEqual([]);
        expect(left(`/${name}*`, [file, ...asked])).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test("given as a client spells it", () => {
    fc.assert(
      fc.property(names, (name) => {
        const file: IndexedEntry = { kind: "static", path: name, query: "", mime: "text/html" };
        for (const sent of [
          encodeURI(name),
          encodeURI(name).replaceAll(/%../g, (one) => one.toLowerCase()),
        ])
          expect(
            left(`/${sent}`, [file, { ...file, kind: "generated", path: `/${encodeURI(name)}` }]),
          ).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});

test("whatever a value is made of, its parameter clears what clients ask for", () => {
  const values = fc
    .array(fc.constantFrom("x", "é", nfd, "日", "'", ",", "/", ":", "!", "~", "|", "[", "=", "+"), {
      minLength: 1,
      maxLength: 6,
    })
    .map((parts) => parts.join(""));
  fc.assert(
    fc.property(values, (value) => {
      const queries = [
        new URLSearchParams({ q: value }).toString(),
        new URL(`http://a/?q=${value}`).search.slice(1),
        `q=${encodeURIComponent(value)}`,
        `q=${rfc3986(value)}`,
      ];
      const entries = queries.map((query): IndexedEntry => ({
        kind: "generated",
        path: "/s",
        query,
        mime: "text/html",
      }));
      expect(left(`?q=${value}`, entries)).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

test.each([
  ["/café", "/caf%c3%a9"],
  ["/caf%C3%A9", "/caf%c3%a9"],
  ["/caf%c3%a9", "/caf%C3%A9"],
  ["/A%2FB", "/A%2fB"],
  ["/路/", "/%e8%b7%af/"],
  ["/s?q=é", "/s?q=%c3%a9"],
])("escapes count in capitals and in small letters: %s is %s as well", (url, spelling) => {
  expect(urlSpellings(url)).toContain(spelling);
});

test("what has one spelling is said once", () => {
  expect(urlSpellings("/blog/post.html")).toEqual(["/blog/post.html"]);
  expect(urlSpellings("/blog?page=2&x=1")).toEqual(["/blog?page=2&x=1"]);
  expect(querySpellings("page=2")).toEqual(["page=2"]);
  expect(urlSpellings("/\ud800")).toEqual(["/\ufffd", "/%EF%BF%BD", "/%ef%bf%bd"]);
});
