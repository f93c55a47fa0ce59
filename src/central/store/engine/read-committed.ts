// The units that run under READ COMMITTED on PostgreSQL: who they are, and why none of them can miss what another does. All others are SERIALIZABLE.
//
// Under READ COMMITTED each statement sees what was committed before it began. A unit that reads and then writes what follows from it is safe only if nobody else
// can write between the two. A case that is missed is silent. So a unit is on this list if many agents do it all the time, and if one of two holds:
//
//   own row first    it writes the row of its instance before it reads anything of it; a second one of that instance waits there, and then reads what the first wrote
//   one statement    what it reads and writes is one statement: a sum that is added, a row that is removed
//
// test/central/store/postgres-races.test.ts has a race of each.

import type { Store, Tx } from "./database.ts";
import { isPostgres } from "./statements.ts";

export const readCommittedUnits = {
  hellos:
    "What an agent says of itself at its hello is written to the row of its instance, and nothing is read.",
  reports:
    "Own row first: the report before is read behind it, and so are batches that were counted and backends in trouble, which all belong to the instance. Traffic of a domain is added in one statement. The names of unreviewed bots of a day are counted before they are added: of two reports each may add up to the limit, which bounds a table and nothing else.",
  receipts:
    "Own row first: receipts and their corrections belong to the instance. Heads of journals only grow. Receipts that end an import, or a trial that a fleet decided on, are SERIALIZABLE.",
  log_confirmations:
    "The time is written to the row of the instance. Which instance delivered, where an agent of an older release does not say, is a guess by who was seen lately, and stays one.",
  clears:
    "Own row first: the customer's. Behind it clears of one customer come one after the other, with their numbers and the answers to repeated calls. Journals are locked in the order of ids before they are read. A site that the domain is linked to meanwhile is linked behind the clear. An order to 50,000 sites takes seconds, in which SERIALIZABLE would take anybody's clear for one that met it, and run it again.",
  commit_marks:
    "Numbers that have served are removed by one statement, which nobody reads again. Under SERIALIZABLE it would hold up those who write numbers meanwhile.",
} as const satisfies Readonly<Record<string, string>>;

export type ReadCommittedUnit = keyof typeof readCommittedUnits;

/** A unit on the list whose own row is locked before anything is read. */
export type OwnRowUnit = {
  readonly unit: ReadCommittedUnit;
  /** Units with the same key wait for each other within a process. */
  readonly key: string;
  readonly lock: (tx: Tx) => Promise<unknown>;
};

/**
 * Begins a transaction for units on the list, and for no others. It is repeated as every unit is: after a deadlock, or where another made the row first. SQLite has one
 * kind of transaction.
 */
export function readCommitted(
  store: Store,
  ...units: readonly [ReadCommittedUnit, ...ReadCommittedUnit[]]
): ReturnType<Store["transaction"]> {
  const begun = store.transaction();
  const areListed = units.every((unit) => Object.hasOwn(readCommittedUnits, unit));
  return areListed && isPostgres(store) ? begun.setIsolationLevel("read committed") : begun;
}
