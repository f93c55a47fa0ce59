// The purge requests of real clients, as their sources send them, and what is outside of each grammar.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { readPurge } from "../../../src/core/purge/purge-dialects.ts";
import type { PurgeItems } from "../../../src/core/purge/purge-items.ts";

const host = "www.example.com";
const urlOf = (path: string): PurgeItems => ({ urls: [`https://${host}${path}`] });
const magento = (...tags: string[]): string => tags.map((tag) => `((^|,)${tag}(,|$))`).join("|");

type Row = readonly [string, string, readonly Field[], string, PurgeItems];

const taken: readonly Row[] = [
  ["PURGE", "/a?b=1", [], "plain", urlOf("/a?b=1")],
  ["PURGE", "/", [["User-Agent", "curl/8.5.0"]], "plain", urlOf("/")],
  ["PURGE", "/", [["X-Purge-Method", "default"]], "plain", urlOf("/")],
  ["PURGE", "/.*", [["X-Purge-Method", "regex"]], "wordpress", { hosts: [host] }],
  [
    "PURGE",
    "/blog/.*",
    [["X-Purge-Method", "regex"]],
    "wordpress",
    { prefixes: [`https://${host}/blog/`] },
  ],
  ["PURGE", "/ab.*", [["X-Purge-Method", "regex"]], "wordpress", { patterns: ["url:z2fab*"] }],
  ["PURGE", "/ab", [["X-Purge-Method", "regex"]], "wordpress", { patterns: ["url:z2fab*"] }],
  ["PURGE", "/.*", [["X-VC-Purge-Method", "regex"]], "wordpress", { hosts: [host] }],
  ["PURGE", "/a/", [["X-VC-Purge-Method", "default"]], "plain", urlOf("/a/")],
  ["PURGE", "/*", [], "nginx", { hosts: [host] }],
  ["PURGE", "/.*", [], "nginx", { hosts: [host] }],
  ["PURGE", "/img/*", [], "nginx", { prefixes: [`https://${host}/img/`] }],
  ["PURGE", "/img*", [], "nginx", { patterns: ["url:z2fimg*"] }],
  [
    "BAN",
    "/",
    [["Cache-Tags", "node:1 node_list config:user.role.anonymous"]],
    "drupal",
    { tags: ["node:1", "node_list", "config:user.role.anonymous"] },
  ],
  ["BAN", "/", [["Cache-Tags", "node:1|node:2"]], "drupal", { tags: ["node:1", "node:2"] }],
  ["PURGE", "/", [["Purge-Cache-Tags", "node:1,node:2"]], "drupal", { tags: ["node:1", "node:2"] }],
  [
    "URIBAN",
    "/sites/default/files/styles/large/public/a.jpg?itok=x",
    [],
    "drupal",
    urlOf("/sites/default/files/styles/large/public/a.jpg?itok=x"),
  ],
  ["PURGE", "/", [["X-Magento-Tags-Pattern", ".*"]], "magento", { everything: true }],
  [
    "PURGE",
    "/",
    [["X-Magento-Tags-Pattern", magento("cat_p_1", "cat_p")]],
    "magento",
    { tags: ["cat_p_1", "cat_p"] },
  ],
  ["PURGE", "/", [["xkey", "product-1 product-2"]], "xkey", { tags: ["product-1", "product-2"] }],
  ["PURGE", "/", [["xkey-purge", "a, b"]], "xkey", { tags: ["a", "b"] }],
  ["PURGE", "/", [["xkey-softpurge", "a"]], "xkey", { tags: ["a"], soft: true }],
  [
    "PURGE",
    "/",
    [
      ["xkey", "a"],
      ["xkey-softpurge", "b"],
    ],
    "xkey",
    { tags: ["a", "b"] },
  ],
  [
    "PURGE",
    "/a",
    [["Fastly-Soft-Purge", "1"]],
    "plain",
    { urls: ["https://www.example.com/a"], soft: true },
  ],
  ["PURGE", "/a", [["Fastly-Soft-Purge", "0"]], "plain", { urls: ["https://www.example.com/a"] }],
  [
    "PURGE",
    "/",
    [["Surrogate-Key", "post-1 term-2,3"]],
    "surrogate-key",
    { tags: ["post-1", "term-2,3"] },
  ],
  ["BAN", "/", [], "ban", { hosts: [host] }],
  ["BAN", "/shop/", [], "ban", { prefixes: [`https://${host}/shop/`] }],
  ["BAN", "/shop", [], "ban", { patterns: ["url:z2fshop*"] }],
  [
    "BAN",
    "/",
    [
      ["X-Host", ".*"],
      ["X-Url", ".*"],
      ["X-Content-Type", ".*"],
      ["X-Cache-Tags", "(^|,)(tag\\-1|b\\.c)(,|$)"],
    ],
    "foshttpcache",
    { tags: ["tag-1", "b.c"] },
  ],
  [
    "BAN",
    "/",
    [
      ["X-Url", "^/a\\.html$"],
      ["X-Host", ".*"],
    ],
    "foshttpcache",
    urlOf("/a.html"),
  ],
  [
    "BAN",
    "/",
    [
      ["X-Url", "^/blog/.*$"],
      ["X-Host", "^(a\\.example\\.com|b.example.com)$"],
    ],
    "foshttpcache",
    { prefixes: ["https://a.example.com/blog/", "https://b.example.com/blog/"] },
  ],
  [
    "BAN",
    "/",
    [
      ["X-Url", ".*"],
      ["X-Host", ".*"],
      ["X-Content-Type", ".*"],
    ],
    "foshttpcache",
    { hosts: [host] },
  ],
];

