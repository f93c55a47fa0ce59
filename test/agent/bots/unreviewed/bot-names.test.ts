// A bot's name is the token that stands in its agent: over published agents, over products of one owner, over agents made to harm.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { publishedAgents } from "../../../support/published-agents.ts";
import { openClaimedBots } from "../../../../src/agent/bots/unreviewed/user-agents.ts";

const data = join(import.meta.dirname, "../../../../../shared/data/ua");
const isDataMissing = !existsSync(data);
const read = (name: string): string => readFileSync(join(data, name), "utf8");
const lookup = openClaimedBots();
const nameOf = (agent: string): string | undefined => lookup(agent)?.name;

/** Agents whose name does not stand in them. */
const misnamed = (agents: readonly string[]): readonly (readonly [string, string])[] =>
  agents.flatMap((agent) => {
    const name = nameOf(agent);
    return name === undefined || agent.includes(name) ? [] : [[name, agent] as const];
  });

test("the name of every agent that the package knows stands in it", () => {
  expect(publishedAgents.length).toBeGreaterThan(2_000);
  expect(misnamed(publishedAgents)).toEqual([]);
});

test.skipIf(isDataMissing)("so it does in 2,116 published agents, of which 2,107 are bots", () => {
  type Crawlers = readonly { readonly instances: readonly string[] }[];
  const crawlers = JSON.parse(read("crawler-user-agents.json")) as Crawlers;
  const agents = crawlers.flatMap(({ instances }) => instances);
  expect(agents).toHaveLength(2_116);
  expect(agents.filter((agent) => nameOf(agent) !== undefined)).toHaveLength(2_107);
  expect(misnamed(agents)).toEqual([]);
});

test.skipIf(isDataMissing)(
  "bots that only isbot knows have a token of their agent, up to case",
  () => {
    const agents = Object.values(parse(read("isbot-crawlers.yml")) as Record<string, unknown[]>)
      .flat()
      .map(String);
    expect(agents).toHaveLength(626);
    const wrong = misnamed(agents).filter(
      ([name, agent]) => !agent.toLowerCase().includes(name.toLowerCase()),
    );
    expect(wrong).toEqual([["unnamed", "123"]]);
    // What comes in a browser's costume is not called by it.
    const costumes = agents.filter((agent) =>
      /^(?:mozilla|build|cfnetwork)$/i.test(nameOf(agent) ?? ""),
    );
    expect(costumes).toEqual([]);
  },
);

test.skipIf(isDataMissing)("no browser has a name", () => {
  const browsers = Object.values(parse(read("isbot-browsers.yml")) as Record<string, unknown[]>)
    .flat()
    .map(String);
  expect(browsers).toHaveLength(555);
  expect(browsers.filter((agent) => nameOf(agent) !== undefined)).toEqual([]);
});

const chrome = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36";
const compatible = (product: string): string => `Mozilla/5.0 (compatible; ${product})`;
const yandex = (product: string): string => compatible(`${product}; +http://yandex.com/bots`);

