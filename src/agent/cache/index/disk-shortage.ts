// What the cache leaves free on its disk, for request records and the journal, whoever else fills it: it may use less than disk_max as long as less is free, and gives
// up what was not used for longest. Bodies in files give their room back at once, those in index.db when its free pages are cut off (shrinking.ts).

import { diskSpaceOf, type DiskSpace } from "../../../base/disk-space.ts";
import type { SharedHeader } from "./shared-header.ts";

/** Where the settings say nothing: this, or a tenth of the disk if that is less. */
const freeMinUsual = 512 * 2 ** 20;

export type DiskShortageOptions = {
  readonly header: Pick<SharedHeader, "storedBytes" | "withheldBytes">;
  readonly diskMax: number;
  /** Setting `cache.disk_free_min`. */
  readonly freeMin: number | undefined;
  /** The cache's own. */
  readonly directory: string;
  /** For tests: instead of looking at the disk. */
  readonly space?: () => DiskSpace | undefined;
};

export class DiskShortage {
  readonly #options: DiskShortageOptions;
  #lacking = 0;

  constructor(options: DiskShortageOptions) {
    this.#options = options;
  }

  /** The bytes that the disk lacked at the last look. */
  get lacking(): number {
    return this.#lacking;
  }

  /** Looks at the disk and says what the cache may use. `spare`: bytes of index.db that hold nothing; the cache can use them though they are not free. */
  look(spare: number): void {
    const { header, diskMax, directory, space = () => diskSpaceOf(directory) } = this.#options;
    const found = space();
    if (found === undefined) return;
    const freeMin = this.#options.freeMin ?? Math.min(freeMinUsual, found.size / 10);
    this.#lacking = Math.max(0, Math.ceil(freeMin - found.free));
    const usable = header.storedBytes + spare + found.free - freeMin;
    header.withheldBytes = Math.min(diskMax, Math.max(0, Math.ceil(diskMax - usable)));
  }
}
