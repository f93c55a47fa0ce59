// What kind of bot an agent claims to be: by the tags of the known crawlers, else by the words of its agent.

import list from "crawler-user-agents";
import { expect, test } from "vitest";
import { openClaimedBots } from "../../../../src/agent/bots/unreviewed/user-agents.ts";
import type { BotClass } from "../../../../src/core/serving/verdict.ts";

const claimedBot = openClaimedBots();

/** Agents of each class; none of the known crawlers' patterns has to match. */
const agents: { readonly [Class in BotClass]: readonly string[] } = {
  feed: [
    "Feedbin feed-id:1373711 - 142 subscribers",
    "Feedly/1.0 (+http://www.feedly.com/fetcher.html; 16 subscribers; like FeedFetcher-Google)",
    "FreshRSS/1.24.1 (Linux; https://freshrss.org)",
    "Mozilla/5.0 (compatible; Miniflux/2.1.3; +https://miniflux.app)",
    "NetNewsWire (RSS Reader; https://netnewswire.com/)",
    "Newsboat/2.35 (Linux x86_64)",
    "NewsBlur Feed Fetcher - 12 subscribers - http://www.newsblur.com",
    "Tiny Tiny RSS/24.05 (https://tt-rss.org/)",
    "Liferea/1.15.6 (Linux; https://lzone.de/liferea/) AppleWebKit (KHTML, like Gecko)",
    "Elfeed Emacs 29.1",
    "Emacs Elfeed 3.4.1",
    "gPodder/3.11.4 (http://gpodder.org/) Linux",
    "Overcast/3.0 (+http://overcast.fm/; iOS podcast app)",
    "PodcastAddict/v5 (+https://podcastaddict.com/; Android podcast app)",
    "Castro 2, Episode Duration Lookup",
    "CPod/1.27.1 (github.com/z-------------)",
    "SilverReader/1.0; http://silverreader.com",
    "Gregarius/0.5.2 (+http://devlog.gregarius.net/docs/ua)",
    "iTMS",
    "Spotify/1.0",
    "Yarr/2.4",
  ],
  library: [
    "curl/8.10.1",
    "libcurl/7.65.1",
    "Wget/1.24.5",
    "python-requests/2.32.3",
    "Python-urllib/3.12",
    "Python/3.12 aiohttp/3.10.5",
    "Go-http-client/2.0",
    "okhttp/4.12.0",
    "Java/17.0.12",
    "Java-http-client/21.0.4",
    "Apache-HttpClient/5.3.1 (Java/21.0.4)",
    "Jakarta Commons-HttpClient/3.1",
    "GuzzleHttp/7",
    "axios/1.7.7",
    "node-fetch/1.0 (+https://github.com/bitinn/node-fetch)",
    "undici",
    "node",
    "Bun/1.2.10",
    "Deno/1.46.3",
    "Ruby",
    "rest-client/2.1.0 (linux-gnu x86_64) ruby/3.2.2p53",
    "libwww-perl/6.77",
    "HTTPie/3.2.3",
    "PostmanRuntime/7.42.0",
    "Debian APT-HTTP/1.3 (2.6.1)",
    "git/2.47.0",
    "Homebrew/4.3.24 (Macintosh; arm64 Mac OS X 14.6.1) curl/8.7.1",
    "WindowsPowerShell/5.1 http",
    "Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.19041.1",
    "Mozilla/5.0 (Linux; Debian; en-US) PowerShell/7.4.2",
    "Mozilla/5.0 (Windows NT 10.0; Microsoft Windows 10.0.22631; de-DE) PowerShell/7.5.0-preview.3",
  ],
  crawler: [
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
    "Mozilla/5.0 (compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "GoGuidesCrawler/2.0 (trust-transparency; +https://www.goguides.com/crawler)",
    "Mozilla/5.0 (compatible; MadeUpSpider/0.1; +https://madeup.example/)",
    "Googlebot (gocrawl v0.4)",
    "python-crawler-bot/1.0",
    "Paw Monitor",
    "node crawler",
    "Scrapy/2.11.2 (+https://scrapy.org)",
    "HTTrack 3.0x",
    "Mozilla/4.5 (compatible; HTTrack 3.0x; Windows 98)",
    "colly - https://github.com/gocolly/colly",
    "Mozilla/5.00 (Nikto/2.1.6) (Evasions:None) (Test:map_codes)",
    "Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) PowerShell/7.4.2 SomeScanner/1.0",
    "git-hound scanner",
    "http://abc.burpcollaborator.example/",
    "Mozilla/5.0 (Linux; Android 4.0.4; Galaxy Nexus Build/IMM76B) AppleWebKit/537.36 (KHTML, like Gecko; GoogleAdSenseInfeed) Chrome/102.0.5005.61 Mobile Safari/537.36",
  ],
};

test.each(Object.entries(agents))("%s", (botClass, known) => {
  const others = known.filter((agent) => claimedBot(agent)?.botClass !== botClass);
  expect(others.map((agent) => [agent, claimedBot(agent)?.botClass])).toEqual([]);
});

// The package's types lag behind its data.
const crawlers: readonly {
  readonly instances: readonly string[];
  readonly tags?: readonly string[];
}[] = list;

test("a known crawler has the class of its tags, whatever words are in its agents", () => {
  const tagged = (tag: string): readonly string[] =>
    crawlers.flatMap(({ instances, tags = [] }) =>
      tags.includes(tag) && tags.length === 1 ? instances : [],
    );
  expect(tagged("seo").length).toBeGreaterThan(300);
  // People's browsers have none. Where several crawlers are in one agent, the one that says most counts.
  for (const [tag, botClass] of Object.entries({
    seo: "crawler",
    monitoring: "crawler",
    "feed-reader": "feed",
  })) {
    const own = tagged(tag).filter((agent) => claimedBot(agent)?.botClass === botClass);
    expect(own.length / tagged(tag).length).toBeGreaterThan(0.95);
  }
});

test("the class of a hostile agent is found in time", () => {
  for (const part of ["a", "curl-", "http-", "lib", "pod ", "feed", "-http"])
    expect(claimedBot(`${part.repeat(200)} bot`)).toBeDefined();
});