test.each(taken)("%s %s %j is %s", (method, url, fields, dialect, items) => {
  expect(readPurge({ method, url, fields, host })).toEqual({ kind: "items", dialect, items });
});

test("without a host, a path means every host in scope", () => {
  const items = (method: string, url: string): unknown =>
    readPurge({ method, url, fields: [], host: null });
  expect(items("PURGE", "/a")).toMatchObject({ items: { urls: ["/a"] } });
  expect(items("PURGE", "/*")).toMatchObject({ items: { everything: true } });
});

const refused: readonly (readonly [string, string, readonly Field[], RegExp])[] = [
  ["PURGE", "/", [["X-Magento-Tags-Pattern", "cat_p_1"]], /X-Magento|x-magento/],
  ["PURGE", "/", [["X-Magento-Tags-Pattern", "*"]], /takes \.\*/],
  ["PURGE", "/", [["X-Magento-Tags-Pattern", "((^|,)a.*(,|$))"]], /takes/],
  ["PURGE", "/", [["X-Magento-Tags-Pattern", `${magento("a")}|`]], /takes/],
  ["PURGE", "/", [["X-Magento-Tags-Pattern", `${magento("a")}b`]], /takes/],
  ["PURGE", "/", [["X-Magento-Tags-Pattern", "(a+)+$"]], /takes/],
  ["BAN", "/", [["Cache-Tags", "node:.*"]], /cache-tags takes/],
  ["BAN", "/", [["Cache-Tags", ""]], /cache-tags takes/],
  ["BAN", "/", [["X-Cache-Tags", "(^|,)(a.+|b)(,|$)"]], /x-cache-tags takes/],
  ["BAN", "/", [["X-Cache-Tags", "(^|,)(a\\d)(,|$)"]], /x-cache-tags takes/],
  [
    "BAN",
    "/",
    [
      ["X-Url", "/a"],
      ["X-Host", ".*"],
    ],
    /X-Url/,
  ],
  ["BAN", "/", [["X-Url", "^/(a|b)$"]], /X-Url/],
  [
    "BAN",
    "/",
    [
      ["X-Url", ".*"],
      ["X-Content-Type", "image/.*"],
    ],
    /X-Content-Type/,
  ],
  [
    "BAN",
    "/",
    [
      ["X-Url", ".*"],
      ["X-Host", "example"],
    ],
    /X-Host/,
  ],
  ["BAN", "/a.*", [], /BAN takes/],
  ["BAN", "/a(b)", [], /BAN takes/],
  ["BAN", "/", [["X-Ban-Url", ".*"]], /x-ban-url/],
  ["PURGE", "/", [["X-Purge-Regex", ".*"]], /x-purge-regex/],
  ["PURGE", "/(a|b)", [["X-Purge-Method", "regex"]], /X-Purge-Method/],
  ["PURGE", "/a.*b.*", [["X-Purge-Method", "regex"]], /X-Purge-Method/],
  ["PURGE", "/(a|b).*", [["X-VC-Purge-Method", "regex"]], /X-VC-Purge-Method/],
  ["PURGE", "/a.b", [["X-VC-Purge-Method", "other"]], /X-VC-Purge-Method/],
  ["PURGE", "/a", [["X-Purge-Method", "tags"]], /X-Purge-Method/],
  ["PURGE", "/*/a*", [], /one \*/],
  [
    "PURGE",
    "/",
    [["xkey", Array.from({ length: 1_001 }, (_, at) => `t${at}`).join(" ")]],
    /at most 1000/,
  ],
];

test.each(refused)("%s %s %j is refused", (method, url, fields, message) => {
  const read = readPurge({ method, url, fields, host });
  expect(read).toMatchObject({ kind: "refused", message: expect.stringMatching(message) });
});

describe("any value", () => {
  test("Magento's form gives back the tags that were put in, and nothing else passes", () => {
    const tag = fc.stringMatching(/^[A-Za-z0-9_.:-]{1,20}$/);
    fc.assert(
      fc.property(fc.uniqueArray(tag, { minLength: 1, maxLength: 20 }), (tags) => {
        const fields: readonly Field[] = [["X-Magento-Tags-Pattern", magento(...tags)]];
        expect(readPurge({ method: "PURGE", url: "/", fields, host })).toMatchObject({
          items: { tags },
        });
      }),
    );
  });

  test("no value takes long, whatever it repeats", () => {
    const long = `${"((^|,)a(,|$))|".repeat(500)}!`;
    const began = performance.now();
    for (const name of ["X-Magento-Tags-Pattern", "X-Cache-Tags", "X-Url", "X-Host", "xkey"])
      readPurge({ method: "BAN", url: "/", fields: [[name, long]], host });
    expect(performance.now() - began).toBeLessThan(500);
  });
});
