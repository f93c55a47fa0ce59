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
import { querySpellings, urlSpellings } from "./url-spellings.ts";

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
    const exact = meantByExactWord(run);
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
      return anyOf(urlSpellings(slashed(run.replace(/[^/]$/, "$&/"))), directlyIn);
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

/** An exact word with a slip: what its bytes are where they can be told, what stands there where not. */
function meantByExactWord(run: string): string | undefined {
  if (!/^\w+\*?$/.test(run) || !/z[0-9a-f]{2}/i.test(run)) return undefined;
  return run.replaceAll(/z([0-7][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** A path, perhaps with a query, perhaps with wildcards. Static files are indexed by their name, generated assets as they were asked for. */
export function meantByUrl(text: string): string | undefined {
  const url = text.replace(/#.*$/, "");
  if (/^\/\*+$/.test(url)) return everything;
  const typed = /^([^*]*\/)\*+(?:\/\*+)?\.([\w\u0080-\uffff]+)$/.exec(url);
  if (typed !== null)
    return `${bracketed(anyOf(urlSpellings(typed[1] ?? ""), under))} AND ${bracketed(meantByExtension(typed[2] ?? ""))}`;
  const open = /^([^*]+)\*+$/.exec(url);
  if (open !== null) return anyOf(urlSpellings(open[1] ?? ""), under);
  if (url.includes("*")) return undefined;
  const asked = url.replace(/\?$/, ""); // The index knows no empty query.
  const pages = /^[^?]*\/$/.test(asked) ? [asked, `${asked}index.html`] : [asked];
  return anyOf(pages.flatMap(urlSpellings), exactUrl);
}

function meantByExtension(name: string): string {
  return anyOf(urlSpellings(name), extension);
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
  return meant.length === 1 ? meant[0] : meant.map(bracketed).join(" AND ");
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

const bracketed = (pattern: string): string =>
  pattern.includes(" OR ") ? `(${pattern})` : pattern;
