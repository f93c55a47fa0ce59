// Clears by URLs, prefixes and hosts: how they are read, what the journal says of them, what their patterns match.

import { describe, expect, test } from "vitest";
import { Guard } from "../../../src/agent/cache/index/guard.ts";
import {
  patternsOfPrefix,
  patternsOfUrl,
  readClearItems,
  type GivenItems,
} from "../../../src/core/patterns/clear-items.ts";
import type { IndexedEntry } from "../../../src/core/patterns/index-schema.ts";
import { everything } from "../../../src/core/patterns/pattern-recipes.ts";

const hosts = ["www.example.com", "img.example.com"];
const read = (given: GivenItems, only: string | null = null) =>
  readClearItems(given, only, (name) => (only === null ? hosts.includes(name) : name === only));
const faults = (given: GivenItems, only: string | null = null) => {
  const items = read(given, only);
  return items.ok ? [] : items.faults.map(({ at, ...fault }) => [at, fault]);
};
const planned = (given: GivenItems, only: string | null = null) => {
  const items = read(given, only);
  if (!items.ok) throw new Error(JSON.stringify(items.faults));
  return items.clear;
};

describe("URLs", () => {
  test.each([
    ["/", null, "/"],
    ["/a/b?c=d", null, "/a/b?c=d"],
    ["https://www.example.com/a", "www.example.com", "/a"],
    ["http://www.example.com:8080/a?b#c", "www.example.com", "/a?b"],
    ["HTTPS://IMG.example.com./A", "img.example.com", "/A"],
    ["https://img.example.com", "img.example.com", "/"],
    ["https://img.example.com?a=1", "img.example.com", "/?a=1"],
    ["/a?", null, "/a"],
    ["/a#part", null, "/a"],
    ["/caf\u00e9/..a/.b", null, "/caf\u00e9/..a/.b"],
    ["/a?../b", null, "/a?../b"],
  ])("%s", (url, host, path) => {
    expect(planned({ urls: [url] }).items).toEqual({ urls: [{ host, path }] });
  });

  test.each([
    ["a/b", "has to begin with /, or with https:// and a host", "/a/b"],
    [
      "www.example.com/a",
      "has to begin with /, or with https:// and a host",
      "https://www.example.com/a",
    ],
    [
      "//www.example.com/a",
      "has to begin with /, or with https:// and a host",
      "https://www.example.com/a",
    ],
    ["ftp://www.example.com/a", "has to begin with /, or with https:// and a host", undefined],
    ["", "has to begin with /, or with https:// and a host", undefined],
    ["https:///a", 'has "" where a host name has to stand', undefined],
    ["https://me@www.example.com/a", 'has "me@www.example.com" where a host name', undefined],
    ["https://192.0.2.1/a", 'has "192.0.2.1" where a host name has to stand', undefined],
    ["https://other.example.com/a", "is of the host other.example.com, which is none", undefined],
    ["/css/*", "ends with *, but a URL is exact", undefined],
    ["/a/../b?c", "has dot segments, which no client sends", "/b?c"],
    [
      "https://www.example.com/a/./b/..",
      "has dot segments, which no client sends",
      "https://www.example.com/a/",
    ],
    [" /a", "has blanks at its ends", "/a"],
    ["/a\nb", "has a control character", undefined],
    [`/${"\u4e2d".repeat(1_700)}`, "is too long", undefined],
  ])("%j is refused", (url, message, suggestion) => {
    const [[at, fault] = []] = faults({ urls: ["/fine", url] });
    expect(at).toBe(1);
    expect(fault).toMatchObject({ kind: "urls", message: expect.stringContaining(message) });
    expect(Object(fault).suggestion).toBe(suggestion);
    // What is suggested is taken.
    if (suggestion !== undefined) expect(faults({ urls: [suggestion] })).toEqual([]);
  });
});

test("prefixes and hosts are refused with their place", () => {
  expect(
    faults({ prefixes: ["/a/*", "/a?b=1", "b", "/x*"], hosts: ["img.example.com", "a.test", "x"] }),
  ).toEqual([
    [0, { kind: "prefixes", message: expect.stringContaining("ends with *"), suggestion: "/a/" }],
    [1, { kind: "prefixes", message: "has a query; a prefix is a path", suggestion: "/a" }],
    [2, expect.objectContaining({ kind: "prefixes", suggestion: "/b" })],
    [3, { kind: "prefixes", message: expect.stringContaining("ends with *") }],
    [1, { kind: "hosts", message: "is no host of this domain" }],
    [2, { kind: "hosts", message: "is no host of this domain" }],
  ]);
  const sub = "img.example.com";
  expect(faults({ urls: ["https://www.example.com/a"], hosts: [sub] }, sub)).toHaveLength(1);
});

test("items with too many spellings together are refused", () => {
  const one = "/cafe\u0301 au lait!/[x]?q=(a b)&r=~!'+caf\u00e9|";
  expect(faults({ urls: [one] })).toEqual([]);
  const [[, fault] = []] = faults({
    urls: Array.from({ length: 1_000 }, (_, no) => `${one}${no}`),
  });
  expect(fault).toMatchObject({ message: expect.stringContaining("too many spellings") });
  const plain = Array.from({ length: 1_000 }, (_, no) => `/product-${no}/page.html?id=${no}&x=1`);
  expect(faults({ urls: plain })).toEqual([]);
});

