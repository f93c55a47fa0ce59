// Finds the tokens of a user agent that may name a bot. It is pure and takes one pass, so that a hostile
// agent costs no more than its length.
//
// An agent is products with versions ("AhrefsBot/7.0"), comments in parentheses and addresses
// ("+http://ahrefs.com/robot/"). Only text outside of addresses names the visitor, for one address may stand
// in the agents of several products.

/** The most characters of a name: more than the names of known crawlers have. */
export const nameCharsMax = 64;

/** A stretch of the agent, from `from` up to but without `to`. */
export type TokenPlace = { readonly from: number; readonly to: number };

type Token = TokenPlace & {
  readonly text: string;
  /** Whether a slash follows, with a version or another part behind it. */
  readonly hasVersion: boolean;
  /** Whether it is no name by itself: a browser's word or a generic one. */
  readonly isEmpty: boolean;
};

/** The most tokens that are looked at; no published agent has more. */
const tokensMax = 64;

// The kinds of characters: those of a name ("Y!J-BRW", "Google-Read-Aloud", "MegaIndex.ru"), and those that
// end a word.
const inToken = 1;
const isEnd = 2;
const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  const char = String.fromCodePoint(code);
  return /[\w.!&'~-]/.test(char) ? inToken : /[\s();,<>"[\]{}|]/.test(char) ? isEnd : 0;
});
/** Returns the kind of a character; undefined after the end and before the beginning. */
const kindAt = (agent: string, at: number): number | undefined => {
  const code = agent.charCodeAt(at);
  return code < 128 ? kinds[code] : Number.isNaN(code) ? undefined : 0;
};

/**
 * The names of browsers, engines and systems, and what their agents are padded with, in lower case. They name
 * no bot.
 */
const costume: ReadonlySet<string> = new Set(
  (
    "mozilla mozzila applewebkit webkit khtml gecko like version mobile compatible chrome chromium safari firefox msie trident opera opr presto edg edge edga edgios crios fxios " +
    "vivaldi samsungbrowser mqqbrowser iemobile thunderbird seamonkey xmlhttp electron ubuntu fedora debian linux android x11 windows nt wow64 win64 x64 x86_64 i686 i586 sv1 macintosh intel mac os cpu iphone ipad ipod " +
    "dalvik cfnetwork darwin build en-us en-gb rv wv net clr unknown tbs nettype language micromessenger mmwebid"
  ).split(" "),
);

/** Words for what a program is, in lower case. They may be part of a name, but are none by themselves. */
const generic: ReadonlySet<string> = new Set(
  (
    "bot bots robot crawl crawler webcrawler spider scraper scanner agent client service server proxy preview fetcher archiver feed reader rss news search monitor monitoring checker " +
    "tool tools parser optimizer advisor transcoder synthetics http https url com www visit from beta help support subscribers free domain"
  ).split(" "),
);

const looksLikeBot =
  /bot|crawl|spider|slurp|fetch|agent|client|monitor|check|preview|scan|search|archiv|index|feed|proxy/i;

/** One user agent; its tokens are read when first asked for. */
export class AgentText {
  readonly #agent: string;
  /** Whether the agent begins as a browser's does, and names the visitor only further on. */
  readonly isInCostume: boolean;
  #tokens: readonly Token[] | undefined;

  constructor(agent: string) {
    this.#agent = agent;
    const first = /^[\w.-]+/.exec(agent)?.[0] ?? "";
    this.isInCostume = costume.has(first.toLowerCase());
  }

