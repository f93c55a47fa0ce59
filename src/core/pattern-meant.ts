// What somebody meant by a run of characters that is no FTS5: paths, globs, file names, media types and parameters as other caches take them, as the pattern that says the same.

import type { IndexColumn } from "./index-schema.ts";
import {
  directlyIn,
  everything,
  exactUrl,
  extension,
  parameter,
  under,
} from "./pattern-recipes.ts";

const mediaType =
  /^(application|audio|font|image|message|model|multipart|text|video)\/(\*|[\w.+-]+)$/i;

/** Without white space, quotes, parentheses; undefined where it is not clear. Alternatives are joined by OR, unbracketed. */
export function meantByRun(run: string): string | undefined {
  const address = /^https?:\/\/[^/?#]+(.*)$/i.exec(run);
  if (address !== null) return meantByUrl(slashed(address[1] ?? ""));
  if (/^\/?\*+(?:\.\*)?$/.test(run)) return everything;
  if (run.startsWith("/")) return meantByUrl(run);
  const fileType = /^\*?\.(\w+)$/.exec(run);
  if (fileType !== null) return extension(fileType[1] ?? "");
  const type = mediaType.exec(run);
  if (type !== null) return type[2] === "*" ? `mime:^${type[1] ?? ""}` : `"${run}"`;
  if (/^\?.|^[\w.~%-]+=/.test(run)) return meantByQuery(run);
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
      return meantByQuery(run);
    case "url":
      return /^https?:/i.test(run) ? meantByRun(run) : meantByUrl(slashed(run));
    case "dir":
      return directlyIn(slashed(run.replace(/[^/]$/, "$&/")));
    case "ext":
      return extension(run.replace(/^\*?\./, ""));
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
  const typed = /^([^*]*\/)\*+(?:\/\*+)?\.(\w+)$/.exec(url);
  if (typed !== null)
    return `${bracketed(spellings(typed[1] ?? "").map(under))} AND ${extension(typed[2] ?? "")}`;
  const open = /^([^*]+)\*+$/.exec(url);
  if (open !== null)
    return spellings(open[1] ?? "")
      .map(under)
      .join(" OR ");
  if (url.includes("*")) return undefined;
  const pages = url.endsWith("/") ? [url, `${url}index.html`] : [url];
  return pages.flatMap(spellings).map(exactUrl).join(" OR ");
}

/** As it is, as a browser would send it, as the file would be called. */
function spellings(url: string): string[] {
  try {
    return [...new Set([url, url.includes("%") ? decodeURIComponent(url) : encodeURI(url)])];
  } catch {
    return [url]; // It has one spelling only.
  }
}

function meantByPath(run: string): string | undefined {
  const isOpen = run.endsWith("*");
  const plain = run.replace(/\*+$/, "");
  if (plain.includes("*")) return undefined;
  if (!plain.startsWith("/")) return inColumn("path", quoted(run));
  const words = plain.split(/[^\p{L}\p{N}\p{M}\p{Co}]+/u).filter((word) => word !== "");
  if (words.length === 0) return isOpen ? everything : "path:^xend";
  const phrase = words.join(" ");
  if (!isOpen) return `path:^"${phrase} xend"`;
  return plain.endsWith("/") ? `path:^"${phrase}"` : `path:^"${phrase}"*`;
}

function meantByQuery(run: string): string | undefined {
  const parameters = run.replace(/^\?/, "").split("&");
  if (parameters.some((one) => /\*./.test(one))) return undefined;
  return parameters
    .map((one) => (one.endsWith("*") ? `${parameter(one.slice(0, -1))}*` : parameter(one)))
    .join(" AND ");
}

/** Words in their order: `blog-post` is two of them. */
function quoted(run: string): string | undefined {
  const isOpen = /\w\*$/.test(run);
  const text = isOpen ? run.slice(0, -1) : run;
  if (text.includes("*")) return undefined;
  return `"${/^[\w-]+$/.test(text) ? text.replaceAll("-", " ").trim() : text}"${isOpen ? "*" : ""}`;
}

const inColumn = (column: IndexColumn, term: string | undefined): string | undefined =>
  term === undefined ? undefined : `${column}:${term}`;

const slashed = (path: string): string => (path.startsWith("/") ? path : `/${path}`);

const bracketed = (patterns: readonly string[]): string =>
  patterns.length === 1 ? (patterns[0] ?? "") : `(${patterns.join(" OR ")})`;