describe("what agents of the release before can say is said to all alike", () => {
  const www = "www.example.com";
  const img = "img.example.com";
  test.each<[GivenItems, string | null, object]>([
    [{ everything: true }, null, { host: null, patterns: [everything] }],
    [{ everything: true, urls: ["/a"] }, img, { host: img, patterns: [everything] }],
    [{ patterns: ["path:a"] }, img, { host: img, patterns: ["path:a"] }],
    [{ hosts: [img] }, null, { host: img, patterns: [everything] }],
    [{ hosts: [img, img] }, null, { host: img, patterns: [everything] }],
    [{ prefixes: ["/"] }, null, { host: null, patterns: [everything] }],
    [{ prefixes: [`https://${img}/`] }, null, { host: img, patterns: [everything] }],
  ])("%j", (given, only, clear) => {
    expect(planned(given, only)).toEqual(clear);
  });

  test.each<[GivenItems, string | null, string | null, object]>([
    [{ urls: ["/a"] }, null, null, { urls: [{ host: null, path: "/a" }] }],
    [{ urls: ["/a"] }, img, img, { urls: [{ host: null, path: "/a" }] }],
    [{ urls: [`https://${www}/a`] }, null, www, { urls: [{ host: www, path: "/a" }] }],
    [{ hosts: [www, img] }, null, null, { hosts: [www, img] }],
    [
      { hosts: [www], urls: [`https://${www}/a`] },
      null,
      www,
      { urls: [{ host: www, path: "/a" }], hosts: [www] },
    ],
    [{ hosts: [www], patterns: ["path:a"] }, null, null, { patterns: ["path:a"], hosts: [www] }],
    [
      { prefixes: ["/a", `https://${www}/`] },
      null,
      null,
      { prefixes: [{ host: null, path: "/a" }], hosts: [www] },
    ],
    [{ patterns: ["path:a"], soft: true }, null, null, { patterns: ["path:a"], soft: true }],
    [{ everything: true, soft: true }, img, img, { patterns: [everything], soft: true }],
    [{ tags: ["a"], soft: true }, null, null, { tags: ["a"], soft: true }],
  ])("%j is widened for others", (given, only, host, items) => {
    const patterns =
      given.soft === true && given.patterns !== undefined ? given.patterns : [everything];
    expect(planned(given, only)).toEqual({ host, patterns, items });
  });
});

const generated = (url: string): IndexedEntry => {
  const [path = "", query = ""] = url.split("?");
  return { kind: "generated", path, query, mime: "text/html" };
};
const file = (path: string): IndexedEntry => ({ kind: "static", path, query: "", mime: "a/b" });
const matching = (patterns: readonly string[], entries: Readonly<Record<string, IndexedEntry>>) => {
  using guard = new Guard();
  return Object.keys(entries).filter((name) => {
    const of = entries[name];
    return of !== undefined && guard.firstMatch(of, [[patterns]]) === 0;
  });
};
const named = (urls: readonly string[], files: readonly string[]) => ({
  ...Object.fromEntries(urls.map((url) => [url, generated(url)])),
  ...Object.fromEntries(files.map((path) => [`file ${path}`, file(path)])),
});

test.each([
  ["/foo", ["/foo"], ["file foo"]],
  ["/foo?a=1&b=2", ["/foo?a=1&b=2"], ["file foo"]],
  ["/foo/", ["/foo/"], ["file foo/index.html"]],
  ["/caf\u00e9 x?q=a b", ["/caf%C3%A9%20x?q=a+b", "/caf%C3%A9%20x?q=a%20b"], ["file caf\u00e9 x"]],
])("the URL %s", (url, urls, files) => {
  const all = named(
    [
      "/foo",
      "/foo/",
      "/Foo",
      "/foo/a",
      "/foobar",
      "/foo?a=1&b=2",
      "/foo?b=2&a=1",
      "/foo?a=1",
      "/caf%C3%A9%20x?q=a+b",
      "/caf%C3%A9%20x?q=a%20b",
      "/caf%C3%A9%20x",
      "/foo/index.html",
    ],
    ["foo", "foo/index.html", "caf\u00e9 x", "foo/other.html"],
  );
  expect(matching(patternsOfUrl(url, ["index.html"]), all)).toEqual([...urls, ...files]);
});

test.each([
  ["/foo", ["/foo", "/foo?a=1", "/foo/", "/foo/a", "/foo/a/b?c"], ["file foo", "file foo/a"]],
  ["/foo/", ["/foo/", "/foo/a", "/foo/a/b?c"], ["file foo/a"]],
  ["/foo/a", ["/foo/a", "/foo/a/b?c"], ["file foo/a"]],
  ["/%C3%A9", ["/%C3%A9/x"], ["file \u00e9/x"]],
  ["/\u00e9", ["/%C3%A9/x"], ["file \u00e9/x"]],
])("the prefix %s", (prefix, urls, files) => {
  const all = named(
    [
      "/foo",
      "/foo?a=1",
      "/foo/",
      "/foo/a",
      "/foo/a/b?c",
      "/foobar",
      "/foo.html",
      "/Foo/a",
      "/en/foo/a",
      "/",
      "/%C3%A9/x",
      "/e",
    ],
    ["foo", "foo/a", "foobar/a", "\u00e9/x"],
  );
  expect(matching(patternsOfPrefix(prefix), all)).toEqual([...urls, ...files]);
});
