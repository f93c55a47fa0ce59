// The median of a few figures, and between which of them it lies with 95 % (by order statistics: nothing is assumed of how they spread).

export type Interval = { readonly median: number; readonly from: number; readonly to: number };

export function medianWithInterval(values: readonly number[]): Interval {
  const sorted = values.toSorted((a, b) => a - b);
  const count = sorted.length;
  const middle = (count - 1) / 2;
  const at = (no: number): number => sorted[Math.min(count - 1, Math.max(0, no))] ?? Number.NaN;
  // The rank so far from each end leaves at most 2.5 % outside on each side.
  let [rank, chance] = [0, 0.5 ** count];
  for (let outside = chance; rank < middle; rank++) {
    chance = (chance * (count - rank)) / (rank + 1);
    if (outside + chance > 0.025) break;
    outside += chance;
  }
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    from: at(rank),
    to: at(count - 1 - rank),
  };
}
