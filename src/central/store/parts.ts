// Many rows in statements of a bearable size.

import { setImmediate } from "node:timers/promises";

/** SQLite and PostgreSQL bound the values of one statement at about 32,000: rows are written in parts of so many. */
export const rowsPerStatement = 1_000;

/** What is less than a whole part comes in powers of two: statements are kept prepared, and this keeps the number of their texts small. */
export function* parts<T>(rows: readonly T[], size = rowsPerStatement): Generator<readonly T[]> {
  for (let at = 0; at < rows.length;) {
    const left = rows.length - at;
    const count = left >= size ? size : 2 ** Math.floor(Math.log2(left));
    yield rows.slice(at, at + count);
    at += count;
  }
}

/** As `parts`, with a turn of the event loop between two: thousands of statements in one go would hold up every channel. */
export async function* pacedParts<T>(
  rows: readonly T[],
  size = rowsPerStatement,
): AsyncGenerator<readonly T[], void, undefined> {
  let isFirst = true;
  for (const part of parts(rows, size)) {
    if (!isFirst) await setImmediate();
    isFirst = false;
    yield part;
  }
}