// Two products of one owner, by agents as they are published.
test.each([
  ["AhrefsBot", compatible("AhrefsBot/7.0; +http://ahrefs.com/robot/")],
  ["AhrefsSiteAudit", compatible("AhrefsSiteAudit/6.1; +http://ahrefs.com/robot/")],
  ["Googlebot", compatible("Googlebot/2.1; +http://www.google.com/bot.html")],
  ["Googlebot-Image", "Googlebot-Image/1.0"],
  ["Googlebot-News", "Googlebot-News"],
  ["Googlebot-Video", "Googlebot-Video/1.0"],
  [
    "Googlebot-Mobile",
    "SAMSUNG-SGH-E250/1.0 (compatible; Googlebot-Mobile/2.1; +http://www.google.com/bot.html)",
  ],
  ["AdsBot-Google", "AdsBot-Google (+http://www.google.com/adsbot.html)"],
  [
    "AdsBot-Google-Mobile",
    "Mozilla/5.0 (Linux; Android 5.0) (compatible; AdsBot-Google-Mobile; +http://www.google.com/mobile/adsbot.html)",
  ],
  ["AdsBot-Google-Mobile-Apps", "AdsBot-Google-Mobile-Apps"],
  ["Mediapartners-Google", "Mediapartners-Google"],
  [
    "Feedfetcher-Google",
    "Feedfetcher-Google; (+http://www.google.com/feedfetcher.html; 1 subscribers)",
  ],
  ["APIs-Google", "APIs-Google (+https://developers.google.com/webmasters/APIs-Google.html)"],
  ["Storebot-Google", `Mozilla/5.0 (X11; Linux x86_64; Storebot-Google/1.0) ${chrome}`],
  ["Google-InspectionTool", compatible("Google-InspectionTool/1.0")],
  ["GoogleOther", "GoogleOther"],
  ["bingbot", compatible("bingbot/2.0; +http://www.bing.com/bingbot.htm")],
  ["adidxbot", compatible("adidxbot/2.0;  http://www.bing.com/bingbot.htm")],
  [
    "BingPreview",
    "Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/534+ (KHTML, like Gecko) BingPreview/1.0b",
  ],
  ["MicrosoftPreview", "MicrosoftPreview/2.0; +https://aka.ms/MicrosoftPreview"],
  ["msnbot", "msnbot/2.0b (+http://search.msn.com/msnbot.htm)"],
  ["msnbot-media", "msnbot-media/1.1 (+http://search.msn.com/msnbot.htm)"],
  ["msnbot-NewsBlogs", "msnbot-NewsBlogs/2.0b (+http://search.msn.com/msnbot.htm)"],
  ["librabot", "librabot/1.0 (+http://search.msn.com/msnbot.htm)"],
  ["YandexBot", yandex("YandexBot/3.0")],
  ["YandexImages", yandex("YandexImages/3.0")],
  ["YandexVideo", yandex("YandexVideo/3.0")],
  ["YandexVideoParser", yandex("YandexVideoParser/1.0")],
  ["YandexMetrika", yandex("YandexMetrika/2.0")],
  ["YandexDirect", yandex("YandexDirect/3.0")],
  ["YandexDirectDyn", yandex("YandexDirectDyn/1.0")],
  ["YandexUserproxy", yandex("YandexUserproxy; robot")],
  [
    "YandexMobileBot",
    `Mozilla/5.0 (iPhone) Version/8.0 Safari/600.1.4 (compatible; YandexMobileBot/3.0; +http://yandex.com/bots)`,
  ],
  [
    "facebookexternalhit",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
  ],
  ["facebookcatalog", "facebookcatalog/1.0"],
  [
    "meta-externalagent",
    "meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)",
  ],
  ["meta-externalfetcher", "meta-externalfetcher/1.1"],
  ["meta-externalads", "meta-externalads/1.1"],
  ["SemrushBot", compatible("SemrushBot/7~bl; +http://www.semrush.com/bot.html")],
  ["SemrushBot-SA", compatible("SemrushBot-SA/0.97; +http://www.semrush.com/bot.html")],
  ["SemrushBot-BA", compatible("SemrushBot-BA; +http://www.semrush.com/bot.html")],
  ["DuckDuckBot", "DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)"],
  ["DuckDuckBot-Https", compatible("DuckDuckBot-Https/1.1; https://duckduckgo.com/duckduckbot")],
  ["DuckDuckGo-Favicons-Bot", compatible("DuckDuckGo-Favicons-Bot/1.0; +http://duckduckgo.com")],
  ["Slackbot", "Slackbot 1.0 (+https://api.slack.com/robots)"],
  ["Slackbot-LinkExpanding", "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"],
  ["Slack-ImgProxy", "Slack-ImgProxy (+https://api.slack.com/robots)"],
  ["Sogou web spider", "Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)"],
  ["Sogou News Spider", "Sogou News Spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)"],
  ["Baiduspider", compatible("Baiduspider/2.0; +http://www.baidu.com/search/spider.html")],
  [
    "Baiduspider-render",
    compatible("Baiduspider-render/2.0; +http://www.baidu.com/search/spider.html"),
  ],
  ["coccocbot-image", compatible("coccocbot-image/1.0; +http://help.coccoc.com/searchengine")],
  ["coccocbot-web", compatible("coccocbot-web/1.0; +http://help.coccoc.com/searchengine")],
  ["Pinterest", "Pinterest/0.2 (+http://www.pinterest.com/bot.html)"],
  ["Pinterestbot", compatible("Pinterestbot/1.0; +http://www.pinterest.com/bot.html)")],
  ["Qwantbot", compatible("Qwantbot/1.0_12345; +https://help.qwant.com/bot/")],
  ["Qwantbot-news", compatible("Qwantbot-news/2.0; +https://help.qwant.com/bot/")],
  ["Exabot", compatible("Exabot/3.0;  http://www.exabot.com/go/robot")],
  ["Exabot-Images", compatible("Exabot-Images/3.0; +http://www.exabot.com/go/robot")],
  ["Netumo", "Netumo/0.2 (+https://www.netumo.app/)"],
  ["SISTRIX Crawler", compatible("SISTRIX Crawler; http://crawler.sistrix.net/")],
])("%s is the name of %s, and of no other row", (name, agent) => {
  expect(nameOf(agent)).toBe(name);
});

