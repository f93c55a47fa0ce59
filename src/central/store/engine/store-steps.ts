// What a release must know to work on a store, so that centrals of two releases work on one, and a release before is no dead end.
//
// Each step of the store (migrations.ts) says what it needs. A step that only adds needs nothing: a release that has never heard of it goes on as before, and may start as well. A step
// that takes something away, or gives it another meaning, needs that a release knows the step since which nobody uses it. `store_steps` keeps that for steps that are done, because the
// release that is asked whether it may work on the store does not know them.
//
//   a store with steps that this release does not know    may be used if each of them is in `store_steps` and none needs a step that this release does not know
//   a step to be done that needs one                      is not done while a central of a release works that does not know that one (`centrals.level`)

import { setTimeout as sleepFor } from "node:timers/promises";
import { sql, type QueryExecutorProvider } from "kysely";
import type { Migration, MigrationProvider } from "kysely/migration";
import { AccelError } from "../../../core/faults.ts";
import { runStatements, type Db } from "./statements.ts";

/** "nothing", "itself", or the name of an earlier step. */
export type StepNeeds = "nothing" | "itself" | { readonly step: string };

export type StoreStep = Migration & { readonly needs: StepNeeds };
export type StoreSteps = Readonly<Record<string, StoreStep>>;

/** The step that makes the table. Of earlier ones nothing is kept: a release that lacks one of them knows nothing of this. */
export const firstKept = "0038-store-steps";

export const storeSteps = `
  CREATE TABLE store_steps (
    name text NOT NULL, needs text NOT NULL,
    CONSTRAINT store_steps_pk PRIMARY KEY (name)
  );
  ALTER TABLE centrals ADD COLUMN level text;
`;

/** A step that adds tables, indexes, and columns that are null or have a default; a release that does not know it is not disturbed. */
export function expansion(statements: string): StoreStep {
  return { up: async (db: Db) => runStatements(db, statements), needs: "nothing" };
}

/** A step that takes away, or changes, what no release uses since `step`. */
export function contraction(step: string, statements: string): StoreStep {
  return { up: async (db: Db) => runStatements(db, statements), needs: { step } };
}

/** Returns the name of the step that a release must know, "" for none. Pure. */
function neededBy(name: string, { needs }: StoreStep): string {
  if (needs === "nothing") return "";
  return needs === "itself" ? name : needs.step;
}

/** Returns the steps as they are done: each notes what it needs, in its own transaction. */
export function keptSteps(steps: StoreSteps): MigrationProvider {
  return {
    getMigrations: async () =>
      Object.fromEntries(Object.entries(steps).map(([name, step]) => [name, keptStep(name, step)])),
  };
}

function keptStep(name: string, step: StoreStep): Migration {
  if (name < firstKept) return step;
  return {
    up: async (db: Db) => {
      await step.up(db);
      const needs = neededBy(name, step);
      await sql`INSERT INTO store_steps (name, needs) VALUES (${name}, ${needs})`.execute(db);
    },
  };
}

/** Returns the last step of a release. Pure. */
export const levelOf = (steps: StoreSteps): string => Object.keys(steps).toSorted().at(-1) ?? "";

type Named = { readonly name: string };

async function stepsDone(db: QueryExecutorProvider): Promise<ReadonlySet<string>> {
  const { rows } = await sql<Named>`SELECT name FROM kysely_migration`.execute(db);
  return new Set(rows.map(({ name }) => name));
}

/** Returns the newest step that the store has and this release does not know; undefined where it knows all. */
export async function newestUnknown(
  db: QueryExecutorProvider,
  steps: StoreSteps,
): Promise<string | undefined> {
  const done = await stepsDone(db);
  return [...done]
    .filter((name) => !Object.hasOwn(steps, name))
    .toSorted()
    .at(-1);
}

/** Returns whether this release may work on a store that has steps of a newer one. Asks nothing of a store that lacks a step of this release: it is false then. */
export async function mayWorkOn(db: QueryExecutorProvider, steps: StoreSteps): Promise<boolean> {
  const done = await stepsDone(db);
  if (!Object.hasOwn(steps, firstKept) || Object.keys(steps).some((name) => !done.has(name)))
    return false;
  const { rows } = await sql<Named & { needs: string }>`
    SELECT name, needs FROM store_steps
  `.execute(db);
  const needsOf = new Map(rows.map(({ name, needs }) => [name, needs]));
  return [...done].every(
    (name) => Object.hasOwn(steps, name) || (needsOf.get(name) ?? name) <= levelOf(steps),
  );
}

/** A central beats every 2 s: of one whose beat stands still for longer nothing is left but its row. */
const lookMs = 2_000;
const looksMax = 6;

/**
 * On PostgreSQL. Throws STORE_TAKEN where a step that is to be done would break a central that works on the store. Resolves at once where none would; one that is gone without a word
 * is waited for, until its beat has stood still for 10 s.
 */
export async function refuseToBreak(
  db: QueryExecutorProvider,
  steps: StoreSteps,
  where: string,
): Promise<void> {
  if (!(await hasSteps(db))) return;
  const done = await stepsDone(db);
  if (!done.has("0034-centrals")) return;
  const [breaks] = Object.entries(steps)
    .filter(([name]) => !done.has(name))
    .map(([name, step]) => ({ name, needed: neededBy(name, step) }))
    .toSorted((a, b) => (a.needed > b.needed ? -1 : 1));
  if (breaks === undefined || breaks.needed === "") return;
  const before = new Map<string, number>();
  for (let looks = 0; looks < looksMax; looks++) {
    const older = (await centralsAt(db, done)).filter(({ level }) => level < breaks.needed);
    if (older.length === 0) return;
    const moved = older.find(({ id, beat }) => (before.get(id) ?? beat) !== beat);
    if (moved !== undefined)
      throw new AccelError(
        "STORE_TAKEN",
        `the step ${breaks.name} of this release would break the central at ${moved.address} (release ${moved.version}), which works on the store ${where}`,
        {
          hint: `Nothing was changed. Bring that central to a release that knows ${breaks.needed} first, or stop it; docs/operations/upgrades.md says which releases work side by side.`,
        },
      );
    for (const { id, beat } of older) before.set(id, beat);
    await sleepFor(lookMs);
  }
}

/** On PostgreSQL: whether anything was done to the database yet. */
async function hasSteps(db: QueryExecutorProvider): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`
    SELECT to_regclass('kysely_migration') IS NOT NULL AS there
  `.execute(db);
  return rows[0]?.there === true;
}

type AtStore = {
  readonly id: string;
  readonly address: string;
  readonly version: string;
  readonly beat: number;
  readonly level: string;
};

async function centralsAt(
  db: QueryExecutorProvider,
  done: ReadonlySet<string>,
): Promise<readonly AtStore[]> {
  const level = done.has(firstKept) ? sql`coalesce(level, '')` : sql`''`;
  const { rows } = await sql<AtStore>`
    SELECT id, address, version, beat, ${level} AS level FROM centrals
  `.execute(db);
  return rows;
}
