// A worker's side of publishing: states that main has staged, and the one that the shared word says is in force (guarantees §3).

import { nothingServed, type ServingState } from "../../../core/serving/serving-state.ts";
import { HostTable, type HostTableOptions } from "./host-table.ts";
import type { PoolWords } from "./shared-words.ts";

export class StagedStates {
  readonly #words: PoolWords;
  readonly #options: HostTableOptions;
  readonly #tables = new Map<number, HostTable>();
  readonly #nothing: HostTable;

  constructor(words: PoolWords, options: HostTableOptions) {
    this.#words = words;
    this.#options = options;
    this.#nothing = new HostTable(nothingServed, options);
  }

  stage(state: ServingState): void {
    this.#tables.set(state.version, new HostTable(state, this.#options));
  }

  /** A request that is under way keeps the table that it has. */
  drop(below: number): void {
    for (const version of this.#tables.keys()) if (version < below) this.#tables.delete(version);
  }

  /** Undefined: it was not staged, or dropped. */
  staged(version: number): HostTable | undefined {
    return this.#tables.get(version);
  }

  /** Read once per request. Version 0: nothing has been published yet. */
  current(): HostTable {
    const { version } = this.#words;
    const table = version === 0 ? this.#nothing : this.#tables.get(version);
    // Main flips only after this thread's acknowledgement.
    if (table === undefined) throw new TypeError(`state ${version} was flipped to unstaged`);
    return table;
  }
}
