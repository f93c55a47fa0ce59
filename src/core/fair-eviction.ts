// Whose bytes go when there is no room for all: always of whoever holds the most (max-min fairness).
//
// So nobody loses anything while somebody else holds more, and a holder of no more than an equal share loses
// nothing at all: if all together hold too much, the largest holds more than that. What one holder leaves of
// its share, the others may use.

export type RoomHolder = { readonly name: string; readonly bytes: number };

/**
 * Chooses what to take, one piece after the other, always from the largest holder, until `excess` bytes are
 * gone, `countMax` pieces are taken, or nothing is left. `next` returns the next piece of a holder, undefined
 * when it has none, and is asked only for what is taken. A holder without a piece, whose bytes are not here
 * to be taken, is passed over.
 */
export function takeFromLargest<P extends { readonly bytes: number }>(
  holders: readonly RoomHolder[],
  limits: { readonly excess: number; readonly countMax: number },
  next: (name: string) => P | undefined,
): P[] {
  // A heap: the largest holder stands first, and none at place i holds less than those at 2i + 1 and 2i + 2.
  // A sorted list is a heap.
  const heap = holders.toSorted((a, b) => b.bytes - a.bytes);
  const taken: P[] = [];
  let excess = limits.excess;
  while (excess > 0 && taken.length < limits.countMax) {
    const largest = heap[0];
    if (largest === undefined || largest.bytes < 0) break;
    const piece = next(largest.name);
    if (piece !== undefined) {
      taken.push(piece);
      excess -= piece.bytes;
    }
    const bytes = piece === undefined ? -1 : Math.max(0, largest.bytes - piece.bytes);
    sinkFirst(heap, { name: largest.name, bytes });
  }
  return taken;
}

/** Replaces the first holder, then sinks the new one to where it belongs. */
function sinkFirst(heap: RoomHolder[], holder: RoomHolder): void {
  let at = 0;
  for (;;) {
    const left = 2 * at + 1;
    const right = left + 1;
    const larger = bytesAt(heap, right) > bytesAt(heap, left) ? right : left;
    const child = heap[larger];
    if (child === undefined || child.bytes <= holder.bytes) break;
    heap[at] = child;
    at = larger;
  }
  heap[at] = holder;
}

const bytesAt = (heap: readonly RoomHolder[], at: number): number => heap[at]?.bytes ?? -Infinity;
