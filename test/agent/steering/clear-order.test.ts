// What the items of a clear select on an agent: the URL as it was given and as the rules for queries leave it.

import { expect, test } from "vitest";
import type { Devlove } from "../../../src/core/serving/devlove.ts";
import { effectiveDevlove } from "../../../src/core/serving/effective-devlove.ts";
import type { ServedHost } from "../../../src/core/serving/serving-state.ts";
import { clearSelection, selectedBy } from "../../../src/agent/steering/clear-order.ts";
import { exactUrl } from "../../../src/core/patterns/pattern-recipes.ts";

const main = "www.example.com";
const sub = "img.example.com";

function hostsOf(...devloves: readonly (Devlove | null)[]): readonly ServedHost[] {
  return [main, sub, "old.example.com"].slice(0, devloves.length).map((name, at) => {
    const devlove = devloves[at] ?? null;
    return {
      name,
      site: devlove === null ? null : effectiveDevlove(devlove, main, null),
      views: { kind: "none" },
      bots: { mode: "enforce", bad: [], vip: [], pairs: [], policy: null } as never,
    };
  });
}
const devlove = (rules: readonly object[], index?: readonly string[]): Devlove =>
  ({
    domains: { [main]: { cache: { rules }, ...(index !== undefined && { index }) } },
  }) as Devlove;

const ignoring = devlove([{ path: "/shop/**", query: { ignore: ["utm_*"], sort: true } }]);
const url = (path: string, host: string | null = null) => ({ urls: [{ host, path }] });
const groups = (items: object, hosts: readonly ServedHost[]) =>
  clearSelection(items, hosts).groups?.map(({ host, patterns }) => [host, patterns]);

test("a query counts as it was given and as the rule of its path leaves it", () => {
  const hosts = hostsOf(ignoring, ignoring);
  const static_ = (path: string) => `kind:static ${exactUrl(path)}`;
  expect(groups(url("/shop/a?utm_x=1&b=2&a=1"), hosts)).toEqual([
    [null, [exactUrl("/shop/a?utm_x=1&b=2&a=1"), exactUrl("/shop/a?a=1&b=2"), static_("/shop/a")]],
  ]);
  expect(groups(url("/shop/a?utm_x=1"), hosts)).toEqual([
    [null, [exactUrl("/shop/a?utm_x=1"), exactUrl("/shop/a"), static_("/shop/a")]],
  ]);
  expect(groups(url("/blog?utm_x=1"), hosts)).toEqual([
    [null, [exactUrl("/blog?utm_x=1"), static_("/blog")]],
  ]);
  expect(groups(url("/shop/", main), hosts)).toEqual([
    [main, [exactUrl("/shop/"), static_("/shop/index.html")]],
  ]);
});

test("a listed width of a picture is of the picture, which is cleared with all of its forms", () => {
  const sized = {
    domains: { [main]: { images: { optimize: true, widths: [640] } } },
  } as unknown as Devlove;
  // Sites that differ in their widths differ in what is cleared.
  const hosts = hostsOf(sized, devlove([]));
  const file = `kind:static ${exactUrl("/a.jpg")}`;
  expect(groups(url("/a.jpg?width=640"), hosts)).toEqual([
    [main, [exactUrl("/a.jpg?width=640"), exactUrl("/a.jpg"), file]],
    [sub, [exactUrl("/a.jpg?width=640"), file]],
  ]);
  expect(groups(url("/a.jpg?width=641"), hosts)?.[0]?.[1]).toEqual([
    exactUrl("/a.jpg?width=641"),
    file,
  ]);
});

test("where fields choose the rule, each rule that a URL may have counts", () => {
  const byField = devlove([
    { path: "/shop/**", match: { header: { "X-App": "*" } }, query: { keep: ["id"] } },
    { path: "/shop/**", query: { ignore: ["utm_*"] } },
  ]);
  const [[, patterns] = []] = groups(url("/shop/a?id=1&page=2&utm_x=1"), hostsOf(byField)) ?? [];
  for (const query of ["id=1&page=2&utm_x=1", "id=1", "id=1&page=2"])
    expect(patterns).toContain(exactUrl(`/shop/a?${query}`));
});

test("hosts with rules of their own have patterns of their own; one without a site takes it as given", () => {
  const hosts = hostsOf(ignoring, devlove([], ["start.htm"]), null);
  const given = exactUrl("/shop/?utm_x=1");
  expect(groups(url("/shop/?utm_x=1"), hosts)).toEqual([
    [main, [given, exactUrl("/shop/"), expect.stringContaining("kind:static ")]],
    [sub, [given, expect.stringContaining("kind:static ")]],
    ["old.example.com", [given]],
  ]);
  expect(groups(url("/shop/a?utm_x=1", "old.example.com"), hosts)?.[0]?.[1]).toEqual([
    exactUrl("/shop/a?utm_x=1"),
    `kind:static ${exactUrl("/shop/a")}`,
  ]);
});

test("prefixes and hosts are groups beside the customer's own patterns", () => {
  const items = {
    patterns: ["path:news"],
    prefixes: [{ host: sub, path: "/foo" }],
    hosts: [main],
    tags: ["product-42"],
  };
  const selected = clearSelection(items, hostsOf(ignoring, ignoring));
  expect(selected).toEqual({
    patterns: ["path:news"],
    groups: [
      { host: null, patterns: ["tag:productz2d42"] },
      { host: sub, patterns: ["url:z2ffoo", "url:z2ffooz2f*", "url:z2ffooz3f*"] },
      { host: main, patterns: null },
    ],
  });
});

test("a clear without items is its patterns; of a domain that is not served, items count as given", () => {
  const state = { domains: [{ name: main, hosts: hostsOf(ignoring), manifest: null }] };
  expect(selectedBy({ domain: main, patterns: ["path:a"] }, state)).toEqual({
    patterns: ["path:a"],
  });
  const items = url("/shop/a?utm_x=1");
  const asked = { domain: "gone.example.com", patterns: ["path:a"], items };
  expect(selectedBy(asked, state).groups?.[0]?.patterns).toHaveLength(2);
});

test("a thousand ordinary URLs are some thousand patterns, and too many spellings clear everything", () => {
  const many = (text: string) => ({
    urls: Array.from({ length: 1_000 }, (_, no) => ({ host: null, path: `${text}${no}` })),
  });
  const ordinary = clearSelection(many("/shop/product.html?utm_x=1&id="), hostsOf(ignoring));
  expect(ordinary.groups?.[0]?.patterns).toHaveLength(1_000 * 2 + 1);
  const odd = many("/shop/cafe\u0301 au lait!/[x]?q=(a b)&r=~!'+caf\u00e9|");
  expect(clearSelection(odd, hostsOf(ignoring))).toEqual({ patterns: null, isWider: true });
});