// Only isbot knows them, or the crawler is known by an address alone.
test.each([
  ["Jorgee", "Mozilla/5.0 Jorgee"],
  [
    "GomezAgent",
    "Mozilla/5.0 (Windows NT 6.1; WOW64; rv:38.0; GomezAgent 3.0) Gecko/20100101 Firefox/38.0",
  ],
  ["Hydra", "Mozilla/5.0 (Hydra Proxy)"],
  [
    "googleweblight",
    "Mozilla/5.0 (Linux; Android 4.2.1; Nexus 5 Build/JOP40D) AppleWebKit/535.19 (KHTML, like Gecko; googleweblight) Chrome/38.0.1025.166 Mobile Safari/535.19",
  ],
  ["Wappalyzer", compatible("Wappalyzer; +https://github.com/AliasIO/Wappalyzer")],
  [
    "Amazon-Route53-Health-Check-Service",
    "Amazon-Route53-Health-Check-Service (ref b0eb04d5; report http://amzn.to/1vsZADi)",
  ],
  ["monitor.us", compatible("www.monitor.us - free monitoring service; http://www.monitor.us")],
  ["SomeNewBot", compatible("SomeNewBot/1.0; bot")],
  ["YandexTomorrow", yandex("YandexTomorrow/1.0")],
  ["AhrefsBot-Next", compatible("AhrefsBot-Next/1.0; +http://ahrefs.com/robot/")],
  [
    "changedetection",
    "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1;  http://www.changedetection.com/bot.html )",
  ],
])("%s is the name of %s", (name, agent) => {
  expect(nameOf(agent)).toBe(name);
});

// The next version is the same bot.
test.each([
  [
    "DirBuster",
    "DirBuster-1.0-RC1 (http://www.owasp.org/)",
    "DirBuster-2.1 (http://www.owasp.org/)",
  ],
  [
    "trendictionbot",
    "Mozilla/5.0 (Windows NT 10.0; trendictionbot0.5.0; trendiction search; http://www.trendiction.de/bot)",
    "Mozilla/5.0 (Windows NT 10.0; trendictionbot0.6.1; trendiction search; http://www.trendiction.de/bot)",
  ],
  ["Experibot", "Experibot-v2 http://goo.gl/ZAr8wX", "Experibot-v3 http://goo.gl/ZAr8wX"],
  ["AhrefsBot", "AhrefsBot/6.1", "AhrefsBot/7.0"],
])("%s has its name at any version", (name, one, other) => {
  expect([nameOf(one), nameOf(other)]).toEqual([name, name]);
});

test.each([
  ["Googlebot", "GOOGLEBOT/2.1 (+http://www.google.com/bot.html)"],
  ["AhrefsBot", "ahrefsbot/7.0"],
  ["Wget", "Wget/1.21"],
  ["DotBot", "DotBot/1.2"],
  ["dotbot", "dotbot"],
])("%s is spelled as it is published in %s", (name, agent) => {
  expect(nameOf(agent)).toBe(name);
});

test("two crawlers whose names differ in case only keep their descriptions", () => {
  const uptime = lookup(compatible("Uptimebot/1.0; +http://www.uptime.com/uptimebot"));
  const getUptime = lookup(compatible("UptimeBot/1.0; +https://www.getuptime.co"));
  expect([uptime?.name, getUptime?.name]).toEqual(["Uptimebot", "UptimeBot"]);
  expect(uptime?.description).not.toBe(getUptime?.description);
  expect(uptime?.aliases).not.toContain("UptimeBot");
});

const piece = fc.oneof(
  fc.constantFrom(
    "Googlebot",
    "AhrefsBot/",
    "yandex.com/bots",
    "bot",
    "Mozilla/5.0 (",
    "compatible; ",
  ),
  fc.constantFrom(
    " ",
    ";",
    "/",
    "@",
    "://",
    "www.",
    "\u0000",
    "\n",
    "é",
    "\u202e",
    "'",
    '"',
    "<",
    "|",
    "%",
  ),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom(...publishedAgents.slice(0, 300)),
);

test("whatever stands in an agent, a name is short, printable and in ASCII, and stands in the part that is looked at", () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const agent = pieces.join("");
      const bot = lookup(agent);
      if (bot === undefined || bot.name === "unnamed") return;
      expect(bot.name).toMatch(/^[A-Za-z0-9][\w.!&'~ -]{0,62}[\w.!&'~-]?$/);
      expect(agent.slice(0, 512).toLowerCase()).toContain(bot.name.toLowerCase());
    }),
    { numRuns: 3_000 },
  );
});

test("a name of 8 KiB is cut, and what stands behind it names nobody", () => {
  expect(nameOf(`bot${"x".repeat(8_192)}/1.0 Googlebot/2.1`)).toBe(`bot${"x".repeat(61)}`);
});
