// `spool.when_full: block`: tells for how many records there is room, and whether requests have to wait for
// it.

import type { LaneWords } from "../worker/lane-words.ts";
import type { Lane } from "./lane.ts";
import type { SpoolNotice } from "./spool-messages.ts";
import type { WhenFull } from "./spool-policy.ts";

/**
 * The room that is reckoned for a record. With larger records the spool may exceed its size by the
 * difference.
 */
const recordBytes = 1_024;
/** The time for which health still warns after requests last had to wait. */
const heldToldMs = 5_000;

export type RecordRoomOptions = {
  readonly bytesMax: number;
  readonly whenFull: WhenFull;
  readonly clock: { monotonicMs(): number };
  readonly notice: (notice: SpoolNotice) => void;
};

export class RecordRoom {
  readonly #options: RecordRoomOptions;
  readonly #usedBytes: () => number;
  #heldMs: number | undefined;

  constructor(options: RecordRoomOptions, usedBytes: () => number) {
    this.#options = options;
    this.#usedBytes = usedBytes;
  }

  /**
   * Returns for how many records each of that many lanes has room; undefined under the other policies, which
   * make no request wait.
   */
  outstandingMax(lanes: number): number | undefined {
    const { whenFull, bytesMax } = this.#options;
    if (whenFull !== "block") return undefined;
    const records = Math.max(0, bytesMax - this.#usedBytes()) / recordBytes;
    return Math.floor(records / Math.max(1, lanes));
  }

  /** Whether requests wait for room, or did a moment ago. */
  get isHeld(): boolean {
    return this.#heldMs !== undefined;
  }

  tell(feeds: Iterable<{ readonly words: LaneWords; readonly lane: Lane }>): void {
    if (this.#options.whenFull !== "block") return;
    const now = this.#options.clock.monotonicMs();
    const isHeld = [...feeds].some(
      ({ words, lane }) => lane.window.size > 0 && words.reserved <= lane.base + lane.end,
    );
    const wasTold = this.#heldMs !== undefined;
    if (isHeld) this.#heldMs = now;
    else if (now - (this.#heldMs ?? now) > heldToldMs) this.#heldMs = undefined;
    if (wasTold === (this.#heldMs !== undefined)) return;
    const why = "requests wait or are answered 503: there is no room for their records";
    const text = isHeld ? why : undefined;
    this.#options.notice({ code: "spool_blocking", severity: "error", text });
  }
}
