// Finds which of many short texts occur in a text, in one pass over it: the automaton of Aho and Corasick as
// one flat table.
//
// Rows are states, and columns are the characters that occur in any of the texts; column 0 stands for all
// others, which lead back to the start. For the known crawlers it has about 15,000 states of 70 columns, 2
// MiB.

type Node = { readonly next: Map<number, number>; found: number[] };

const charsMax = 128; // ASCII only: a text with other characters is never found.
const statesMax = 65_536; // The table is a Uint16Array.

export class TextFinder {
  readonly #columnOf = new Uint8Array(charsMax);
  readonly #columns: number;
  readonly #table: Uint16Array;
  /** The numbers of the texts that end in each state. */
  readonly #found: readonly (readonly number[])[];

  /** Throws RangeError if the texts are too many. Empty texts are never found. */
  constructor(texts: readonly string[]) {
    const nodes = trieOf(texts);
    if (nodes.length > statesMax) throw new RangeError(`${nodes.length} states of ${statesMax}`);
    const used = new Set(nodes.flatMap(({ next }) => [...next.keys()]));
    for (const [at, code] of [...used].entries()) this.#columnOf[code] = at + 1;
    this.#columns = used.size + 1;
    this.#table = new Uint16Array(nodes.length * this.#columns);
    this.#link(nodes);
    this.#found = nodes.map(({ found }) => found);
  }

  /** Tells the number of each text at each place where it occurs. */
  find(text: string, tell: (no: number) => void): void {
    let state = 0;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      const column = code < charsMax ? (this.#columnOf[code] ?? 0) : 0;
      state = this.#table[state * this.#columns + column] ?? 0;
      for (const no of this.#found[state] ?? []) tell(no);
    }
  }

  /**
   * Links the states, breadth first: where a text goes no further, the search continues with the longest end
   * of it that begins another text.
   */
  #link(nodes: readonly Node[]): void {
    const fallback = new Uint16Array(nodes.length);
    const queue = [0];
    for (const state of queue) {
      const node = nodes[state];
      const from = fallback[state] ?? 0;
      const base = state * this.#columns;
      if (state !== 0) {
        this.#table.copyWithin(base, from * this.#columns, (from + 1) * this.#columns);
        node?.found.push(...(nodes[from]?.found ?? []));
      }
      for (const [code, child] of node?.next ?? []) {
        const place = base + (this.#columnOf[code] ?? 0);
        fallback[child] = this.#table[place] ?? 0;
        this.#table[place] = child;
        queue.push(child);
      }
    }
  }
}

function trieOf(texts: readonly string[]): readonly Node[] {
  const nodes: Node[] = [{ next: new Map(), found: [] }];
  for (const [no, text] of texts.entries()) {
    const codes = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
    if (codes.length === 0 || codes.some((code) => code >= charsMax)) continue;
    let node = nodes[0];
    for (const code of codes) {
      let child: number | undefined = node?.next.get(code);
      if (child === undefined) {
        child = nodes.push({ next: new Map(), found: [] }) - 1;
        node?.next.set(code, child);
      }
      node = nodes[child];
    }
    node?.found.push(no);
  }
  return nodes;
}
