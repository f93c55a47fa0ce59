// Browsers and apps of people whose agents hold a word of bots, and bots in the costume of such browsers.

import fc from "fast-check";
import { expect, test } from "vitest";
import { openClaimedBots } from "../../../../src/agent/bots/unreviewed/user-agents.ts";

const lookup = openClaimedBots();
const webkit = "AppleWebKit/537.36 (KHTML, like Gecko)";
const phone = (model: string, more = ""): string =>
  `Mozilla/5.0 (Linux; Android 13; ${model}) ${webkit} Chrome/124.0.0.0 Mobile Safari/537.36${more}`;

test.each([
  ["a model named as a crawler", phone("Spider 8")],
  ["a model named as a bot", phone("M bot 54")],
  ["a maker named as a bot", phone("X18 Build/CUBOT")],
  ["a model that discovers", phone("GM Discovery II")],
  ["a model for news", phone("Newsday_A2")],
  ["a model with an address of its maker's app", phone("VFD 1300; wv", " [air.com.A888poker/1.0]")],
  [
    "a television set",
    `Opera/9.80 NETTV/4.5.0 Mozilla/5.0 (Linux armv7i; CE-HTML/1.0; U; en) ${webkit} Chrome/49.0.2623.75 Safari/537.36 Tbrowser/2.0 _TV_/V8-1 (MAKER,32,wireless)`,
  ],
  [
    "a television set that catches",
    `Mozilla/5.0 (Linux armv7l) ${webkit} Chrome/84.0.4147.140 Safari/537.36 OPR/46.0.2207.0 OMI/4.21.4.112.Catcher4.66 Model/Maker-MT9602`,
  ],
  ["a television set of a search engine", phone("Maker Google TV Build/RTM7; wv")],
  ["a browser of a search engine", phone("M2", " SogouMSE,SogouMobileBrowser/5.28.7")],
  [
    "a telephone with Java",
    "MakerJ10i2/R1x Browser/NetFront/3.5 Profile/MIDP-2.1 Configuration/CLDC-1.1 JavaPlatform/JP-8.5",
  ],
  [
    "a telephone that tells its ways",
    "MAKER_E141TV/ WAP Browser/MAUI(HTTP PGDL;HTTPS)Profile/Q03C1-2.40",
  ],
  ["a player of films", "Lavf/60.16.100"],
  ["a player of Windows", "NSPlayer/12.00.19041"],
  ["an app made with Dart", "Dart/3.3 (dart:io)"],
  ["an app of a music service", "Spotify/8.9.0 Android/33 (Pixel 7)"],
  ["an app of a news paper", "DailyNews/6.0.3 iPad14,4 iPadOS/17.5.1 CFNetwork/1.0 Darwin/23.5.0"],
  ["an app of a shop", "Shop.com/24.12.6.100 (Android/10/JNY-LX1)"],
  ["an app that downloads", "DownloadManager/4.1.1 (Linux; U; Android 4.1.1; MB886 Build/9.8.0)"],
])("%s is no bot", (_name, agent) => {
  expect(lookup(agent)).toBeUndefined();
});

test.each([
  ["FastSpider", phone("FastSpider/8.1")],
  ["SomeBot", phone("Pixel 7", " (compatible; SomeBot/1.0; +https://bot.example/)")],
  ["Somebot", phone("Somebot", " +https://somebot.example/")],
  ["NewsCrawler", phone("Pixel 7", " NewsCrawler/1.0")],
  [
    "HeadlessChrome",
    `Mozilla/5.0 (X11; Linux x86_64) ${webkit} HeadlessChrome/124.0.0.0 Safari/537.36`,
  ],
  [
    "Google-Test",
    `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko; Google-Test) Chrome/85.0.4183.140 Safari/537.36`,
  ],
  ["Nikto", "Mozilla/5.00 (Nikto/2.1.6) (Evasions:None) (Test:map_codes)"],
  [
    "WindowsPowerShell",
    "Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.19041.1",
  ],
  ["PowerShell", "Mozilla/5.0 (Linux; Debian; en-US) PowerShell/7.4.2"],
  ["Lavf", "Lavf/60.16.100 (+https://player.example/)"],
  ["Thing", `Thing/6.7.5, ${phone("Pixel 7")}`],
  ["SiteMonitor", "SiteMonitor/2.1 CFNetwork/808.3 Darwin/16.3.0"],
  [
    "SomeScanner",
    `Mozilla/5.0 (Windows NT 10.0; SomeScanner 3.0) ${webkit} Chrome/124.0.0.0 Safari/537.36`,
  ],
])("%s is one, whatever it wears", (name, agent) => {
  expect(lookup(agent)?.name).toBe(name);
});

test("property: whoever says an address of his is a bot wherever isbot says so", () => {
  const marks = fc.constantFrom("bot", "crawler", "spider", "discovery", "news", "catch", "server");
  fc.assert(
    fc.property(marks, fc.stringMatching(/^[A-Za-z]{2,8}$/), (mark, model) => {
      const agent = phone(`${model} ${mark}`, " (+https://example.org/about)");
      expect(lookup(agent)).toBeDefined();
    }),
  );
});
