// What is refused, where, and what is said instead; that every suggestion is valid and clears what was meant.

import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { normalPattern } from "../../../src/core/patterns/index-schema.ts";
import { patternCharsMax, patternsMax } from "../../../src/core/patterns/pattern-budget.ts";
import {
  faultText,
  judgePattern,
  patternFault,
  patternsFault,
} from "../../../src/core/patterns/pattern-fault.ts";
import { everything } from "../../../src/core/patterns/pattern-recipes.ts";
import { entryOf, TextIndex } from "../../support/text-index.ts";

const times = (n: number, text: string, joint = " OR "): string =>
  Array.from({ length: n }, () => text).join(joint);

test.each([
  "path:blog",
  'path:^"blog post xend"',
  'mime:"image/png" AND kind:static',
  "{path query}:shop*",
  '- { "path" QUERY } : sh* NOT query:x',
  '"say ""hello"""',
  'NEAR("a b" cd, 10) near',
  "路* OR é2*",
  "a\u00a0b",
  "and or not NEAR",
  "path:(a OR {mime path}:b) AND {path mime}:(c NOT ^d + e)",
  "url:z2f* OR url:z2* OR dir:z2fcssz2f",
  "param:pagez3d* OR param:z7a OR ext:z50",
  "kind:STATIC OR kind:gen*",
  times(64, "word"),
  times(16, "ab*"),
  `${"(".repeat(16)}a${")".repeat(16)}`,
  "a".repeat(4_096),
])("%j is valid", (pattern) => {
  expect(patternFault(pattern)).toBe(undefined);
});

