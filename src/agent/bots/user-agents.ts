// Which bot a user agent claims to be: isbot says whether, crawler-user-agents says who, else the agent's own product name. Bounded time and memory for
// hostile agents: long ones are cut and not remembered, the others within limits.

import { isbot } from "isbot";
import { CrawlerNames } from "./crawlers.ts";
import { Memo, type MemoLimits } from "./memo.ts";

export type ClaimedBot = { readonly name: string; readonly description: string | null };
export type ClaimedBotLookup = (userAgent: string | undefined) => ClaimedBot | undefined;

/** What is looked at: no published agent is longer than 330 characters, and no honest bot names itself further out. */
const lookedAtCharsMax = 512;
/** Of a worker: 10,000 agents of 150 characters. */
const memoLimits: MemoLimits = { entries: 10_000, bytes: 4 * 2 ** 20 };
/** As long as the names that the crawlers have, and some more. */
const nameCharsMax = 64;

/** Synchronous, never throws. Undefined for browsers and for no user agent at all. */
export function openClaimedBots(limits: MemoLimits = memoLimits): ClaimedBotLookup {
  const names = new CrawlerNames();
  const memo = new Memo<ClaimedBot | null>(limits);
  const ask = (agent: string): ClaimedBot | null => (isbot(agent) ? identify(agent, names) : null);
  return (userAgent) => {
    if (userAgent === undefined || userAgent === "") return undefined;
    // Not remembered: a part of a text keeps the whole of it in memory.
    if (userAgent.length > lookedAtCharsMax)
      return ask(userAgent.slice(0, lookedAtCharsMax)) ?? undefined;
    return memo.get(userAgent, ask) ?? undefined;
  };
}

/** One description a name: what calls itself like a known crawler, in whatever case, is counted and judged as that one. */
function identify(agent: string, names: CrawlerNames): ClaimedBot {
  const known = names.match(agent);
  if (known !== undefined) return known;
  const own = productName(agent);
  return names.named(own) ?? { name: own, description: null };
}

const costume: ReadonlySet<string> = new Set([
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

/** RFC 9110 §10.1.5: the first product names the client; in a browser's costume the first one that is no browser's. */
export function productName(userAgent: string): string {
  let name: string | undefined;
  // Each character is looked at once: a token, and whether a version follows.
  for (const [, token = "", slash] of userAgent.matchAll(/([A-Za-z][\w.!#$&'*+^`|~-]*)(\/?)/g)) {
    if (token.length < 2) continue;
    if (slash === "/" && !costume.has(token.toLowerCase())) return ownText(token);
    name ??= /^[\w.-]+/.exec(token)?.[0];
  }
  return name === undefined ? "unnamed" : ownText(name);
}

/** Bounded and a text of its own, ASCII: a part of an agent would keep the whole agent in memory for as long as the name is counted. */
function ownText(token: string): string {
  return Buffer.from(token.slice(0, nameCharsMax), "latin1").toString("latin1");
}
