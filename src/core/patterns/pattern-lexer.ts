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
    /** A quote without its end, or a character that may only stand in quotes: nothing is read behind it. */
    | "wrong"
    | "end";
  readonly at: number;
  readonly text: string;
};

// oxlint-disable-next-line no-control-regex -- FTS5 counts U+001A among the characters of a bareword.
const lexeme = /[ \t\r\n]*(?:([(){}:,+*^-])|("(?:[^"]|"")*")|([\w\u001a\u0080-\uffff]+)|([^]))/y;

const operators = new Set(["AND", "OR", "NOT"]);
const isOperator = (text: string): text is "AND" | "OR" | "NOT" => operators.has(text);

/** Ends with one that is `end` or `wrong`. */
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
    // The expression lets nothing else through as a mark.
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

/** What a quoted string holds; a bareword is as it is. */
export function dequoted(text: string): string {
  return text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text;
}
