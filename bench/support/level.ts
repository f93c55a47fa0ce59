// Whether something that goes up and down, as a heap does between two collections, stays on its level.

/** Highest of the last third by the highest of the third before it; 1 where it is level. The first third is there to warm up. */
export function growthOf(values: readonly number[]): number {
  const third = values.length / 3;
  const highest = (from: number, to: number): number =>
    values.slice(Math.round(from), Math.round(to)).reduce((most, value) => Math.max(most, value));
  return highest(2 * third, values.length) / highest(third, 2 * third);
}
