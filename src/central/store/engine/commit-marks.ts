// What this run of central has acknowledged, in memory: numbers of transactions, and the ends of journals.

import {
  commitsKept,
  journalsKept,
  journalsOfCommit,
  type Acknowledged,
  type JournalTold,
} from "./store-evidence.ts";

export class CommitMarks {
  readonly run: string;
  readonly #now: () => Date;
  readonly #commits: Acknowledged[] = [];
  /** Numbers of transactions that may be acknowledged yet. */
  readonly #atWork = new Set<number>();
  /** In the order in which they were told last. */
  readonly #journals = new Map<number, JournalTold>();
  #last = 0;
  /** Called after each change; must not throw. */
  onChange: () => void = () => undefined;

  /** The number 0 stands in the store already. */
  constructor(run: string, now: () => Date) {
    this.run = run;
    this.#now = now;
    this.#commits.push({ no: 0, atMs: now().getTime() });
  }

  /** The number of a transaction that is about to be committed. Its end is told by `ended`. */
  next(): number {
    const no = ++this.#last;
    this.#atWork.add(no);
    return no;
  }

  /** The transaction is over, and what is to be acknowledged of it was. */
  ended(no: number): void {
    this.#atWork.delete(no);
  }

  /** The transaction is in force, and its caller is about to hear so. */
  acknowledged(no: number): void {
    this.#commits.push({ no, atMs: this.#now().getTime() });
    if (this.#commits.length > 2 * commitsKept)
      this.#commits.splice(0, this.#commits.length - commitsKept);
    this.onChange();
  }

  /** Journals that were made longer by what was acknowledged, with their ends. */
  journalsTold(ends: Iterable<readonly [siteId: number, seq: number]>): void {
    const atMs = this.#now().getTime();
    let count = 0;
    for (const [siteId, seq] of ends) {
      if (++count > journalsOfCommit) break;
      this.#journals.delete(siteId);
      this.#journals.set(siteId, { siteId, seq, atMs });
    }
    while (this.#journals.size > journalsKept) {
      const [oldest] = this.#journals.keys();
      if (oldest !== undefined) this.#journals.delete(oldest);
    }
    if (count > 0) this.onChange();
  }

  get commits(): readonly Acknowledged[] {
    return this.#commits.slice(-commitsKept);
  }

  /** Numbers below this one have served: neither what is remembered nor what is at work has one. */
  get servedBelow(): number {
    let least = Infinity;
    for (const { no } of this.commits) least = Math.min(least, no);
    for (const no of this.#atWork) least = Math.min(least, no);
    return least;
  }

  get journals(): readonly JournalTold[] {
    return [...this.#journals.values()];
  }
}
