// Many rows in statements of a bearable size.

import { setImmediate } from "node:timers/promises";

/** SQLite and PostgreSQL bound the values of one statement at about 32,000: rows are written in parts of so many. */
export const rowsPerStatement = 1_000;

/**
 * Yields rows in parts; less than a whole part comes in round sizes, which keeps the number of statements
 * that are kept prepared small.
 */
export function* parts<T>(rows: readonly T[], size = rowsPerStatement): Generator<readonly T[]> {
  for (let at = 0; at < rows.length;) {
    const left = rows.length - at;
    const count = left >= size ? size : roundDown(left);
    yield rows.slice(at, at + count);
    at += count;
  }
}

/** Rounds down to three binary digits: 4, 5, 6 or 7 times a power of two. */
function roundDown(count: number): number {
  const unit = 2 ** Math.max(0, Math.floor(Math.log2(count)) - 2);
  return Math.floor(count / unit) * unit;
}

/**
 * Yields parts like `parts`, with a turn of the event loop between two: thousands of statements in one go
 * would hold up every channel.
 */
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
