// Guesses what a refused pattern was probably meant to say. The caller takes the first guess that is valid.

import { indexColumns, percentDecoded, type IndexColumn } from "./index-schema.ts";
import { nearest } from "../nearest.ts";
import {
  everything,
  directlyIn,
  exactUrl,
  extension,
  parameter,
  tagged,
  under,
} from "./pattern-recipes.ts";
import { querySpellings, urlSpellings } from "../http/url-spellings.ts";
import { lexemesOf, type Lexeme } from "./pattern-grammar.ts";

/** Longer patterns are not written by hand. */
const charsMax = 1_024;

/** Returns guesses, the likeliest first. */
export function suggestedPatterns(pattern: string): string[] {
  // A path in single quotes is a path, not a phrase of words.
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

/**
 * Suggests OR for `/a AND /b`, which people write who want both gone. Only for exact words of one column,
 * because anything else would clear more than was meant.
 */
function eitherOf(text: string): string[] {
  const term = /\b(url|dir|ext):\w+\*?/g;
  const terms = [...text.matchAll(term)];
  const isRest = /^[\s()]*(?:(?:AND|OR)[\s()]*)*$/.test(text.replaceAll(term, ""));
  const columns = new Set(terms.map(([, name]) => name));
  if (!isRest || columns.size !== 1) return [];
  return [[...new Set(terms.map(([one]) => one))].join(" OR ")];
}

/**
 * Reads the text as one thing of another language that may hold blanks: a path, or what would be one word
 * here.
 */
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

/**
 * Returns whether the text is a path. Quotes and brackets belong to it if they adjoin its letters: `/a
 * (1).png` is one, `/a "b"` and `/a (b)` are not.
 */
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

/** Rewrites marks of other query languages, and our own in another order. */
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

/** Replaces each run of characters that is no term by what it was meant to be. */
function runsReplaced(text: string): string | undefined {
  const pieces = text.match(piece) ?? [];
  const replaced = pieces.map((run, i) => {
    if (/^["\s(){},]/.test(run)) return run;
    const [before = "", next = ""] = [pieces[i - 1], pieces[i + 1]];
    const meant = runReplaced(run, next, pieces.length === 1);
    // A part of something that was cut into pieces cannot be recognized.
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
    const isRead = minus !== "" || !["url", "dir", "ext", "param", "tag"].includes(known);
    if (isRead) return `${head}${body}`;
    const isWhole = known !== "dir" || /(?:z2f|\*)$/.test(body);
    if (isWhole && /^z2f(?:[a-y0-9]|z[0-9a-f]{2})*\*?$/.test(body)) return `${head}${body}`;
  }
  return bracketed(meantInColumn(known, body));
}

const isOperator = ({ kind }: Pick<Lexeme, "kind">): boolean =>
  kind === "AND" || kind === "OR" || kind === "NOT";

/** Moves operators to their places and pairs parentheses. */
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

/** Writes operators in upper case, by which they are recognized. */
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

// Turns a run of characters that is no FTS5 into the pattern that says the same: paths, globs, file names,
// media types and parameters as other caches take them.

const mediaType =
  /^(application|audio|font|image|message|model|multipart|text|video)\/(\*|[\w.+-]+)$/i;

/**
 * Returns what a run without white space, quotes and parentheses is meant to say, or undefined if that is not
 * clear. Alternatives are joined by OR, unbracketed.
 */
function meantByRun(run: string): string | undefined {
  const address = /^https?:\/\/[^/?#]+(.*)$/i.exec(run);
  if (address !== null) return meantByUrl(slashed(address[1] ?? ""));
  if (/^\/?\*+(?:\.\*)?$/.test(run)) return everything;
  if (run.startsWith("/")) return meantByUrl(run);
  const fileType = /^\*?\.([\w\u0080-\uffff]+)$/.exec(run);
  if (fileType !== null) return meantByExtension(fileType[1] ?? "");
  const type = mediaType.exec(run);
  if (type !== null) return type[2] === "*" ? `mime:^${type[1] ?? ""}` : `"${run}"`;
  if (/^\?.|^[\w\u0080-\uffff.~%-]+=/.test(run)) return meantByQuery(run);
  if (run.includes("/")) return meantByUrl(`/${run}`);
  return quoted(run);
}

/** Returns what a run behind the name of a column is meant to say. */
function meantInColumn(column: IndexColumn, run: string): string | undefined {
  if (column === "tag") return meantByTag(run);
  if (column === "url" || column === "dir" || column === "ext" || column === "param") {
    const exact = meantByExactWord(column, run);
    if (exact !== undefined) return meantInColumn(column, exact);
  }
  switch (column) {
    case "path":
      return meantByPath(run.includes("/") ? slashed(run) : run);
    case "query":
      return /[=&]|^\?/.test(run) ? meantByQuery(run) : inColumn(column, quoted(run));
    case "url":
      return /^https?:/i.test(run) ? meantByRun(run) : meantByUrl(slashed(run));
    case "dir":
      return meantByDirectory(slashed(run));
    case "ext":
      return meantByExtension(run.replace(/^\*?\./, ""));
    case "param":
      return meantByQuery(run);
    case "mime": {
      const type = mediaType.exec(run);
      return type?.[2] === "*" ? `mime:^${type[1] ?? ""}` : inColumn(column, quoted(run));
    }
    case "kind":
      return undefined;
    default:
      return column satisfies never;
  }
}

/**
 * Reads an exact word with a slip, or one that goes on in plain text: decodes the bytes that can be told, and
 * leaves the rest as it is.
 */
function meantByExactWord(column: IndexColumn, run: string): string | undefined {
  const isPath = column === "url" || column === "dir";
  const isWord = /^\w+\*?$/.test(run) || (isPath && /^z2f[^*]*\*?$/i.test(run));
  if (!isWord || !/z[0-9a-f]{2}/i.test(run)) return undefined;
  return percentDecoded(run.replaceAll("%", "%25").replaceAll(/z([0-9a-f]{2})/gi, "%$1"));
}

/** Returns the pattern of everything below a directory (`/*`), which `dir` does not hold. */
function meantByDirectory(path: string): string | undefined {
  const isOpen = path.endsWith("*");
  const plain = path.replace(/\*+$/, "");
  if (plain.includes("*") || isRegular(path)) return undefined;
  if (!isOpen) return anyOf(urlSpellings(plain.replace(/[^/]$/, "$&/")), directlyIn);
  if (plain.endsWith("/")) return anyOf(urlSpellings(plain), under);
  return anyOf(urlSpellings(plain), (spelling) => `${directlyIn(spelling)}*`);
}

/** Returns whether the text is a regular expression or a list, in which a path is no path. */
const isRegular = (text: string): boolean => /^\/?\^|\$$|\|\/|,\/|\([^()]*\|[^()]*\)/.test(text);

/**
 * Reads a path, perhaps with a query, perhaps with wildcards. Static files are indexed by their name,
 * generated assets as they were asked for.
 */
function meantByUrl(text: string): string | undefined {
  const url = text.replace(/#.*$/, "");
  if (isRegular(url)) return undefined;
  if (/^\/\*+$/.test(url)) return everything;
  const typed = /^([^*]*\/)\*+(?:\/\*+)?\.([\w\u0080-\uffff]+)$/.exec(url);
  if (typed !== null)
    return allOf(anyOf(urlSpellings(typed[1] ?? ""), under), meantByExtension(typed[2] ?? ""));
  const asking = /^([^*?]+)\*+\?([^*]+\*?)$/.exec(url);
  if (asking !== null) {
    const query = meantByQuery(asking[2] ?? "");
    return asking[1] === "/" ? query : allOf(anyOf(urlSpellings(asking[1] ?? ""), under), query);
  }
  const open = /^([^*]+)\*+$/.exec(url);
  if (open !== null) return anyOf(urlSpellings(open[1] ?? ""), under);
  if (url.includes("*")) return undefined;
  const asked = url.replace(/\?$/, ""); // The index knows no empty query.
  const pages = /^[^?]*\/$/.test(asked) ? [asked, `${asked}index.html`] : [asked];
  return anyOf(pages.flatMap(urlSpellings), exactUrl);
}

function meantByExtension(name: string): string | undefined {
  const plain = name.replace(/\*$/, "");
  if (plain === "" || plain.includes("*")) return undefined;
  const end = plain === name ? "" : "*";
  return anyOf(urlSpellings(plain), (spelling) => `${extension(spelling)}${end}`);
}

function meantByTag(run: string): string | undefined {
  const plain = run.replace(/\*$/, "");
  if (plain === "" || plain.includes("*")) return undefined;
  return `${tagged(plain)}${plain === run ? "" : "*"}`;
}

function meantByPath(run: string): string | undefined {
  const isOpen = run.endsWith("*");
  const plain = run.replace(/\*+$/, "");
  if (plain.includes("*")) return undefined;
  if (!plain.startsWith("/")) return inColumn("path", quoted(run));
  const words = percentDecoded(plain)
    .split(/[^\p{L}\p{N}\p{M}\p{Co}]+/u)
    .filter((word) => word !== "");
  if (words.length === 0) return isOpen ? everything : "path:^xend";
  const phrase = words.join(" ");
  if (!isOpen) return `path:^"${phrase} xend"`;
  return plain.endsWith("/") ? `path:^"${phrase}"` : `path:^"${phrase}"*`;
}

function meantByQuery(run: string): string | undefined {
  const parameters = run.replace(/^\?/, "").split("&");
  if (parameters.some((one) => /\*./.test(one))) return undefined;
  const meant = parameters.map((one) =>
    one.endsWith("*")
      ? anyOf(querySpellings(one.slice(0, -1)), (spelling) => `${parameter(spelling)}*`)
      : anyOf(querySpellings(one), parameter),
  );
  return allOf(...meant);
}

/** Quotes the words in their order: `blog-post` is two of them. */
function quoted(run: string): string | undefined {
  const isOpen = /\w\*$/.test(run);
  const text = percentDecoded(isOpen ? run.slice(0, -1) : run);
  if (text.includes("*")) return undefined;
  const words = /^[\w-]+$/.test(text) ? text.replaceAll("-", " ").trim() : text;
  return `"${words.replaceAll('"', '""')}"${isOpen ? "*" : ""}`;
}

const inColumn = (column: IndexColumn, term: string | undefined): string | undefined =>
  term === undefined ? undefined : `${column}:${term}`;

const slashed = (path: string): string => (path.startsWith("/") ? path : `/${path}`);

const anyOf = (spellings: readonly string[], recipe: (spelling: string) => string): string =>
  [...new Set(spellings.map(recipe))].join(" OR ");

/** Returns undefined if one of them is undefined. */
function allOf(...patterns: readonly (string | undefined)[]): string | undefined {
  const [first, ...others] = patterns;
  if (first === undefined || others.length === 0) return first;
  const known = patterns.filter((pattern) => pattern !== undefined);
  return known.length < patterns.length ? undefined : known.map(bracketed).join(" AND ");
}

const bracketed = (pattern: string): string =>
  pattern.includes(" OR ") ? `(${pattern})` : pattern;
