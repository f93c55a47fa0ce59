// Who claims to be what, by user agent.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { crawlers, nameOf } from "../../../src/agent/bots/crawlers.ts";
import { openClaimedBots, productName } from "../../../src/agent/bots/user-agents.ts";

const data = join(import.meta.dirname, "../../../../shared/data/ua/crawler-user-agents.json");

test.each([
  ["curl/8.14.1", "curl"],
  ["Wget/1.21", "wget"],
  ["Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"],
  ["portscout/0.8.1", "portscout"],
  ["Mozilla/5.0 (compatible; SomeNewBot/1.0; bot)", "SomeNewBot"],
])("%s claims to be %s", (userAgent, name) => {
  expect(openClaimedBots()(userAgent)?.name).toBe(name);
});

test.each([
  "",
  undefined,
  "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
])("%j claims nothing", (userAgent) => {
  expect(openClaimedBots()(userAgent)).toBeUndefined();
});

test("an answer is the same the second time, and after the memory overflowed", () => {
  const lookup = openClaimedBots();
  const first = lookup("curl/1");
  for (let i = 0; i < 10_050; i++) lookup(`Mozilla/5.0 (X11) Firefox/${i}`);
  expect(lookup("curl/1")).toEqual(first);
});

test("what stands beyond the part that is looked at does not count", () => {
  expect(
    openClaimedBots()(
      `Mozilla/5.0 (X11; Linux x86_64) ${"Firefox/140.0 ".repeat(60)} Googlebot/2.1`,
    ),
  ).toBeUndefined();
});

test("every crawler has a name that is no expression", () => {
  expect(crawlers.length).toBeGreaterThan(1_000);
  expect(
    crawlers.filter(({ name }) => name === "" || /[\\^$[\]|]/.test(name)).map(({ name }) => name),
  ).toEqual([]);
  expect(nameOf("[wW]get")).toBe("wget");
  expect(nameOf("(^| )sentry\\/")).toBe("sentry");
});

test.each([
  ["Mozilla/5.0 (compatible; Foo/1.0)", "Foo"],
  ["///", "unnamed"],
  ["bot", "bot"],
])("the product of %j is %s", (userAgent, name) => {
  expect(productName(userAgent)).toBe(name);
});

test.skipIf(!existsSync(data))(
  "the published instances of every crawler are recognized as bots, but for a few that pass as browsers",
  () => {
    const lookup = openClaimedBots();
    const list = JSON.parse(readFileSync(data, "utf8")) as readonly {
      instances: readonly string[];
    }[];
    const instances = list.flatMap(({ instances: all }) => all);
    const missed = instances.filter((userAgent) => lookup(userAgent) === undefined);
    expect(instances.length).toBeGreaterThan(2_000);
    expect(missed.length / instances.length).toBeLessThan(0.03);
  },
);