const nothing = undefined;
test.each<[pattern: string, position: number, says: string, suggestion: string | undefined]>([
  ["image/png", 5, '"/"', '"image/png"'],
  ["mime:image/png", 10, '"/"', 'mime:"image/png"'],
  ["mime:image/*", 10, '"/"', "mime:^image"],
  ["/css/*", 0, '"/"', "url:z2fcssz2f*"],
  ["/css/* OR /js/*", 0, '"/"', "url:z2fcssz2f* OR url:z2fjsz2f*"],
  ["/x.html /y.html", 0, '"/"', "url:z2fxz2ehtml OR url:z2fyz2ehtml"],
  ["/img/*.png", 0, '"/"', "url:z2fimgz2f* AND ext:png"],
  ["kind:static NOT img/*.png", 19, '"/"', "kind:static NOT (url:z2fimgz2f* AND ext:png)"],
  ["/a/*/b", 0, '"/"', nothing],
  ["/blog/post.html", 0, '"/"', "url:z2fblogz2fpostz2ehtml"],
  ["/blog/", 0, '"/"', "url:z2fblogz2f OR url:z2fblogz2findexz2ehtml"],
  ["/a b.pdf", 0, '"/"', "url:z2faz20bz2epdf OR url:z2faz2520bz2epdf"],
  ["/caf%C3%A9", 0, '"/"', "url:z2fcafz25z433z25z419 OR url:z2fcafz25c3z25a9 OR url:z2fcafzc3za9"],
  ["https://a.test/b?c=1#d", 0, '"https"', "url:z2fbz3fcz3d1"],
  ["css/app.css", 3, '"/"', "url:z2fcssz2fappz2ecss"],
  ["blog-post", 4, "has -", '"blog post"'],
  ["post-1", 4, "has -", '"post 1"'],
  ["blog -post", 5, "has -", "blog NOT post"],
  ["logo.png", 4, '"."', '"logo.png"'],
  ["*.png", 0, "* without a word", "ext:png"],
  ["kind:static AND *.png", 16, "* without a word", "kind:static AND ext:png"],
  ["*", 0, "* without a word", everything],
  ["/*", 0, '"/"', everything],
  ["*foo", 0, "open at its end only", nothing],
  ["?page=2", 0, '"?"', "param:pagez3d2"],
  ["query:page=2&a=1", 10, '"="', "param:pagez3d2 AND param:az3d1"],
  ["path:/blog/post.html", 5, '"/"', 'path:^"blog post html xend"'],
  ["path:/css/*", 5, '"/"', 'path:^"css"'],
  ["path: /css/app*", 6, '"/"', 'path:^"css app"*'],
  ["url:/blog", 4, '"/"', "url:z2fblog"],
  ["dir:css/", 7, '"/"', "dir:z2fcssz2f"],
  ["ext:.png", 4, '"."', "ext:png"],
  ['"open', 0, "quote that is not closed", '"open"'],
  ['a OR "b c', 5, "quote that is not closed", 'a OR "b c"'],
  ["'blog post'", 0, '"\'"', '"blog post"'],
  ["(a OR (b AND c)", 0, "not closed", "(a OR (b AND c))"],
  ["a) OR b", 1, "was not opened", "a OR b"],
  ["NOT blog", 0, "NOT with nothing before it", `(${everything}) NOT blog`],
  ["a AND NOT b", 6, "NOT with nothing before it", "a NOT b"],
  ["a OR NOT b", 5, "NOT with nothing before it", `a OR (${everything}) NOT b`],
  ["!blog", 0, '"!"', `(${everything}) NOT blog`],
  ["a AND", 5, "ends where a word has to follow", "a"],
  ["OR a", 0, "has OR where", "a"],
  ["a and (b)", 6, "before the parenthesis", "a AND (b)"],
  ["a && b", 2, '"&"', "a AND b"],
  ["a || b", 2, '"|"', "a OR b"],
  ["(a) b", 4, "AND, OR or NOT before b", "(a) AND b"],
  ["near(a b)", 4, "before the parenthesis", "NEAR(a b)"],
  ["NEAR(a b, x)", 10, "number", nothing],
  ["^path:x", 5, "has :", "path:^x"],
  ["path2:x", 0, '"path2"', "path:x"],
  ['pth:"a b" OR c', 0, '"pth"', 'path:"a b" OR c'],
  ["domain:b", 0, '"domain"', nothing],
  ["rowid:1", 0, '"rowid"', nothing],
  ["{path ttle}:x", 6, '"ttle"', nothing],
  ["{path mime:x", 10, "close its list", nothing],
  ["", 0, "is empty", nothing],
  ["  ", 0, "is empty", nothing],
  [
    "路径/é",
    2,
    '"/"',
    "url:z2fze8zb7zafze5zbez84z2fzc3za9 OR url:z2fz25z458z25z427z25z41z46z25z455z25z42z45z2584z2fz25z433z25z419 OR url:z2fz25e8z25b7z25afz25e5z25bez2584z2fz25c3z25a9",
  ],
  // The place is that in the pattern as it was given, though it is longer than its normal form.
  [
    "cafe\u0301/x",
    5,
    '"/"',
    "url:z2fcafezccz81z2fx OR url:z2fcafez25z43z43z2581z2fx OR url:z2fcafez25ccz2581z2fx OR url:z2fcafzc3za9z2fx OR url:z2fcafz25z433z25z419z2fx OR url:z2fcafz25c3z25a9z2fx",
  ],
  // Taken by FTS5, and never true.
  ['"/"', 0, "without a word", "url:z2f OR url:z2findexz2ehtml"],
  ['path:"/"', 5, "without a word", "path:^xend"],
  ['a OR "-" *', 5, "without a word", nothing],
  ["a \u{1f600}", 2, "without a word", nothing],
  ["a\0b", 1, "NUL", nothing],
  ["kind:image", 5, "static and generated", nothing],
  ["path:(url:z2f)", 10, "no column", nothing],
  ["url:blog", 4, "begins with z2f", "url:z2fblog"],
  ["url:z2fBlog", 4, "no exact word", "url:z2fz42log"],
  ["dir:z2fcss", 4, "ends with its slash", "dir:z2fcssz2f"],
  ['url:"z2fa z2fb"', 4, "one exact word", nothing],
  ["ext:PNG", 4, "no exact word", "ext:z50z4ez47"],
  ["ext:z2epng", 4, "a dot", "ext:png"],
  ["param:zzz", 6, "no exact word", "param:z7az7az7a"],
  ["{url dir}:z61", 10, "no exact word", nothing],
  // Too much.
  ["a".repeat(4_097), 4_096, "4097 characters", nothing],
  [times(65, "word"), 512, "64 words", nothing],
  [`"${times(65, "a", "/")}"`, 0, "64 words", nothing],
  ["a*", 0, "prefix a*", nothing],
  ['x OR "blog p"*', 5, "prefix p*", nothing],
  ["a* + bc", 0, "prefix a*", nothing],
  [times(17, "ab*"), 112, "16 prefixes", nothing],
  [`${"(".repeat(17)}a${")".repeat(17)}`, 17, "nested too deeply", nothing],
  ["(".repeat(4_000), 17, "nested too deeply", nothing],
])("%j is refused at %d", (pattern, position, says, suggestion) => {
  const fault = patternFault(pattern);
  expect(fault?.message).toContain(says);
  expect(fault?.position).toBe(position);
  expect(fault?.suggestion).toBe(suggestion);
});

