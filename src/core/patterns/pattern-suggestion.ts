// What a refused pattern was probably meant to say. Guesses only: whoever asks takes the first one that is valid.

import { indexColumns } from "./index-schema.ts";
import { nearest } from "../nearest.ts";
import { lexemesOf, type Lexeme } from "./pattern-lexer.ts";
import { meantByRun, meantByUrl, meantInColumn } from "./pattern-meant.ts";
import { everything } from "./pattern-recipes.ts";

/** Longer ones are not written by hand. */
const charsMax = 1_024;

/** The likeliest first. */
export function suggestedPatterns(pattern: string): string[] {
  // A path in single quotes is no phrase of words.
  const text = pattern.trim().replace(/^['‘](\/[^'"]*)['’]$/, "$1");
  if (text.length > charsMax || text.includes("\0")) return [];
  const whole = meantByWhole(text);
  if (whole !== undefined) return [whole];
  const closed = quotesClosed(text);
  const runs = runsReplaced(symbolsNamed(closed));
  const mended = runs === undefined ? [] : [runs, operatorsMended(runs)];
  return [closed, ...mended, ...mended.flatMap(eitherOf)].filter(
    (meant) => meant !== "" && meant !== pattern,
  );
}

/** `/a AND /b` is said by people who want both gone. Only where all is exact words of one column: anything else would clear more than was meant. */
function eitherOf(text: string): string[] {
  const term = /\b(url|dir|ext):\w+\*?/g;
  const terms = [...text.matchAll(term)];
  const isRest = /^[\s()]*(?:(?:AND|OR)[\s()]*)*$/.test(text.replaceAll(term, ""));
  const columns = new Set(terms.map(([, name]) => name));
  if (!isRest || columns.size !== 1) return [];
  return [[...new Set(terms.map(([one]) => one))].join(" OR ")];
}

/** One thing of another language, that may hold blanks: a path, or what would be one word here. */
function meantByWhole(text: string): string | undefined {
  if (/^\*+$/.test(text)) return everything;
  if (/^"\/?"$/.test(text)) return meantByUrl("/");
  if (/^path\s*:\s*"\/?"$/i.test(text)) return meantInColumn("path", "/");
  if (/\s(?:AND|OR|NOT|&&?|\|\|?)(?:\s|$)/i.test(text)) return undefined;
  if (/^\?[^"(){}]+$/.test(text)) return meantByRun(text);
  if (!isPath(text)) return undefined;
  const several = text.split(/\s+(?=\/)/);
  const meant = several.map(meantByUrl);
  return meant.includes(undefined) ? undefined : meant.join(" OR ");
}

/** Quotes and brackets belong to it where they stand at its letters: `/a (1).png` is one, `/a "b"` and `/a (b)` are not. */
function isPath(text: string): boolean {
  const bare = text.replaceAll(/\([^(){}"]*\)(?=\S)/g, "x");
  const isEven = [/"/g, /[(){}]/g].every((mark) => (bare.match(mark)?.length ?? 0) % 2 === 0);
  return isEven && /^\/(?:[^"(){}]|(?<=\S)["(){}])*$/.test(bare);
}

function quotesClosed(typed: string): string {
  const single = /^['‘‚‛]([^'"]*)['’‘]$/.exec(typed);
  if (single !== null) return `"${single[1] ?? ""}"`;
  const text = typed
    .replaceAll(/[“”„‟«»＂]/g, '"')
    .replaceAll(/(?<![\p{L}\p{N}])[‘‚‛]([^'"‘’]*)[’‘]/gu, '"$1"');
  return (text.split('"').length - 1) % 2 === 0 ? text : `${text}"`;
}

/** Marks of other query languages, and ours in another order. */
function symbolsNamed(text: string): string {
  return text
    .replaceAll(/(?<=\w):\s+/g, ":")
    .replaceAll(/\b(url|dir|ext|param):(["'])([^"'\s(){},]+)\2/gi, "$1:$3")
    .replaceAll(/\^(\w+):/g, "$1:^")
    .replaceAll(/\s&&?\s/g, " AND ")
    .replaceAll(/\s\|\|?\s/g, " OR ")
    .replaceAll(/(?<![^\s(])!\s*(?=[^\s!=])/g, "NOT ");
}

const piece = /"(?:[^"]|"")*"\*?|\s+|[(){},]|[^\s(){},"]+/g;
const column = /^(-?)(\w+):(\^?)(?!\/\/)(.*)$/s;

/** Each run of characters that is no term by itself becomes what it was meant to be. */
function runsReplaced(text: string): string | undefined {
  const pieces = text.match(piece) ?? [];
  const replaced = pieces.map((run, i) => {
    if (/^["\s(){},]/.test(run)) return run;
    const [before = "", next = ""] = [pieces[i - 1], pieces[i + 1]];
    const meant = runReplaced(run, next, pieces.length === 1);
    // A part of something that was cut in pieces is not known for what it is.
    const isTerm = meant !== run && !/[:^]$/.test(run);
    return isTerm && (/^["({]/.test(next) || /["*)}]$/.test(before)) ? undefined : meant;
  });
  return replaced.includes(undefined) ? undefined : replaced.join("");
}

function runReplaced(run: string, next: string, isAlone: boolean): string | undefined {
  const bracketed = (meant: string | undefined): string | undefined =>
    meant !== undefined && / (?:OR|AND) /.test(meant) && !isAlone ? `(${meant})` : meant;
  const filtered = column.exec(run);
  if (filtered === null) {
    if (/^[+^]?[\w\u0080-\uffff]+\*?$|^[+*^:-]$/.test(run)) return run;
    if (/^-[\w\u0080-\uffff]+$/.test(run)) return `NOT ${run.slice(1)}`;
    return bracketed(meantByRun(run));
  }
  const [, minus = "", name = "", caret = "", body = ""] = filtered;
  const known = nearest(name, indexColumns);
  if (known === undefined) return undefined;
  const head = `${minus}${known}:${caret}`;
  if (body === "" || body === "^") return next.startsWith(" ") ? undefined : `${head}${body}`;
  if (minus !== "" || /^[a-z0-9\u0080-\uffff]+\*?$/i.test(body)) {
    const isRead = minus !== "" || !["url", "dir", "ext", "param"].includes(known);
    if (isRead) return `${head}${body}`;
    const isWhole = known !== "dir" || /(?:z2f|\*)$/.test(body);
    if (isWhole && /^z2f(?:[a-y0-9]|z[0-9a-f]{2})*\*?$/.test(body)) return `${head}${body}`;
  }
  return bracketed(meantInColumn(known, body));
}

const isOperator = ({ kind }: Pick<Lexeme, "kind">): boolean =>
  kind === "AND" || kind === "OR" || kind === "NOT";

/** Operators in their places and parentheses in pairs. */
function operatorsMended(text: string): string {
  const mended: Lexeme[] = [];
  let open = 0;
  for (const lexeme of lexemesOf(text)) {
    const before = mended.at(-1);
    const found = raised(lexeme);
    if (found.kind === "end" || found.kind === "wrong") break;
    if (found.kind === ")" && open === 0) continue;
    if (found.kind === "AND" || found.kind === "OR") {
      if (before === undefined || before.kind === "(") continue;
      if (isOperator(before)) mended.pop();
    }
    if (found.kind === "NOT" && before?.kind === "AND") mended.pop();
    else if (found.kind === "NOT" && !endsOperand(before))
      mended.push({ kind: "string", at: 0, text: `(${everything})` });
    if (needsAnd(before, found)) mended.push({ kind: "AND", at: 0, text: "AND" });
    if (found.kind === "(") open++;
    if (found.kind === ")") {
      while (isOperator(mended.at(-1) ?? found)) mended.pop();
      open--;
    }
    mended.push(found);
  }
  while (isOperator(mended.at(-1) ?? { kind: "end" })) mended.pop();
  return written(mended) + ")".repeat(open);
}

/** Operators are told by their case. */
function raised(lexeme: Lexeme): Lexeme {
  const text = lexeme.text.toUpperCase();
  if (lexeme.kind !== "string") return lexeme;
  if (text === "AND" || text === "OR" || text === "NOT") return { ...lexeme, kind: text, text };
  return text === "NEAR" ? { ...lexeme, text } : lexeme;
}

function endsOperand(lexeme: Lexeme | undefined): boolean {
  return lexeme !== undefined && ["string", ")", "*"].includes(lexeme.kind);
}

function needsAnd(before: Lexeme | undefined, found: Lexeme): boolean {
  if (before === undefined || !endsOperand(before)) return false;
  if (found.kind === "(") return before.text !== "NEAR";
  return before.kind === ")" && ["string", "^", "-", "{"].includes(found.kind);
}

function written(lexemes: readonly Lexeme[]): string {
  let text = "";
  let before: Lexeme | undefined;
  for (const lexeme of lexemes) {
    const isTight =
      before === undefined ||
      ["*", ":", ")", ",", "}"].includes(lexeme.kind) ||
      [":", "(", "^", "{", "-"].includes(before.kind) ||
      (lexeme.kind === "(" && before.text === "NEAR");
    text += `${isTight ? "" : " "}${lexeme.text}`;
    before = lexeme;
  }
  return text;
}
