// Finds which bot a user agent claims to be. isbot says whether it is one, and a token of the agent is its
// name; crawler-user-agents says which token, and describes the bot. Time and memory are bounded for hostile
// agents: long ones are cut and not remembered, the others are remembered within limits.
//
// The name stands in the agent but for its case: an agent that spells a published name in another way gets
// the published spelling. Deriving those from the published agents takes a quarter of a second, so they are
// derived by `npm run generate`: published-names.json has a row for each spelling, the crawler's place in the
// package before it.

import { getPattern } from "isbot";
import { AgentText, type TokenPlace, nameCharsMax } from "./agent-tokens.ts";
import { classOf } from "./bot-class.ts";
import { CrawlerNames, knownCrawlers, type Crawler, type FoundCrawler } from "./crawlers.ts";
import { Memo, type MemoLimits } from "./memo.ts";
import { isNamesake, isOfPeople } from "./people.ts";
import { agentCharsMax } from "../../../core/serving/decision.ts";
import type { BotClass } from "../../../core/serving/verdict.ts";
import publishedNames from "./published-names.json" with { type: "json" };

export type ClaimedBot = {
  readonly name: string;
  readonly description: string | null;
  readonly botClass: BotClass;
  /** Other names of the bot, if there are any: its former name, and other spellings in published agents. */
  readonly aliases?: readonly string[];
};
export type ClaimedBotLookup = (userAgent: string | undefined) => ClaimedBot | undefined;

/** The limits of a worker's memory of agents: 10,000 of 150 characters. */
const memoLimits: MemoLimits = { entries: 10_000, bytes: 4 * 2 ** 20 };
/**
 * What isbot does not know, as an expression: commands of PowerShell and scanners that begin as browsers do. Dart's own library is not among them: it is said by hardly anything but
 * people's apps.
 */
const furtherSigns = String.raw`\b(?:Windows)?PowerShell/\d|\bNikto/\d`;

/** The most signs that are looked at in an agent that isbot takes for a bot. */
const signsMax = 8;

/**
 * Opens a look-up that is synchronous and never throws. It returns undefined for browsers and without a user
 * agent. The first bot takes a tenth of a second.
 */
export function openClaimedBots(limits: MemoLimits = memoLimits): ClaimedBotLookup {
  const naming = new Naming();
  const memo = new Memo<ClaimedBot | null>(limits);
  const ask = (agent: string): ClaimedBot | null => naming.claimedBy(agent) ?? null;
  return (userAgent) => {
    if (userAgent === undefined || userAgent === "") return undefined;
    // A cut agent is not remembered, for a slice would retain the whole text.
    if (userAgent.length > agentCharsMax)
      return ask(userAgent.slice(0, agentCharsMax)) ?? undefined;
    return memo.get(userAgent, ask) ?? undefined;
  };
}

/** A name in published agents, and the crawler that has it. */
type Published = { readonly name: string; readonly crawler: Crawler };

class PublishedNames {
  readonly crawlers = new CrawlerNames();
  /** The published bots by name in lower case, one for each spelling, in the order of publication. */
  readonly #bySpelling = new Map<string, Published[]>();

  constructor() {
    const known = knownCrawlers();
    for (const row of publishedNames) {
      const at = row.indexOf(" ");
      const crawler = known[Number(row.slice(0, at))];
      if (crawler === undefined) continue; // A test holds the rows equal to what they are made of.
      const name = row.slice(at + 1);
      const spellings = this.#bySpelling.get(name.toLowerCase());
      if (spellings === undefined) this.#bySpelling.set(name.toLowerCase(), [{ name, crawler }]);
      else spellings.push({ name, crawler });
    }
  }

  /** Returns the published bot of a name. */
  claim(derived: string, formerly: string): Omit<ClaimedBot, "botClass"> {
    const spellings = this.#bySpelling.get(derived.toLowerCase()) ?? [];
    const known =
      spellings.find(({ name }) => name === derived) ??
      spellings.find(({ crawler }) => crawler.name === formerly) ??
      spellings[0];
    const name = known?.name ?? ownText(derived);
    // "UptimeBot" and "Uptimebot" are two crawlers; "ClaudeBot" and "claudebot" are one.
    const same = spellings.filter(({ crawler }) => crawler === known?.crawler);
    const aliases = new Set([...same.map((one) => one.name), formerly]);
    aliases.delete(name);
    const description = known?.crawler.description ?? null;
    return { name, description, ...(aliases.size > 0 && { aliases: [...aliases] }) };
  }

