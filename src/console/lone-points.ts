// Points of a line that stand alone: a line is drawn between two points, and leaves these out. Pure.

/** Returns the places of values that have no value on either side. */
export function lonePoints(values: readonly (number | null | undefined)[]): number[] {
  const isThere = (no: number): boolean => values[no] !== null && values[no] !== undefined;
  return values.flatMap((_value, no) =>
    isThere(no) && !isThere(no - 1) && !isThere(no + 1) ? [no] : [],
  );
}