  /**
   * Returns the name that stands at a place: the first words there, completed to whole tokens. Undefined
   * within an address, and where nothing can be a name. With `mayBeHost` a bare "example.com" counts as well.
   */
  nameAt({ from, to }: TokenPlace, mayBeHost: boolean): string | undefined {
    const agent = this.#agent;
    const within = /[\w.!&'~-]+(?: [\w.!&'~-]+)*/.exec(agent.slice(from, to));
    if (within === null) return undefined;
    let start = from + within.index;
    let end = start + within[0].length;
    const word = wordAround(agent, start);
    if (isAddress(word)) return undefined;
    if (!mayBeHost && !within[0].includes(" ") && isHost(word)) return undefined;
    while (kindAt(agent, start - 1) === inToken) start--;
    while (kindAt(agent, end) === inToken) end++;
    end += furtherWords(agent.slice(end, end + nameCharsMax));
    return cleaned(agent.slice(start, Math.min(end, start + nameCharsMax)));
  }

  /** Returns the text at a place within an address: "tweetedtimes" of "+http://tweetedtimes.com". */
  textAt({ from, to }: TokenPlace): string | undefined {
    const bare = this.#agent.slice(from, to).replace(/^.*@|^\W*(?:https?:\/\/)?(?:www\.)?/, "");
    const text = /^[\w.!&'~-]+(?: [\w.!&'~-]+)*/.exec(bare)?.[0];
    return text === undefined ? undefined : cleaned(text);
  }

  /**
   * Returns the token at a place if it may be a name by itself; for two words such as "Hydra Proxy" the first
   * one.
   */
  tokenAt(place: TokenPlace): string | undefined {
    const tokens = this.#read();
    const at = tokens.findIndex(({ from, to }) => from < place.to && place.from < to);
    const [before, token] = [tokens[at - 1], tokens[at]];
    if (token === undefined) return undefined;
    if (!token.isEmpty) return cleaned(token.text);
    if (before === undefined || before.isEmpty) return undefined;
    return this.#agent.slice(before.to, token.from) === " " ? cleaned(before.text) : undefined;
  }

  /**
   * Returns the product that the agent names outside of addresses (RFC 9110 §10.1.5): the first token with a
   * version that is not a browser's, otherwise the token with which the agent begins. In a browser's costume,
   * a token with a version that looks like a bot's comes first, then any with a version, then what follows
   * "compatible;", then any that looks like a bot's.
   */
  product(): string | undefined {
    const named = this.#read().filter((token) => !token.isEmpty);
    const versioned = named.filter(({ hasVersion }) => hasVersion);
    const product = this.isInCostume
      ? (versioned.find(({ text }) => looksLikeBot.test(text)) ??
        versioned[0] ??
        this.#behindCompatible() ??
        named.find(({ text }) => looksLikeBot.test(text)))
      : (versioned[0] ?? named.find(({ from }) => from < 2));
    return product === undefined ? undefined : cleaned(product.text);
  }

  /**
   * Returns whatever may serve as a name: a token, the host of an address, or the browser that the agent
   * pretends to be.
   */
  anyName(): string | undefined {
    const agent = this.#agent;
    const tokens = this.#read();
    const token = tokens.find((one) => !one.isEmpty);
    const address = wordsOf(agent).find(({ from, to }) => isAddress(agent.slice(from, to)));
    const host = address === undefined ? undefined : hostOf(agent.slice(address.from, address.to));
    const name = token === undefined ? undefined : cleaned(token.text);
    const first = this.isInCostume ? (host ?? name) : (name ?? host);
    return first ?? cleaned(tokens[0]?.text ?? "");
  }

  /** Returns the token that follows "compatible;", as in "(compatible; YandexUserproxy; robot". */
  #behindCompatible(): Token | undefined {
    const tokens = this.#read();
    const at = tokens.findIndex(({ text }) => text.toLowerCase() === "compatible");
    const [mark, next] = [tokens[at], tokens[at + 1]];
    if (mark === undefined || next === undefined || next.isEmpty) return undefined;
    return /^;\s*$/.test(this.#agent.slice(mark.to, next.from)) ? next : undefined;
  }

  #read(): readonly Token[] {
    return (this.#tokens ??= tokensOf(this.#agent, this.isInCostume));
  }
}

/**
 * Returns how many characters behind a token belong to its name. "Sogou News Spider/4.0" and "Sogou web
 * spider/4.0" are two bots, so the kind of spider is part of the name.
 */
