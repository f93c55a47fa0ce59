// By which filters one comes from figures to the requests that they count.

import { expect, test } from "vitest";
import { cacheChoices, cachePartsShown, cacheWords } from "../../src/console/cache-words.ts";
import { filterOfTop } from "../../src/console/top-filter.ts";
import { cacheOutcomes } from "../../src/wire/customer/requests.ts";

const long = `/${"a".repeat(299)}`;
test.each([
  ["top_paths", "/blog/", { path_is: "/blog/" }],
  ["top_paths", long, { path: long }],
  ["top_status_paths", "404 /a b", { status: "404", path_is: "/a b" }],
  ["top_status_paths", `200 ${long}`, { status: "200", path: long }],
  ["top_status_paths", "200 ", { status: "200", path_is: "" }],
  ["top_bots", "Googlebot", { bot: "Googlebot" }],
  ["top_addresses", "192.0.2.7", { address: "192.0.2.7" }],
] as const)("%s: %s", (by, key, filter) => {
  expect(filterOfTop(by, key)).toEqual(filter);
});

test("each outcome that the API filters by is offered, and one that it does not know is kept", () => {
  expect([...cachePartsShown].toSorted()).toEqual([...cacheOutcomes].toSorted());
  expect(cacheChoices("pass").map(([outcome]) => outcome)).toEqual(["", ...cachePartsShown]);
  expect(cacheChoices("HIT").at(-1)).toEqual(["HIT", "HIT"]);
  expect([cacheWords("pass"), cacheWords("later"), cacheWords("toString")]).toEqual([
    "not cached (pass)",
    "later",
    "toString",
  ]);
});
