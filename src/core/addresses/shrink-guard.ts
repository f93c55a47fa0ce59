// A list that broke off looks like one from which most was taken away. So a list that leaves a bot with less than half of what it held is put in force only where
// somebody says that it is meant. Agents guard their sets in the same way.

const guardedCount = 100;

/** Says why a list may not take the place of what a bot holds, unless it is meant; undefined: it may. `had`: what the bot holds; `left`: what the list has. */
export function shrinkFault(had: number, left: number, removed: number): string | undefined {
  if (left === 0) return "the list is empty";
  return had >= guardedCount && left * 2 < had
    ? `the bot would be left with ${left} of ${had} addresses and ranges, ${removed} would go`
    : undefined;
}
