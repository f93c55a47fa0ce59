// What is opened in a YAML text and not closed: a list, a map or a quotation. Parsers notice it lines later, at a line in which nothing is wrong.

import { LineCounter, Parser, type CST } from "yaml";

export type Unclosed = {
  /** What opens it: `[`, `{`, `"` or `'`. */
  readonly mark: string;
  /** Lines count from 1. */
  readonly line: number;
};

/** Returns the first that is not closed, or closed only by lines that are no part of it, for they are not further in; undefined: all are closed. */
export function unclosedIn(yaml: string): Unclosed | undefined {
  const lines = new LineCounter();
  for (const token of new Parser(lines.addNewLine).parse(yaml)) {
    const found = unclosedOf(token);
    if (found !== undefined) return { mark: found.mark, line: lines.linePos(found.offset).line };
  }
  return undefined;
}

type Found = { readonly mark: string; readonly offset: number };

function unclosedOf(token: CST.Token | null | undefined): Found | undefined {
  switch (token?.type) {
    case "document":
      return unclosedOf(token.value);
    case "single-quoted-scalar":
    case "double-quoted-scalar": {
      const [mark = ""] = token.source;
      const isClosed = token.source.length > 1 && token.source.endsWith(mark);
      return isClosed ? undefined : { mark, offset: token.offset };
    }
    case "flow-collection": {
      const { source: mark, offset } = token.start;
      const isClosed = token.end.some(
        ({ type }) => type === "flow-seq-end" || type === "flow-map-end",
      );
      return isClosed ? unclosedAmong(token.items) : { mark, offset };
    }
    case "block-map":
    case "block-seq":
      return unclosedAmong(token.items);
    default:
      return undefined;
  }
}

function unclosedAmong(items: readonly CST.CollectionItem[]): Found | undefined {
  for (const { key, value } of items) {
    const found = unclosedOf(key) ?? unclosedOf(value);
    if (found !== undefined) return found;
  }
  return undefined;
}
