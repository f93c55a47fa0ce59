// FTS5's query language as SQLite 3.54 reads it, by recursive descent: whether a pattern is valid, where it stops being so, and what it asks for.
//
//   or      = and { "OR" and }            binds weakest
//   and     = not { "AND" not }
//   not     = operand { "NOT" operand }   binds strongest of the three; there is no unary NOT
//   operand = "(" or ")" | columns ":" "(" or ")" | near { near }        a list is an AND that binds stronger than NOT
//   near    = [ columns ":" ] ( [ "^" ] phrase | "NEAR" "(" phrase { phrase } [ "," digits ] ")" )
//   phrase  = string [ "*" ] { "+" string [ "*" ] }
//   columns = [ "-" ] ( string | "{" string { string } "}" )             names in any case
//
// A string is a bareword or quoted. `NEAR` is a word where no parenthesis follows; a string before a parenthesis is nothing else than NEAR.

import { indexColumns, wordsOf, type IndexColumn } from "./index-schema.ts";

export type PatternPhrase = {
  readonly at: number;
  /** The strings of the phrase, unquoted, joined by blanks. */
  readonly text: string;
  /** The words as unicode61 cuts them, before folding; none if the strings hold neither letter nor digit. */
  readonly words: readonly string[];
  /** The words that are open at their end. */
  readonly prefixes: readonly string[];
  /** The columns in which the phrase may stand: those that all filters around it leave. */
  readonly columns: ReadonlySet<IndexColumn>;
};

/** A flaw, with a message that is read after the pattern. */
export type PatternFlaw = { readonly at: number; readonly message: string };

/**
 * How the phrases are joined; a number is the index of a phrase. `not` means its first part without the
 * others.
 */
export type PatternTree =
  | number
  | { readonly kind: "and" | "or" | "not"; readonly parts: readonly PatternTree[] };

export type ParsedPattern =
  | {
      readonly kind: "valid";
      readonly phrases: readonly PatternPhrase[];
      readonly tree: PatternTree;
      readonly depth: number;
    }
  | { readonly kind: "invalid"; readonly flaw: PatternFlaw }
  /**
   * The pattern is too deep to judge: SQLite's parser holds at most 100 unfinished symbols, and so does ours.
   */
  | { readonly kind: "deep"; readonly at: number };

/** The deepest nesting of parentheses that is read. */
export const patternDepthMax = 16;
/** SQLite's parser holds 99 symbols. An operand takes 10 at most: exprlist colset : STRING ( nearphrases phrase + STRING *. */
const pendingMax = 99 - 10;
/** Before a pattern that does not name `tag` stands `- tag : (` (pattern-query.ts): a column filter, a colon and a parenthesis. */
const pendingBefore = 3;

const allColumns: ReadonlySet<IndexColumn> = new Set(indexColumns);
const tagColumn: ReadonlySet<IndexColumn> = new Set<IndexColumn>(["tag"]);

export function parsePattern(pattern: string): ParsedPattern {
  return new Parser(lexemesOf(pattern)).run();
}

class Parser {
  readonly #lexemes: readonly Lexeme[];
  #next = 0;
  #depth = 0;
  #depthSeen = 0;
  #phrases: PatternPhrase[] = [];
  /** The first flaw; behind it, everything reads as the end. */
  #flaw: PatternFlaw | undefined;
  #deepAt: number | undefined;
  #namesTags = false;

  constructor(lexemes: readonly Lexeme[]) {
    this.#lexemes = lexemes;
  }

