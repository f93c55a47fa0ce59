// Classes of unknown bots as the pages name them, with their keys in a policy. The schemas have both too, but are not for browsers; a test holds the two equal.

import type { BotClass } from "../core/serving/verdict.ts";
import type { BotClassKey } from "../wire/customer/bot-classes.ts";

type ClassWords = { readonly key: BotClassKey; readonly one: string; readonly many: string };

export const classWords = {
  crawler: { key: "unknown_crawlers_can_access", one: "crawler", many: "crawlers" },
  feed: { key: "unknown_feeds_can_access", one: "feed reader", many: "feed readers" },
  library: {
    key: "unknown_libraries_can_access",
    one: "library or tool",
    many: "libraries and tools",
  },
} as const satisfies Readonly<Record<BotClass, ClassWords>>;
