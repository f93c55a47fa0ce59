// Finds the known name nearest to a mistyped one, for `did_you_mean` and "unknown key" messages.

/** Longer names are no typing errors, and the distance below takes time quadratic in their length. */
const nameCharsMax = 256;

/**
 * Returns the candidate that the text was most likely meant to be, or undefined if none is close. Case and
 * the separators `-`, `_`, `.` and space do not count; of equally near ones the first wins.
 */
export function nearest<Name extends string>(
  text: string,
  candidates: Iterable<Name>,
): Name | undefined {
  if (text.length > nameCharsMax) return undefined;
  const wanted = squash(text);
  let best: Name | undefined;
  let bestDistance = Infinity;
  for (const candidate of candidates) {
    if (candidate.length > nameCharsMax) continue;
    const name = squash(candidate);
    const limit = Math.min(distanceMax(Math.max(name.length, wanted.length)), bestDistance - 1);
    const distance = distanceWithin(wanted, name, limit);
    if (distance === undefined) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

function squash(name: string): string {
  return name.toLowerCase().replaceAll(/[-_. ]/g, "");
}

/** Allows one slip in a short word and three in a long one; with more, everything resembles everything. */
function distanceMax(length: number): number {
  if (length <= 4) return 1;
  return length <= 8 ? 2 : 3;
}

/**
 * Counts insertions, deletions, substitutions and swaps of neighbours from a to b; undefined if more than
 * `limit`.
 */
export function distanceWithin(a: string, b: string, limit: number): number | undefined {
  if (Math.abs(a.length - b.length) > limit) return undefined;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substituted = (last[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      let least = Math.min(substituted, (last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1);
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        least = Math.min(least, (beforeLast[column - 2] ?? 0) + 1);
      }
      current.push(least);
    }
    if (Math.min(...current) > limit && Math.min(...last) > limit) return undefined;
    beforeLast = last;
    last = current;
  }
  const distance = last[b.length] ?? 0;
  return distance <= limit ? distance : undefined;
}