  run(): ParsedPattern {
    const tree = this.#or(pendingBefore);
    if (this.#flaw === undefined && this.#deepAt === undefined && !this.#is("end"))
      this.#failBetween();
    if (this.#deepAt !== undefined) return { kind: "deep", at: this.#deepAt };
    if (this.#flaw !== undefined) return { kind: "invalid", flaw: this.#flaw };
    const phrases = this.#namesTags
      ? this.#phrases
      : this.#phrases.map((phrase) => ({
          ...phrase,
          columns: phrase.columns.difference(tagColumn),
        }));
    return { kind: "valid", phrases, tree, depth: this.#depthSeen };
  }

  /** `pending` is the number of symbols that SQLite's parser holds before this one. */
  #or(pending: number): PatternTree {
    const parts = [this.#and(pending)];
    while (this.#takes("OR")) parts.push(this.#and(pending + 2));
    return joined("or", parts);
  }

  #and(pending: number): PatternTree {
    const parts = [this.#not(pending)];
    while (this.#takes("AND")) parts.push(this.#not(pending + 2));
    return joined("and", parts);
  }

  #not(pending: number): PatternTree {
    const parts = [this.#operand(pending)];
    while (this.#takes("NOT")) parts.push(this.#operand(pending + 2));
    return joined("not", parts);
  }

  #operand(pending: number): PatternTree {
    if (pending > pendingMax) this.#tooDeep();
    if (this.#is("(")) return this.#group(pending + 1);
    const first = this.#columns();
    if (first !== undefined && this.#is("(")) {
      const from = this.#phrases.length;
      const tree = this.#group(pending + 3);
      for (const phrase of this.#phrases.splice(from))
        this.#phrases.push({ ...phrase, columns: phrase.columns.intersection(first) });
      return tree;
    }
    const from = this.#phrases.length;
    this.#near(first ?? allColumns);
    while (["string", "^", "-", "{"].includes(this.#here.kind))
      this.#near(this.#columns() ?? allColumns);
    return joined(
      "and",
      this.#phrases.slice(from).map((_, i) => from + i),
    );
  }

  #group(pending: number): PatternTree {
    const { at } = this.#here;
    this.#step();
    if (++this.#depth > patternDepthMax) this.#tooDeep();
    this.#depthSeen = Math.max(this.#depthSeen, this.#depth);
    const tree = this.#or(pending);
    this.#depth--;
    if (this.#takes(")")) return tree;
    if (this.#is("end")) this.#fail(at, "opens a parenthesis that is not closed");
    else this.#failBetween();
    return tree;
  }

  /** Returns the columns of a filter, or undefined if none stands here. */
  #columns(): ReadonlySet<IndexColumn> | undefined {
    const { kind } = this.#here;
    if (kind === "string" && this.#after.kind !== ":") return undefined;
    if (kind !== "string" && kind !== "-" && kind !== "{") return undefined;
    const { at } = this.#here;
    const isComplement = this.#takes("-");
    if (isComplement && this.#is("string") && this.#after.kind !== ":") {
      this.#fail(at, "has -, which may only stand in quotes or before a column");
      return undefined;
    }
    const names = new Set<IndexColumn>();
    if (this.#takes("{")) {
      do this.#columnName(names);
      while (this.#is("string"));
      if (!this.#takes("}")) this.#failHere("has to close its list of columns with }");
    } else this.#columnName(names);
    if (!this.#takes(":")) this.#failHere("has to have : behind the columns");
    return isComplement ? allColumns.difference(names) : names;
  }

  #columnName(names: Set<IndexColumn>): void {
    const { kind, at, text } = this.#here;
    if (kind !== "string") return this.#failHere("has to name a column");
    const wanted = dequoted(text).replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
    const name = indexColumns.find((column) => column === wanted);
    if (name === undefined)
      return this.#fail(
        at,
        `names a column ${JSON.stringify(dequoted(text))}; there are ${indexColumns.join(", ")}`,
      );
    names.add(name);
    if (name === "tag") this.#namesTags = true;
    this.#step();
  }

  #near(columns: ReadonlySet<IndexColumn>): void {
    if (!this.#is("string") || this.#after.kind !== "(") {
      this.#takes("^");
      return this.#phrase(columns);
    }
    if (this.#here.text !== "NEAR")
      return this.#fail(this.#after.at, "has to have AND, OR or NOT before the parenthesis");
    this.#step();
    this.#step();
    do this.#phrase(columns);
    while (this.#is("string"));
    if (this.#takes(",")) {
      if (!this.#is("string") || !/^[0-9]+$/.test(this.#here.text))
        return this.#failHere("has to have a number of words as the distance of NEAR");
      this.#step();
    }
    if (!this.#takes(")")) this.#failHere("has to close the parenthesis of NEAR");
  }

  #phrase(columns: ReadonlySet<IndexColumn>): void {
    const { at } = this.#here;
    const texts: string[] = [];
    const words: string[] = [];
    const open = new Set<number>();
    do {
      if (!this.#is("string")) return this.#failAtTerm();
      const text = dequoted(this.#here.text);
      texts.push(text);
      words.push(...wordsOf(text));
      this.#step();
      // The star belongs to the last word, whichever string it came from.
      if (this.#takes("*")) open.add(words.length - 1);
      else open.delete(words.length - 1);
    } while (this.#takes("+"));
    const prefixes = words.filter((_, i) => open.has(i));
    this.#phrases.push({ at, text: texts.join(" "), words, prefixes, columns });
  }

  get #here(): Lexeme {
    return this.#lexemes[this.#next] ?? { kind: "end", at: 0, text: "" };
  }

  get #after(): Lexeme {
    return this.#lexemes[this.#next + 1] ?? { kind: "end", at: 0, text: "" };
  }

  #step(): void {
    this.#next++;
  }

  #is(kind: Lexeme["kind"]): boolean {
    return this.#here.kind === kind;
  }

  #takes(kind: Lexeme["kind"]): boolean {
    if (!this.#is(kind)) return false;
    this.#step();
    return true;
  }

  #fail(at: number, message: string): void {
    if (this.#deepAt === undefined) this.#flaw ??= { at, message };
    this.#next = this.#lexemes.length;
  }

  #tooDeep(): void {
    if (this.#flaw === undefined) this.#deepAt ??= this.#here.at;
    this.#next = this.#lexemes.length;
  }

  #failHere(message: string): void {
    const { kind, at } = this.#here;
    if (kind === "wrong") this.#failAtTerm();
    else this.#fail(at, message);
  }

  /** Fails at a place where a word has to be. */
  #failAtTerm(): void {
    const { kind, at, text } = this.#here;
    const said: Partial<Record<Lexeme["kind"], string>> = {
      wrong:
        text === '"'
          ? "opens a quote that is not closed"
          : `has ${JSON.stringify(text)}, which may only stand in quotes`,
      end: at === 0 ? "is empty" : "ends where a word has to follow",
      "*": "has * without a word before it; a word can be open at its end only",
      NOT: "has NOT with nothing before it; NOT takes away from what stands before it",
    };
    this.#fail(at, said[kind] ?? `has ${text} where a word has to stand`);
  }

  /** Fails behind a complete operand. */
  #failBetween(): void {
    const { kind, at, text } = this.#here;
    if (kind === "wrong") this.#failAtTerm();
    else if (kind === ")") this.#fail(at, "closes a parenthesis that was not opened");
    else if (kind === "string" || kind === "(" || kind === "{" || kind === "^")
      this.#fail(at, `has to have AND, OR or NOT before ${text}`);
    else if (kind === ":") this.#fail(at, "has : behind what is no column");
    else this.#fail(at, `has ${text} where AND, OR or NOT has to stand`);
  }
}

function joined(kind: "and" | "or" | "not", parts: readonly PatternTree[]): PatternTree {
  const [first] = parts;
  return first !== undefined && parts.length === 1 ? first : { kind, parts };
}

// The lexemes of FTS5's query language, as SQLite 3.54 cuts them: every character beyond ASCII belongs to a bareword, and only blank, tab, CR and LF
// are white space. Offsets are UTF-16 units of the text.

export type Lexeme = {
  readonly kind:
    | "("
    | ")"
    | "{"
    | "}"
    | ":"
    | ","
    | "+"
    | "*"
    | "-"
    | "^"
    | "AND"
    | "OR"
    | "NOT"
    | "string"
    /** A quote without an end, or a character that may only stand in quotes; nothing is read behind it. */
    | "wrong"
    | "end";
  readonly at: number;
  readonly text: string;
};

// oxlint-disable-next-line no-control-regex -- FTS5 counts U+001A among the characters of a bareword.
const lexeme = /[ \t\r\n]*(?:([(){}:,+*^-])|("(?:[^"]|"")*")|([\w\u001a\u0080-\uffff]+)|([^]))/y;

const operators = new Set(["AND", "OR", "NOT"]);
const isOperator = (text: string): text is "AND" | "OR" | "NOT" => operators.has(text);

/** Returns the lexemes; the last is `end` or `wrong`. */
export function lexemesOf(pattern: string): Lexeme[] {
  const found: Lexeme[] = [];
  let end = pattern.length;
  while (end > 0 && " \t\r\n".includes(pattern.charAt(end - 1))) end--;
  for (let at = 0; at < end;) {
    lexeme.lastIndex = at;
    const [all = "", mark, quoted, bare, other] = lexeme.exec(pattern) ?? [];
    at += all.length;
    const text = mark ?? quoted ?? bare ?? other ?? "";
    const place = { at: at - text.length, text };
    // The expression lets no other text through as a mark.
    if (mark !== undefined) found.push({ kind: mark as Exclude<Lexeme["kind"], "AND">, ...place });
    else if (bare !== undefined && isOperator(bare)) found.push({ kind: bare, ...place });
    else if (other === undefined) found.push({ kind: "string", ...place });
    else {
      found.push({ kind: "wrong", ...place });
      return found;
    }
  }
  found.push({ kind: "end", at: end, text: "" });
  return found;
}

/** Returns the content of a quoted string; a bareword is returned as it is. */
function dequoted(text: string): string {
  return text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text;
}