function furtherWords(behind: string): number {
  const words = /^(?: [A-Za-z][\w-]*){1,2} (?:spider|crawler|bot)(?=\/v?\d)/i.exec(behind);
  return words?.[0].length ?? 0;
}

/**
 * Returns the words: runs without spaces, brackets, quotes and the characters that separate the parts of a
 * comment.
 */
function wordsOf(agent: string): readonly TokenPlace[] {
  const words: TokenPlace[] = [];
  for (let from = 0; from < agent.length && words.length < tokensMax; from++) {
    if (kindAt(agent, from) === isEnd) continue;
    const to = endOfWord(agent, from);
    words.push({ from, to });
    from = to;
  }
  return words;
}

/**
 * Returns the tokens outside of addresses. A token has at least two characters and one letter, and is no
 * version.
 */
function tokensOf(agent: string, hasLabels: boolean): readonly Token[] {
  const tokens: Token[] = [];
  for (const word of wordsOf(agent)) {
    if (isAddress(agent.slice(word.from, word.to))) continue;
    for (let from = word.from; from < word.to && tokens.length < tokensMax; from++) {
      if (kindAt(agent, from) !== inToken) continue;
      let to = from;
      while (kindAt(agent, to) === inToken) to++;
      const token = tokenOf(agent, from, to, hasLabels);
      if (token !== undefined) tokens.push(token);
      from = to;
    }
  }
  return tokens;
}

function tokenOf(agent: string, from: number, to: number, hasLabels: boolean): Token | undefined {
  if (to - from < 2 || agent[from - 1] === "/") return undefined;
  // A label, as in "rv:1.9" and "aggregator:Spinn3r", is no name.
  if (hasLabels && agent[to] === ":") return undefined;
  const text = agent.slice(from, to);
  if (!/[A-Za-z]/.test(text) || /^v?\d+(?:\.\w+)*$/i.test(text)) return undefined;
  const word = text.toLowerCase();
  const isEmpty = costume.has(word) || generic.has(word);
  return { from, to, text, hasVersion: agent[to] === "/", isEmpty };
}

function endOfWord(agent: string, at: number): number {
  let to = at;
  while (to < agent.length && kindAt(agent, to) !== isEnd) to++;
  return to;
}

function wordAround(agent: string, at: number): string {
  let from = at;
  while (from > 0 && kindAt(agent, from - 1) !== isEnd) from--;
  return agent.slice(from, endOfWord(agent, at));
}

/**
 * Whether a word is a URL, with or without a scheme, or an e-mail address. "MegaIndex.ru/2.0" is a product.
 */
function isAddress(word: string): boolean {
  if (word.includes("://") || word.includes("@")) return true;
  return /^\W*(?:www\.|[\w-]+(?:\.[\w-]+)+\/(?!v?\d)\w)/i.test(word);
}

function isHost(word: string): boolean {
  return /^[^A-Za-z0-9]*[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}$/i.test(word);
}

function hostOf(address: string): string | undefined {
  const bare = address.replace(/^.*?:\/\//, "").replace(/^.*?@/, "");
  const host = /[A-Za-z0-9][\w.-]*/.exec(bare.replace(/^\W*(?:www\.)?/i, ""))?.[0];
  return host === undefined ? undefined : cleaned(host);
}

/**
 * Removes the version at the end of a token, for the next version is the same bot, and characters that only
 * join: "DirBuster-1.0-RC1" becomes "DirBuster".
 */
function cleaned(token: string): string | undefined {
  const text = token
    .slice(0, nameCharsMax)
    .replace(/^(?:\d+\.\d+|[^A-Za-z0-9])+/, "")
    .replace(/(?:[-_. ]?v?\d+(?:\.\d+)+(?:[-_. ].*)?|(?:[-_]v?\d+)+|(?<=[a-z])20\d\d)$/i, "")
    .replace(/[^A-Za-z0-9]+$/, "");
  return text.length < 2 ? undefined : text;
}
