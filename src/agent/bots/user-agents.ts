// Which bot a user agent claims to be: isbot says whether, crawler-user-agents says who. Bounded time: long agents are cut, answers remembered.

import { crawlers } from "./crawlers.ts";
import { isbot } from "isbot";

export type ClaimedBot = { readonly name: string; readonly description: string | null };
export type ClaimedBotLookup = (userAgent: string | undefined) => ClaimedBot | undefined;

/** What is looked at: no honest bot names itself further out, and 1,500 patterns over 8 KiB would cost a visitor 0.8 ms. */
const lookedAtCharsMax = 512;
const rememberedMax = 10_000; // 10,000 agents of 512 bytes: 5 MiB a worker.

/** Synchronous, never throws. Undefined for browsers and for no user agent at all. */
export function openClaimedBots(): ClaimedBotLookup {
  const remembered = new Map<string, ClaimedBot | null>();
  return (userAgent) => {
    if (userAgent === undefined || userAgent === "") return undefined;
    const seen = userAgent.slice(0, lookedAtCharsMax);
    const known = remembered.get(seen);
    if (known !== undefined) return known ?? undefined;
    const bot = isbot(seen) ? identify(seen) : null;
    if (remembered.size >= rememberedMax) remembered.clear(); // Hostile agents are all different: nothing is worth keeping then.
    remembered.set(seen, bot);
    return bot ?? undefined;
  };
}

function identify(userAgent: string): ClaimedBot {
  const known = crawlers.find(({ pattern }) => pattern.test(userAgent));
  return known ?? { name: productName(userAgent), description: null };
}

/** RFC 9110 §10.1.5: the first product names the client; in a browser's costume the first one that is no browser's. */
export function productName(userAgent: string): string {
  const costume = new Set([
    "mozilla",
    "applewebkit",
    "chrome",
    "safari",
    "gecko",
    "version",
    "mobile",
    "firefox",
    "khtml",
    "compatible",
  ]);
  const products = userAgent.match(/[A-Za-z][\w.!#$&'*+^`|~-]{1,63}(?=\/)/g) ?? [];
  const name =
    products.find((product) => !costume.has(product.toLowerCase())) ??
    userAgent.match(/[A-Za-z][\w.-]{1,63}/)?.[0];
  return name ?? "unnamed";
}
