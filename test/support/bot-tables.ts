// Bot sets for tests: compiled at once and in this thread, the one of a database or a few elements.

import { SetStore } from "../../src/agent/bots/sets/set-store.ts";
import { builtTables, openArenas, TableMaker } from "../../src/agent/bots/tables/table-maker.ts";
import type { TableClient } from "../../src/agent/bots/tables/table-client.ts";
import type { Sqlite } from "../../src/base/sqlite.ts";
import { AddressReader } from "../../src/core/addresses/address-reader.ts";
import { AddressTable, type AddressTableRef } from "../../src/core/addresses/address-table.ts";
import { planTable, RangeSetBuilder } from "../../src/core/addresses/range-set.ts";
import type { HostSet } from "../../src/core/serving/serving-state.ts";
import type { SetElement } from "../../src/core/addresses/set-digest.ts";

export function tableOf(elements: Iterable<SetElement>): AddressTableRef {
  const builder = new RangeSetBuilder();
  for (const { bot, range } of elements) builder.add(bot, range);
  const plan = planTable(builder.build());
  const ref = { buffer: new SharedArrayBuffer(plan.bytes), at: 0 };
  plan.write(ref);
  return ref;
}

/** `pairs` by owner: names ascend by their bytes, the first is owner 1. */
export function hostSetOf(
  elements: Iterable<SetElement>,
  pairs: readonly number[] = [],
  host = "www.example.com",
): HostSet {
  return { host, version: 1, table: tableOf(elements), pairs: Uint8Array.from(pairs) };
}

/** As the table thread, without the thread. */
export function tablesOf(db: Sqlite): Pick<TableClient, "build"> {
  const arenas = openArenas(2 ** 26);
  const maker = new TableMaker(db, arenas);
  return { build: async (sets, inForce) => builtTables(maker.build(sets, inForce), arenas) };
}

/** A set store with the tables of what it holds, kept up with its changes as the agent's are. */
export class KeptTables {
  readonly store: SetStore;
  readonly #maker: TableMaker;
  readonly #arenas = openArenas(2 ** 22);
  #inForce: 0 | 1 = 0;

  constructor(db: Sqlite) {
    this.#maker = new TableMaker(db, this.#arenas);
    this.store = new SetStore(db, (delta) => this.#maker.note(delta));
  }

  /** Who holds the address in the bad set of the host. */
  holder(host: string, text: string): string | undefined {
    const built = builtTables(this.#maker.build(this.store.list(), this.#inForce), this.#arenas);
    this.#inForce = built.arena;
    const set = built.sets.get(`bad/${host}`);
    const reader = new AddressReader();
    const family = reader.read(text);
    if (set === undefined || family === 0) return undefined;
    const table = new AddressTable(set.table);
    const owner = table.ownerOf(family, reader.words);
    return owner === 0 ? undefined : table.name(owner);
  }
}

/** A whole set as it arrives, in pieces of three. */
export async function* batches(
  elements: readonly SetElement[],
): AsyncGenerator<readonly SetElement[]> {
  for (let at = 0; at < elements.length; at += 3) yield elements.slice(at, at + 3);
}
