// Remembers answers that were given before, bounded in entries and bytes. There are two generations: an
// answer that was not asked for during a whole one is dropped with it. So a flood of keys that are asked for
// once displaces none that is in use for long.

export type MemoLimits = { readonly entries: number; readonly bytes: number };

/** Returns the size of a key: two bytes a character, and a place in a map. */
const bytesOf = (key: string): number => key.length * 2 + 64;

/** A memory of answers by key. Null is a value like any other. */
export class Memo<V extends object | null> {
  readonly #limits: MemoLimits;
  #young = new Map<string, V>();
  #youngBytes = 0;
  #old = new Map<string, V>();
  #oldBytes = 0;

  constructor(limits: MemoLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get bytes(): number {
    return this.#youngBytes + this.#oldBytes;
  }

  /**
   * Returns the value of a key; calls `ask` if it is not remembered. The size of values is not counted: share
   * or bound them.
   */
  get(key: string, ask: (key: string) => V): V {
    const known = this.#young.get(key);
    if (known !== undefined) return known;
    const old = this.#old.get(key);
    const value = old === undefined ? ask(key) : old;
    this.#remember(key, value);
    return value;
  }

  /** A key may be in both generations for a while, within the limits of each. */
  #remember(key: string, value: V): void {
    const bytes = bytesOf(key);
    const { entries, bytes: bytesMax } = this.#limits;
    if (bytes > bytesMax / 2) return;
    if (this.#young.size + 1 > entries / 2 || this.#youngBytes + bytes > bytesMax / 2) {
      this.#old = this.#young;
      this.#oldBytes = this.#youngBytes;
      this.#young = new Map();
      this.#youngBytes = 0;
    }
    this.#young.set(key, value);
    this.#youngBytes += bytes;
  }
}
