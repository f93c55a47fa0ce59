// Names that bots had before they were tokens of their agents: pairs and lists in which customers wrote them keep their effect, for every published agent.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { CrawlerNames } from "../../../../src/agent/bots/unreviewed/crawlers.ts";
import { publishedAgents } from "../../../support/published-agents.ts";
import { createJudge } from "../../../../src/agent/bots/decisions/evidence.ts";
import {
  openClaimedBots,
  formerProductName,
} from "../../../../src/agent/bots/unreviewed/user-agents.ts";
import { presentNamesOf } from "../../../../src/core/former-bot-names.ts";
import type { HostBots } from "../../../../src/core/serving/serving-state.ts";
import { hostSetOf } from "../../../support/bot-tables.ts";

const path = join(import.meta.dirname, "../../../../../shared/data/ua/isbot-crawlers.yml");
const furtherAgents = existsSync(path)
  ? Object.values(parse(readFileSync(path, "utf8")) as Record<string, unknown[]>)
      .flat()
      .map(String)
  : [];

const lookup = openClaimedBots();
const crawlers = new CrawlerNames();
const agents = [...publishedAgents, ...furtherAgents].filter(
  (agent) => lookup(agent) !== undefined,
);

/** How agents were named then. */
function nameThen(agent: string): string {
  const crawler = crawlers.match(agent);
  if (crawler !== undefined) return crawler.name;
  const own = formerProductName(agent);
  return crawlers.named(own)?.name ?? own;
}

const bots = (over: Partial<HostBots>): HostBots => ({
  mode: "enforce",
  unknownBotsCanAccess: null,
  allow: new Set(),
  deny: new Set(),
  vip: [],
  bad: [],
  ...over,
});
const judge = createJudge(lookup);
const stranger = "2001:db8::7";
const reasonOf = (rules: HostBots, agent: string): string =>
  judge(rules, stranger, agent, "a.example").reason;

test.each([
  ["AhrefsBotSiteAudit", "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)"],
  [
    "AhrefsBotSiteAudit",
    "Mozilla/5.0 (compatible; AhrefsSiteAudit/6.1; +http://ahrefs.com/robot/)",
  ],
  ["yandex.com/bots", "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)"],
  ["yandex.com/bots", "Mozilla/5.0 (compatible; YandexImages/3.0; +http://yandex.com/bots)"],
  ["yandex.com/bots", "Mozilla/5.0 (compatible; YandexMetrika/2.0; +http://yandex.com/bots)"],
  ["yandex.com/bots", "Mozilla/5.0 (compatible; YandexOfNextYear/1.0; +http://yandex.com/bots)"],
  ["Netumonetumo", "Netumo/0.2 (+https://www.netumo.app/)"],
  [
    "sistrixSISTRIX crawler",
    "Mozilla/5.0 (compatible; SISTRIX Crawler; http://crawler.sistrix.net/)",
  ],
  ["wget", "Wget/1.21"],
  ["Mozilla", "Mozilla/5.0 Jorgee"],
])("a pair with %s holds for %s", (old, agent) => {
  expect(nameThen(agent)).toBe(old);
  const denied = bots({ deny: new Set([old]), unknownBotsCanAccess: true });
  expect(reasonOf(denied, agent)).toBe("deny-pair");
  expect(reasonOf(bots({ allow: new Set([old]) }), agent)).toBe("allow-pair");
});

test("a pair with any name of then holds for every published agent that had it", () => {
  const groups = Map.groupBy(agents, nameThen);
  expect(groups.size).toBeGreaterThan(1_400);
  const lost = [...groups].flatMap(([old, named]) => {
    const denied = bots({ deny: new Set([old]), unknownBotsCanAccess: true });
    return named.filter((agent) => reasonOf(denied, agent) !== "deny-pair");
  });
  expect(lost).toEqual([]);
});

test("a pair with a name of then holds for nobody else, but for another spelling of the same crawler", () => {
  for (const old of [
    "AhrefsBotSiteAudit",
    "yandex.com/bots",
    "bingbot",
    "msnbot",
    "Mozilla",
    "build",
  ]) {
    const denied = bots({ deny: new Set([old]), unknownBotsCanAccess: true });
    const further = agents.filter(
      (agent) => nameThen(agent) !== old && reasonOf(denied, agent) === "deny-pair",
    );
    expect(further.map((agent) => lookup(agent)?.name).filter((name) => name !== old)).toEqual([]);
  }
});

test("a pair with a product's own name comes before one with a name that it shared", () => {
  const image = "Mozilla/5.0 (compatible; YandexImages/3.0; +http://yandex.com/bots)";
  const web = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)";
  const rules = bots({ deny: new Set(["yandex.com/bots"]), allow: new Set(["YandexImages"]) });
  expect([reasonOf(rules, image), reasonOf(rules, web)]).toEqual(["allow-pair", "deny-pair"]);
});

test("addresses that are held for a name of then are held for the bots that had it: an allow pair helps no claim", () => {
  const image = "Mozilla/5.0 (compatible; YandexImages/3.0; +http://yandex.com/bots)";
  const held = hostSetOf([{ bot: "yandex.com/bots", range: "192.0.2.0/24" }]);
  for (const name of ["YandexImages", "yandex.com/bots"]) {
    const rules = bots({ allow: new Set([name]), vip: [held], unknownBotsCanAccess: false });
    expect(reasonOf(rules, image)).toBe("fake-blocked");
  }
});

test("published agents are told as those for which an old name holds", () => {
  const untold = agents.flatMap((agent) => {
    const [then, now] = [nameThen(agent), lookup(agent)?.name ?? ""];
    const isTold = then === now || presentNamesOf(then).includes(now);
    // Tokens that were made up for one request.
    return isTold || /burpcollaborator|^uKxeH2946$|^plus$/.test(now) ? [] : [`${then} = ${now}`];
  });
  expect([...new Set(untold)]).toEqual([]);
  expect(presentNamesOf("AhrefsBotSiteAudit")).toEqual(["AhrefsBot", "AhrefsSiteAudit"]);
  expect(presentNamesOf("yandex.com/bots").length).toBeGreaterThan(30);
  expect(presentNamesOf("SemrushBot")[0]).toBe("SemrushBot");
  expect(presentNamesOf("YandexBot")).toEqual([]);
});
