// The crawlers whose owners publish their addresses: under the names that their user agents claim.

import { expect, test } from "vitest";
import { openClaimedBots } from "../../src/agent/bots/unreviewed/user-agents.ts";
import { hookUrlFault } from "../../src/core/addresses/public-address.ts";
import {
  publishedCrawler,
  publishedCrawlers,
  publishedUnder,
} from "../../src/core/published-crawlers.ts";

const lookup = openClaimedBots();
const all = publishedCrawlers.flatMap(({ bot, covers }) => [bot, ...covers]);

test("no name is there twice, and each URL may be fetched", () => {
  expect(new Set(all).size).toBe(all.length);
  for (const { url } of publishedCrawlers) {
    expect(hookUrlFault(url, false)).toBeUndefined();
    expect(new URL(url).protocol).toBe("https:");
  }
});

test.each(all)("%s is what its user agent claims", (name) => {
  const agent = `Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ${name}/1.1; +https://example.com/bot)`;
  expect(lookup(agent)?.name).toBe(name);
});

test("a covered name leads to the one under which its addresses are published", () => {
  expect(publishedUnder("Googlebot-Image")).toBe("Googlebot");
  expect(publishedUnder("Googlebot")).toBeUndefined();
  expect(publishedCrawler("Googlebot")?.url).toContain("common-crawlers");
  expect(publishedCrawler("Googlebot-Image")).toBeUndefined();
});
