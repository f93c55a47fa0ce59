// How long the write-ahead log of the cache index may be, for whoever writes it and whoever says what the agent uses.

const mib = 2 ** 20;
/** A quarter of `cache.disk_max`: with a sixteenth, fills of a small cache take a quarter more of the processor. */
const walShare = 1 / 4;
const walLeast = 4 * mib;
const walMost = 128 * mib;

/**
 * Returns the bytes that background work lets the WAL of index.db reach. It lies beside what `cache.disk_max` bounds. The
 * longer it is, the more changes of one page are written to the file once; beyond 128 MiB that is nothing any more. Where
 * much is stored at once it grows to some twice of that before it is written again from its beginning.
 */
export function indexWalBytesMax(diskMax: number): number {
  return Math.min(walMost, Math.max(walLeast, Math.floor(diskMax * walShare)));
}
