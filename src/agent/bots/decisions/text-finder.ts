// Finds which of many short texts occur in a text, in one pass over it: the automaton of Aho and Corasick.
//
// A state is a beginning of texts, and most lead to one other state only. So a state has the list of those that it leads to, and where to go on when none of them fits. The
// few that lead to many have a row instead, with a column for each character that occurs in any of the texts; column 0 stands for all others, which lead back to the start.
// For the known crawlers there are about 15,000 states and some hundred rows, 150 KiB in each worker; a row for each state would be 2 MiB.

const charsMax = 128; // ASCII only: a text with other characters is never found.
const statesMax = 65_536; // States are numbers of 16 bits.
/** A state that leads to more has a row. */
const listedMax = 4;
const noTexts: readonly number[] = [];

export class TextFinder {
  readonly #columnOf = new Uint8Array(charsMax);
  readonly #columns: number;
  readonly #tree: Tree;
  /** Where the search goes on that cannot go on in a state: the longest end of it that begins a text, too. */
  readonly #fallback: Uint16Array;
  /** The number of a state's row; 0: it has none. */
  readonly #rowOf: Uint16Array;
  readonly #rows: Uint16Array;
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
    const planted = new Tree(sought.reduce((sum, { length }) => sum + length, 1));
    for (const [no, text] of sought.entries()) {
      if (text === "") continue;
      const state = planted.plant(text, this.#columnOf);
      this.#ending.set(state, [...this.#endingIn(state), no]);
    }
    const tree = (this.#tree = planted.cut());
    this.#fallback = new Uint16Array(tree.states);
    this.#rowOf = new Uint16Array(tree.states);
    let rows = 0;
    for (let state = 0; state < tree.states; state++)
      if (state === 0 || tree.leadsToMore(state, listedMax)) this.#rowOf[state] = ++rows;
    this.#rows = new Uint16Array((rows + 1) * columns);
    this.#link();
    this.#isEnd = new Uint8Array(tree.states);
    for (const state of this.#ending.keys()) this.#isEnd[state] = 1;
  }

  /** Tells the number of each text at each place where it occurs. */
  find(text: string, tell: (no: number) => void): void {
    let state = 0;
    for (let at = 0; at < text.length; at++) {
      state = this.#next(state, this.#column(text.charCodeAt(at)));
      if (this.#isEnd[state] === 1) for (const no of this.#endingIn(state)) tell(no);
    }
  }

  #endingIn(state: number): readonly number[] {
    return this.#ending.get(state) ?? noTexts;
  }

  #column(code: number): number {
    return code < charsMax ? (this.#columnOf[code] ?? 0) : 0;
  }

  #next(from: number, column: number): number {
    if (column === 0) return 0;
    // The start has a row, and each fallback is shorter.
    for (let state = from; ; state = this.#fallback[state] ?? 0) {
      const row = this.#rowOf[state] ?? 0;
      if (row !== 0) return this.#rows[row * this.#columns + column] ?? 0;
      const child = this.#tree.child(state, column);
      if (child !== 0) return child;
    }
  }

  /** Fills fallbacks and rows, breadth first: what is shorter is filled already. */
  #link(): void {
    const { firstChild, sibling, columnOf } = this.#tree;
    const queue = [0];
    for (const state of queue) {
      const fallback = this.#fallback[state] ?? 0;
      const row = (this.#rowOf[state] ?? 0) * this.#columns;
      if (state !== 0) {
        const more = this.#endingIn(fallback);
        if (more.length > 0) this.#ending.set(state, [...this.#endingIn(state), ...more]);
      }
      if (state !== 0 && row !== 0)
        for (let column = 1; column < this.#columns; column++)
          this.#rows[row + column] = this.#next(fallback, column);
      for (let child = firstChild[state] ?? 0; child !== 0; child = sibling[child] ?? 0) {
        const column = columnOf[child] ?? 0;
        if (state !== 0) this.#fallback[child] = this.#next(fallback, column);
        if (row !== 0) this.#rows[row + column] = child;
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
      state = this.#grow(state, columnOfChar[text.charCodeAt(at)] ?? 0);
    return state;
  }

  /** Returns the child of a state that a column leads to; 0: none. */
  child(state: number, column: number): number {
    const { firstChild, sibling, columnOf } = this;
    let child = firstChild[state] ?? 0;
    while (child !== 0 && columnOf[child] !== column) child = sibling[child] ?? 0;
    return child;
  }

  leadsToMore(state: number, than: number): boolean {
    let left = than;
    let child = this.firstChild[state] ?? 0;
    for (; child !== 0 && left > 0; left--) child = this.sibling[child] ?? 0;
    return child !== 0;
  }

  /** Returns the same tree without the memory that it did not need. */
  cut(): Tree {
    const cut = new Tree(this.states);
    cut.states = this.states;
    cut.firstChild.set(this.firstChild.subarray(0, this.states));
    cut.sibling.set(this.sibling.subarray(0, this.states));
    cut.columnOf.set(this.columnOf.subarray(0, this.states));
    return cut;
  }

  #grow(state: number, column: number): number {
    const found = this.child(state, column);
    if (found !== 0) return found;
    if (this.states === statesMax) throw new RangeError(`more than ${statesMax} states`);
    const made = this.states++;
    this.sibling[made] = this.firstChild[state] ?? 0;
    this.firstChild[state] = made;
    this.columnOf[made] = column;
    return made;
  }
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= charsMax) return false;
  return true;
}