  /** Returns how a bot that no pattern matches was named before names were tokens of their agents. */
  formerOwn(agent: string): string {
    const name = formerProductName(agent);
    return this.crawlers.named(name)?.name ?? ownText(name);
  }
}

class Naming {
  readonly #isBot = new RegExp(`${getPattern().source}|${furtherSigns}`, "gi");
  #names: PublishedNames | undefined;

  claimedBy(agent: string): ClaimedBot | undefined {
    const signs = this.#signsIn(agent);
    if (signs.length === 0) return undefined;
    // It takes a tenth of a second of a start, in each worker, and people's browsers need none of it.
    const names = (this.#names ??= new PublishedNames());
    const found = names.crawlers.find(agent);
    if ((found === undefined || isNamesake(agent)) && isOfPeople(agent, signs)) return undefined;
    const text = new AgentText(agent);
    const derived =
      found === undefined ? ownName(text, signs) : nameIn(text, found, names.crawlers);
    const formerly = found?.crawler.name ?? names.formerOwn(agent);
    const botClass = classOf(agent, found?.crawler);
    return { ...names.claim(derived ?? found?.crawler.name ?? "unnamed", formerly), botClass };
  }

  /** Returns the places where isbot finds what makes the agent a bot. */
  #signsIn(agent: string): readonly TokenPlace[] {
    const signs: TokenPlace[] = [];
    this.#isBot.lastIndex = 0;
    while (signs.length < signsMax) {
      const sign = this.#isBot.exec(agent);
      if (sign === null) break;
      signs.push({ from: sign.index, to: sign.index + sign[0].length });
      if (sign[0] === "") break;
    }
    return signs;
  }
}

/**
 * Names a known crawler: by what its pattern matches outside of addresses, otherwise by the product to which
 * a matched address belongs, otherwise by what the pattern matches.
 */
export function nameIn(
  text: AgentText,
  { places }: FoundCrawler,
  crawlers: Pick<CrawlerNames, "match">,
): string | undefined {
  const named = firstOf(places, (place) => text.nameAt(place, false));
  if (named !== undefined) return named;
  const product = text.product();
  // The library with which a crawler fetches is not its name.
  if (product !== undefined && crawlers.match(product)?.isTool !== true) return product;
  return (
    firstOf(places, (place) => text.nameAt(place, true)) ??
    firstOf(places, (place) => text.textAt(place)) ??
    text.anyName()
  );
}

/**
 * Names a bot that only isbot knows: by its product, or in a browser's costume by the token that makes it a bot.
 */
function ownName(text: AgentText, signs: readonly TokenPlace[]): string | undefined {
  const inCostume = text.isInCostume ? firstOf(signs, (place) => text.tokenAt(place)) : undefined;
  return inCostume ?? text.product() ?? text.anyName();
}

function firstOf(
  places: readonly TokenPlace[],
  read: (place: TokenPlace) => string | undefined,
): string | undefined {
  for (const place of places) {
    const text = read(place);
    if (text !== undefined) return text;
  }
  return undefined;
}

/** Copies a name as ASCII; a slice would retain the whole agent for as long as the name is counted. */
function ownText(name: string): string {
  return Buffer.from(name, "latin1").toString("latin1");
}

// How bots that no crawler's pattern matches were named before names were tokens of their agents. Pairs that
// customers set then hold such names.

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

/**
 * Returns the first product with a version that is not a browser's, otherwise the first token. This must
 * never change, for stored pairs depend on it.
 */
export function formerProductName(userAgent: string): string {
  let name: string | undefined;
  // One pass over tokens, each with the slash behind it if a version follows.
  for (const [, token = "", slash] of userAgent.matchAll(/([A-Za-z][\w.!#$&'*+^`|~-]*)(\/?)/g)) {
    if (token.length < 2) continue;
    if (slash === "/" && !costume.has(token.toLowerCase())) return token.slice(0, nameCharsMax);
    name ??= /^[\w.-]+/.exec(token)?.[0];
  }
  return name === undefined ? "unnamed" : name.slice(0, nameCharsMax);
}
