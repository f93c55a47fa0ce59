// The classes of unknown bots as people call them, and the keys of a policy that speak of them.

import type { BotClass } from "./verdict.ts";

export const botClassWords = {
  crawler: { key: "unknown_crawlers_can_access", one: "crawler", many: "crawlers" },
  feed: { key: "unknown_feeds_can_access", one: "feed reader", many: "feed readers" },
  library: {
    key: "unknown_libraries_can_access",
    one: "library or tool",
    many: "libraries and tools",
  },
} as const satisfies Readonly<Record<BotClass, Readonly<Record<"key" | "one" | "many", string>>>>;
