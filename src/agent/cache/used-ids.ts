// Which entries a worker has used, on their way to the index, where eviction goes by it. Told a little at a time, so that neither what is used a lot nor the
// number of it makes the index thread late; each entry once a round. A round ends when everything that is asked for was told: whoever asks for many
// entries makes it longer, and keeps nobody's from being told.

/** How often `take` is meant to be called. */
export const usedEveryMs = 500;
/** At once: some 4 ms of the index thread. */
const tellMax = 512;
/** 30 s: what is noted is that old at most, where there is not more to tell. */
const roundTakes = 60;
/** Some 3 MB; beyond, the next round begins all the same. */
const toldMax = 65_536;

export class UsedIds {
  /** With the place of its key (shared-header.ts) where it is one of several variants. */
  readonly #untold = new Map<number, number | undefined>();
  #told = new Set<number>();
  #takes = 0;
  #isWaiting = false;

  note(id: number, place?: number): void {
    if (this.#told.has(id)) return;
    if (this.#untold.size < tellMax) this.#untold.set(id, place);
    else if (!this.#untold.has(id)) this.#isWaiting = true; // Until it is asked for again.
  }

  take(): Float64Array {
    const ids = Float64Array.from(this.#untold.keys());
    for (const id of ids) this.#told.add(id);
    this.#untold.clear();
    this.#takes++;
    if ((this.#takes >= roundTakes && !this.#isWaiting) || this.#told.size >= toldMax)
      this.#beginRound();
    this.#isWaiting = false;
    return ids;
  }

  /** Of one key only: before another variant of it may take the place of the one that was used least. */
  takeOf(place: number): Float64Array {
    const ids: number[] = [];
    for (const [id, itsPlace] of this.#untold) if (itsPlace === place) ids.push(id);
    for (const id of ids) {
      this.#untold.delete(id);
      this.#told.add(id);
    }
    return Float64Array.from(ids);
  }

  clear(): void {
    this.#untold.clear();
    this.#beginRound();
  }

  #beginRound(): void {
    this.#told = new Set();
    this.#takes = 0;
  }
}
