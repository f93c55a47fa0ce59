// What somebody meant by a run of characters that is no FTS5: paths, globs, file names, media types and parameters as other caches take them, as the pattern that says the same.

import { percentDecoded, type IndexColumn } from "./index-schema.ts";
import {
  directlyIn,
  everything,
  exactUrl,
  extension,
  parameter,
  under,
} from "./pattern-recipes.ts";
import { querySpellings, urlSpellings } from "../http/url-spellings.ts";

const mediaType =
  /^(application|audio|font|image|message|model|multipart|text|video)\/(\*|[\w.+-]+)$/i;

/** Without white space, quotes, parentheses; undefined where it is not clear. Alternatives are joined by OR, unbracketed. */
export function meantByRun(run: string): string | undefined {
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

/** The same behind the name of a column. */
export function meantInColumn(column: IndexColumn, run: string): string | undefined {
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

/** An exact word with a slip, or one that goes on in plain text: what its bytes are where they can be told, what stands there where not. */
function meantByExactWord(column: IndexColumn, run: string): string | undefined {
  const isPath = column === "url" || column === "dir";
  const isWord = /^\w+\*?$/.test(run) || (isPath && /^z2f[^*]*\*?$/i.test(run));
  if (!isWord || !/z[0-9a-f]{2}/i.test(run)) return undefined;
  return percentDecoded(run.replaceAll("%", "%25").replaceAll(/z([0-9a-f]{2})/gi, "%$1"));
}

/** With `/*` all below it, which `dir` does not hold. */
function meantByDirectory(path: string): string | undefined {
  const isOpen = path.endsWith("*");
  const plain = path.replace(/\*+$/, "");
  if (plain.includes("*") || isRegular(path)) return undefined;
  if (!isOpen) return anyOf(urlSpellings(plain.replace(/[^/]$/, "$&/")), directlyIn);
  if (plain.endsWith("/")) return anyOf(urlSpellings(plain), under);
  return anyOf(urlSpellings(plain), (spelling) => `${directlyIn(spelling)}*`);
}

/** A regular expression or a list, in which a path is no path. */
const isRegular = (text: string): boolean => /^\/?\^|\$$|\|\/|,\/|\([^()]*\|[^()]*\)/.test(text);

/** A path, perhaps with a query, perhaps with wildcards. Static files are indexed by their name, generated assets as they were asked for. */
export function meantByUrl(text: string): string | undefined {
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

/** Words in their order: `blog-post` is two of them. */
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

/** Undefined where one of them is not known. */
function allOf(...patterns: readonly (string | undefined)[]): string | undefined {
  const [first, ...others] = patterns;
  if (first === undefined || others.length === 0) return first;
  const known = patterns.filter((pattern) => pattern !== undefined);
  return known.length < patterns.length ? undefined : known.map(bracketed).join(" AND ");
}

const bracketed = (pattern: string): string =>
  pattern.includes(" OR ") ? `(${pattern})` : pattern;
