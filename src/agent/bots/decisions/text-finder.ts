// Finds which of many short texts occur in a text, in one pass over it: the automaton of Aho and Corasick as
// one flat table.
//
// Rows are states, and columns are the characters that occur in any of the texts; column 0 stands for all
// others, which lead back to the start. For the known crawlers it has about 15,000 states of 70 columns, 2
// MiB. Each worker makes it before it takes visitors, so it is made quickly: the beginnings of the texts are
// a tree first, and the table is filled from that, row by row.

const charsMax = 128; // ASCII only: a text with other characters is never found.
const statesMax = 65_536; // The table is a Uint16Array.
const noTexts: readonly number[] = [];

export class TextFinder {
  readonly #columnOf = new Uint8Array(charsMax);
  readonly #columns: number;
  readonly #table: Uint16Array;
  /** 1 for each state in which a text ends. */
  readonly #isEnd: Uint8Array;
  /** The numbers of the texts that end in a state. */
  readonly #ending = new Map<number, readonly number[]>();

  /** Throws RangeError if the texts are too many. Empty texts are never found. */
  constructor(texts: readonly string[]) {
    const sought = texts.map((text) => (isAscii(text) ? text : ""));
    const chars = new Set(sought.join(""));
    let columns = 1;
    for (const char of chars) this.#columnOf[char.charCodeAt(0)] = columns++;
    this.#columns = columns;
    const tree = new Tree(sought.reduce((sum, { length }) => sum + length, 1));
    for (const [no, text] of sought.entries()) {
      if (text === "") continue;
      const state = tree.plant(text, this.#columnOf);
      this.#ending.set(state, [...this.#endingIn(state), no]);
    }
    this.#table = new Uint16Array(tree.states * columns);
    this.#link(tree);
    this.#isEnd = new Uint8Array(tree.states);
    for (const state of this.#ending.keys()) this.#isEnd[state] = 1;
  }

  /** Tells the number of each text at each place where it occurs. */
  find(text: string, tell: (no: number) => void): void {
    let state = 0;
    for (let at = 0; at < text.length; at++) {
      state = this.#table[state * this.#columns + this.#column(text.charCodeAt(at))] ?? 0;
      if (this.#isEnd[state] === 1) for (const no of this.#endingIn(state)) tell(no);
    }
  }

  #endingIn(state: number): readonly number[] {
    return this.#ending.get(state) ?? noTexts;
  }

  #column(code: number): number {
    return code < charsMax ? (this.#columnOf[code] ?? 0) : 0;
  }

  /**
   * Fills the table, breadth first: where a text goes no further, the search continues with the longest end
   * of it that begins another text. That one is shorter, so its row is filled already.
   */
  #link({ states, firstChild, sibling, columnOf }: Tree): void {
    const table = this.#table;
    const columns = this.#columns;
    const fallback = new Uint16Array(states);
    const queue = [0];
    for (const state of queue) {
      const row = state * columns;
      const shorter = (fallback[state] ?? 0) * columns;
      if (state !== 0) {
        table.copyWithin(row, shorter, shorter + columns);
        const more = this.#endingIn(fallback[state] ?? 0);
        if (more.length > 0) this.#ending.set(state, [...this.#endingIn(state), ...more]);
      }
      for (let child = firstChild[state] ?? 0; child !== 0; child = sibling[child] ?? 0) {
        const place = columnOf[child] ?? 0;
        if (state !== 0) fallback[child] = table[shorter + place] ?? 0;
        table[row + place] = child;
        queue.push(child);
      }
    }
  }
}

/** A state for each beginning of a text; 0 is the empty one, the root. The children of a state are a linked list, which 0 ends. */
class Tree {
  readonly firstChild: Uint16Array;
  readonly sibling: Uint16Array;
  /** The column of the character that leads to a state. */
  readonly columnOf: Uint8Array;
  states = 1;

  /** `statesBound` is reached where no two texts begin alike. */
  constructor(statesBound: number) {
    this.firstChild = new Uint16Array(statesBound);
    this.sibling = new Uint16Array(statesBound);
    this.columnOf = new Uint8Array(statesBound);
  }

  /** Returns the state of the whole text. Throws RangeError. */
  plant(text: string, columnOfChar: Uint8Array): number {
    let state = 0;
    for (let at = 0; at < text.length; at++)
      state = this.#child(state, columnOfChar[text.charCodeAt(at)] ?? 0);
    return state;
  }

  #child(state: number, column: number): number {
    const { firstChild, sibling, columnOf } = this;
    const first = firstChild[state] ?? 0;
    for (let child = first; child !== 0; child = sibling[child] ?? 0)
      if (columnOf[child] === column) return child;
    if (this.states === statesMax) throw new RangeError(`more than ${statesMax} states`);
    const made = this.states++;
    firstChild[state] = made;
    sibling[made] = first;
    columnOf[made] = column;
    return made;
  }
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= charsMax) return false;
  return true;
}