describe("a suggestion clears what was meant", () => {
  const entries = [
    "/", "/blog", "/blog/", "/blog/post.html", "/blog/post.html?page=2", "/blog-post", "/caf%C3%A9", "/css/app.css", "/css/a/b.png",
    "/img/logo.png", "/image/png", "file css/app.css", "file index.html", "file blog/index.html", "file café", "file a b.pdf", "/a%20b.pdf",
  ]; // prettier-ignore
  const index = new TextIndex(entries.map(entryOf));
  afterAll(() => index[Symbol.dispose]());

  test.each<[pattern: string, ...clears: string[]]>([
    ["/", "/", "file index.html"],
    ["/blog/", "/blog/", "file blog/index.html"],
    ["/blog/post.html", "/blog/post.html"],
    ["/css/*", "/css/app.css", "/css/a/b.png", "file css/app.css"],
    ["/css/*.png", "/css/a/b.png"],
    ["*.png", "/css/a/b.png", "/img/logo.png"],
    ["mime:image/png", "/css/a/b.png", "/img/logo.png"],
    ["/café", "/caf%C3%A9", "file café"],
    ["/caf%C3%A9", "/caf%C3%A9", "file café"],
    ["/a b.pdf", "file a b.pdf", "/a%20b.pdf"],
    ["page=2", "/blog/post.html?page=2"],
    ["path:/blog", "/blog", "/blog/"],
    ["/blog AND /blog-post", "/blog", "/blog-post"],
    ["dir:/css/*", "/css/app.css", "/css/a/b.png", "file css/app.css"],
    ["/blog/*?page=2", "/blog/post.html?page=2"],
    ["“blog post”", "/blog/post.html", "/blog/post.html?page=2", "/blog-post"],
    ["blog-post", "/blog/post.html", "/blog/post.html?page=2", "/blog-post"],
    ["*", ...entries],
    ['path:"/"', "/"],
    [
      "kind:static NOT /css/*",
      "file index.html",
      "file blog/index.html",
      "file café",
      "file a b.pdf",
    ],
  ])("%s", (pattern, ...clears) => {
    const suggestion = patternFault(pattern)?.suggestion ?? "";
    const cleared = index.matches(suggestion).map((at) => entries[at]);
    expect(new Set(cleared)).toEqual(new Set(clears));
  });
});

test("whatever is asked, the answer names a place in it and suggests only what is valid", () => {
  const piece = fc.constantFrom(
    ...Array.from("/*.-:\"'()?=&!|^+{},%# "),
    "blog",
    "AND",
    "or",
    "NOT",
    "path:",
    "url:",
    "z2f",
    "http://",
    "é",
    "a",
    "NEAR(",
    "\u0301",
  );
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: piece, maxLength: 12 }), fc.string()), (pattern) => {
      const fault = patternFault(pattern);
      if (fault === undefined) return;
      expect(fault.position).toBeGreaterThanOrEqual(0);
      expect(fault.position).toBeLessThanOrEqual(Array.from(pattern).length);
      if (fault.suggestion !== undefined)
        expect(judgePattern(normalPattern(fault.suggestion)).kind).toBe("valid");
    }),
    { numRuns: 2_000 },
  );
});

describe("the time to refuse", () => {
  const letters = Array.from("abcdefghijklmnopqrstuvwxyz0123456789", (letter) => `${letter}*`);
  const blocking = times(30, `(${letters.join(" OR ")})`, " AND ");

  test.each([
    ["the pattern that blocked FTS5 for 27 s", blocking],
    ["as much of it as is short enough", blocking.slice(0, patternCharsMax)],
    ["open parentheses", "(".repeat(patternCharsMax)],
    ["quotes", '"'.repeat(patternCharsMax - 1)],
    ["slashes", "/".repeat(1_024)],
    ["stars and slashes", "/*".repeat(512)],
    ["operators", times(500, "-", "")],
    ["white space", `a${" ".repeat(patternCharsMax - 2)}(`],
    ["decomposed letters", `${"e\u0301".repeat(2_000)}/`],
  ])("%s", (_, pattern) => {
    const tookMs = Array.from({ length: 25 }, () => {
      const started = performance.now();
      expect(patternFault(pattern)).toBeDefined();
      return performance.now() - started;
    });
    expect(Math.min(...tookMs)).toBeLessThan(10); // The machine has other work, too.
  });
});

test("the patterns of a clear are told apart", () => {
  const check = (pattern: string) => patternFault(pattern);
  expect(patternsFault(times(patternsMax, "a", ",").split(","), check)).toBe(undefined);
  expect(patternsFault(times(patternsMax + 1, "a", ",").split(","), check)).toContain(
    "65 patterns",
  );
  expect(patternsFault(["a", "/css/*", "*"], check)).toBe(
    'the pattern "/css/*" has "/", which may only stand in quotes (at character 0); did you mean url:z2fcssz2f*',
  );
  const fault = { position: 3, message: "is odd", suggestion: undefined };
  expect(faultText("abc", fault)).toBe('the pattern "abc" is odd (at character 3)');
});
