// Which entries a worker has used, on their way to the index, where eviction goes by it. Told a little at a time, so that neither what is used a lot nor the
// number of it makes the index thread late; each entry once a round. A round ends when everything that is asked for was told: whoever asks for many
// entries makes it longer, and keeps nobody's from being told.

/** How often `take` is meant to be called. */
export const usedEveryMs = 500;
/** The most ids told at once: some 4 ms of the index thread. */
const tellMax = 512;
/**
 * The most ids that wait for their turn, half a megabyte. Beyond that, a use is noted when it is asked for
 * again.
 */
const waitingMax = 16_384;
/** The most ids that are known with their place: all are looked through before another variant is stored. */
const variantsMax = 512;
/** A round lasts 30 s, where there is not more to tell: what is noted is that old at most. */
const roundTakes = 60;
/** The most ids told in a round, some 3 MB. Beyond that, the next round begins all the same. */
const toldMax = 65_536;

export class UsedIds {
  readonly #untold = new Set<number>();
  /** Of those, the ones that are one of several variants, with the place of their key (shared-header.ts). */
  readonly #places = new Map<number, number>();
  #told = new Set<number>();
  #takes = 0;
  #hasMissed = false;

  note(id: number, place?: number): void {
    if (this.#told.has(id)) return;
    if (this.#untold.size < waitingMax) this.#untold.add(id);
    else if (!this.#untold.has(id)) this.#hasMissed = true;
    const isWaiting = place !== undefined && this.#untold.has(id);
    if (isWaiting && this.#places.size < variantsMax) this.#places.set(id, place);
  }

  take(): Float64Array {
    const ids = Float64Array.from(this.#untold.values().take(tellMax));
    for (const id of ids) this.#noteTold(id);
    this.#takes++;
    const isOver = this.#takes >= roundTakes && this.#untold.size === 0 && !this.#hasMissed;
    if (isOver || this.#told.size >= toldMax) this.#beginRound();
    if (this.#untold.size === 0) this.#hasMissed = false;
    return ids;
  }

  /** Takes the ids of one key only, before another variant of it may take the place of the least used one. */
  takeOf(place: number): Float64Array {
    const ids: number[] = [];
    for (const [id, itsPlace] of this.#places) if (itsPlace === place) ids.push(id);
    for (const id of ids) this.#noteTold(id);
    return Float64Array.from(ids);
  }

  clear(): void {
    this.#untold.clear();
    this.#places.clear();
    this.#beginRound();
  }

  #noteTold(id: number): void {
    this.#untold.delete(id);
    this.#places.delete(id);
    this.#told.add(id);
  }

  #beginRound(): void {
    this.#told = new Set();
    this.#takes = 0;
  }
}
