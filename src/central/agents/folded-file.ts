// How far the counts of one day of request logs are in the numbers, and whether two who folded it have the same.

/** How far a file of a day was folded; analytics-tables.ts describes the fields. */
export type FoldedFile = {
  readonly day: string;
  readonly inode: number;
  readonly token: string;
  readonly change: number;
  readonly recordId: number;
  readonly recordMark: string;
};

/** Whether the one says all that the other says of a day. Pure. */
export function isSameFold(one: FoldedFile, other: FoldedFile): boolean {
  return (
    one.inode === other.inode &&
    one.token === other.token &&
    one.change === other.change &&
    one.recordId === other.recordId
  );
}
