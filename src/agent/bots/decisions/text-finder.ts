// Finds which of many short texts occur in a text, in one pass over it: the automaton of Aho and Corasick as
// one flat table.
//
// Rows are states, and columns are the characters that occur in any of the texts; column 0 stands for all
// others, which lead back to the start. For the known crawlers it has about 15,000 states of 70 columns, 2
// MiB.

const charsMax = 128; // ASCII only: a text with other characters is never found.
const statesMax = 65_536; // The table is a Uint16Array.
const noTexts: readonly number[] = [];

export class TextFinder {
  readonly #columnOf = new Uint8Array(charsMax);
  readonly #columns: number = 1;
  readonly #table: Uint16Array;
  /** The numbers of the texts that end in each state. Those that end none share one list. */
  readonly #found: (readonly number[])[];

  /** Throws RangeError if the texts are too many. Empty texts are never found. */
  constructor(texts: readonly string[]) {
    const sought = texts.map((text) => (isAscii(text) ? text : ""));
    let statesBound = 1; // Reached where no two texts begin alike.
    for (const text of sought) {
      statesBound += text.length;
      for (let at = 0; at < text.length; at++) {
        const code = text.charCodeAt(at);
        if (this.#columnOf[code] === 0) this.#columnOf[code] = this.#columns++;
      }
    }
    const trie = new Uint16Array(statesBound * this.#columns);
    this.#found = Array.from({ length: statesBound }, () => noTexts);
    const states = this.#plant(sought, trie);
    this.#found.length = states;
    this.#table = trie.slice(0, states * this.#columns);
    this.#link();
  }

  /** Tells the number of each text at each place where it occurs. */
  find(text: string, tell: (no: number) => void): void {
    let state = 0;
    for (let at = 0; at < text.length; at++) {
      state = this.#table[state * this.#columns + this.#column(text.charCodeAt(at))] ?? 0;
      for (const no of this.#found[state] ?? noTexts) tell(no);
    }
  }

  #column(code: number): number {
    return code < charsMax ? (this.#columnOf[code] ?? 0) : 0;
  }

  /** Makes a state for each beginning of a text. Returns how many there are. */
  #plant(texts: readonly string[], trie: Uint16Array): number {
    let states = 1;
    for (const [no, text] of texts.entries()) {
      if (text === "") continue;
      let state = 0;
      for (let at = 0; at < text.length; at++) {
        const place = state * this.#columns + this.#column(text.charCodeAt(at));
        if (trie[place] === 0) {
          if (states === statesMax) throw new RangeError(`more than ${statesMax} states`);
          trie[place] = states++;
        }
        state = trie[place] ?? 0;
      }
      this.#found[state] = [...(this.#found[state] ?? noTexts), no];
    }
    return states;
  }

  /**
   * Links the states, breadth first: where a text goes no further, the search continues with the longest end
   * of it that begins another text.
   */
  #link(): void {
    const fallback = new Uint16Array(this.#found.length);
    const queue = [0];
    for (const state of queue) {
      const base = state * this.#columns;
      const fallbackBase = (fallback[state] ?? 0) * this.#columns;
      const more = state === 0 ? noTexts : (this.#found[fallback[state] ?? 0] ?? noTexts);
      if (more.length > 0) this.#found[state] = [...(this.#found[state] ?? noTexts), ...more];
      for (let column = 0; column < this.#columns; column++) {
        const child = this.#table[base + column] ?? 0;
        const link = state === 0 ? 0 : (this.#table[fallbackBase + column] ?? 0);
        if (child === 0) this.#table[base + column] = link;
        else {
          fallback[child] = link;
          queue.push(child);
        }
      }
    }
  }
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= charsMax) return false;
  return true;
}
