// How much a clear pattern may ask for, decided before SQLite sees it: FTS5 has no limit of its own that would hold (6.6 KB of one-letter prefixes blocked a thread for 27 s).
//
// A lexer, not a parser: whether the pattern is valid FTS5 is for SQLite to say (`base/pattern-check.ts`). Here are refused besides: what FTS5
// takes silently and matches nothing or something else with (no word at all, a leading `*`, NUL).

export const patternCharsMax = 4_096;
export const patternsMax = 64;
export const patternTermsMax = 64;
export const patternPrefixesMax = 16;
/** A prefix of one letter expands to a large part of the vocabulary. */
export const prefixCharsMin = 2;
/** FTS5's own parser stack ends below 100. */
export const patternDepthMax = 16;

const lexeme = /\s+|"(?:[^"]|"")*"?|[\w\u0080-\u{10ffff}]+|[^]/gu;
/** What unicode61 makes a token of. */
const word = /[\p{L}\p{N}\p{Co}]+/gu;
const operators = new Set(["AND", "OR", "NOT", "NEAR"]);

/** Why the pattern is refused; undefined where it is within the budget. */
export function patternFault(pattern: string): string | undefined {
  if (pattern.length > patternCharsMax)
    return `is ${pattern.length} characters long, at most ${patternCharsMax} are allowed`;
  if (pattern.includes("\0")) return "holds a NUL character";
  if (pattern.trimStart().startsWith("*"))
    return "begins with *; to clear everything, write kind:static OR kind:generated";
  const seen = count(pattern.match(lexeme)?.filter((text) => text.trim() !== "") ?? []);
  if (seen.terms === 0)
    return "has no word (a run of letters or digits) to look for; the site root is path:^xend";
  if (seen.terms > patternTermsMax)
    return `has ${seen.terms} words, at most ${patternTermsMax} are allowed`;
  if (seen.shortPrefix !== undefined)
    return `has the prefix ${seen.shortPrefix}*; a prefix needs ${prefixCharsMin} characters or more`;
  if (seen.prefixes > patternPrefixesMax)
    return `has ${seen.prefixes} prefixes, at most ${patternPrefixesMax} are allowed`;
  if (seen.depth > patternDepthMax)
    return `has parentheses ${seen.depth} deep, at most ${patternDepthMax} are allowed`;
  return undefined;
}

type Seen = {
  readonly terms: number;
  readonly prefixes: number;
  readonly shortPrefix: string | undefined;
  readonly depth: number;
};

function count(lexemes: readonly string[]): Seen {
  let terms = 0;
  let prefixes = 0;
  let shortPrefix: string | undefined;
  let open = 0;
  let depth = 0;
  let inColumns = false;
  let lastWord = "";
  lexemes.forEach((text, at) => {
    if (text === "(") depth = Math.max(depth, ++open);
    else if (text === ")") open--;
    else if (text === "{") inColumns = true;
    else if (text === "}") inColumns = false;
    else if (text === "*") {
      prefixes++;
      if (Array.from(lastWord).length < prefixCharsMin) shortPrefix ??= lastWord;
    } else {
      const isName = inColumns || operators.has(text) || lexemes[at + 1] === ":";
      const words = isName ? [] : (text.match(word) ?? []);
      terms += words.length;
      lastWord = words.at(-1) ?? "";
    }
  });
  return { terms, prefixes, shortPrefix, depth };
}
