// Crawlers whose owners publish the addresses from which they come, and where. The lists are fetched by central (jobs/bot-sources.ts); the names are told apart by agents: a
// claim to one of them from any other address is a fake.
//
// The URLs are those in the owners' own documentation, read on 2026-11-29.

export type PublishedCrawler = {
  /** The name under which the list stands among the VIP bots. */
  readonly bot: string;
  /** Further names of user agents that come from the same addresses. */
  readonly covers: readonly string[];
  readonly url: string;
};

const google = "https://developers.google.com/static/crawling/ipranges";

export const publishedCrawlers: readonly PublishedCrawler[] = [
  {
    bot: "Googlebot",
    covers: [
      "Googlebot-Image",
      "Googlebot-News",
      "Googlebot-Video",
      "Googlebot-Mobile",
      "Storebot-Google",
      "Google-InspectionTool",
      "GoogleOther",
    ],
    url: `${google}/common-crawlers.json`,
  },
  {
    bot: "AdsBot-Google",
    covers: [
      "AdsBot-Google-Mobile",
      "AdsBot-Google-Mobile-Apps",
      "APIs-Google",
      "Mediapartners-Google",
    ],
    url: `${google}/special-crawlers.json`,
  },
  { bot: "bingbot", covers: [], url: "https://www.bing.com/toolbox/bingbot.json" },
  { bot: "Applebot", covers: [], url: "https://search.developer.apple.com/applebot.json" },
  { bot: "DuckDuckBot", covers: [], url: "https://duckduckgo.com/duckduckbot.json" },
  { bot: "DuckAssistBot", covers: [], url: "https://duckduckgo.com/duckassistbot.json" },
  { bot: "GPTBot", covers: [], url: "https://openai.com/gptbot.json" },
  { bot: "OAI-SearchBot", covers: [], url: "https://openai.com/searchbot.json" },
  { bot: "ChatGPT-User", covers: [], url: "https://openai.com/chatgpt-user.json" },
  {
    bot: "ClaudeBot",
    covers: ["Claude-User", "Claude-SearchBot"],
    url: "https://claude.com/crawling/bots.json",
  },
  { bot: "PerplexityBot", covers: [], url: "https://www.perplexity.ai/perplexitybot.json" },
  { bot: "Perplexity-User", covers: [], url: "https://www.perplexity.ai/perplexity-user.json" },
];

const owners: ReadonlyMap<string, string> = new Map(
  publishedCrawlers.flatMap(({ bot, covers }) => covers.map((name) => [name, bot] as const)),
);

/** Returns the crawler under whose name the addresses of another one are published; undefined: that has no other. */
export function publishedUnder(name: string): string | undefined {
  return owners.get(name);
}

export function publishedCrawler(bot: string): PublishedCrawler | undefined {
  return publishedCrawlers.find((one) => one.bot === bot);
}
