// The store that a test runs on: a SQLite file, or, within `onPostgres`, a database of PostgreSQL that stands for that file.

import { createHash } from "node:crypto";
import { openReader, openStore, type Store } from "../../src/central/store/engine/database.ts";
import type { Postgres } from "./postgres.ts";

type OpenStore = Store & AsyncDisposable;

/** Of this test file: each runs in a module graph of its own. */
const chosen: { isMeant: boolean; postgres: Postgres | undefined; centrals: number } = {
  isMeant: false,
  postgres: undefined,
  centrals: 1,
};

/** Said before tests are collected: those about the SQLite file itself can tell that they are not meant. */
export function meanPostgres(): void {
  chosen.isMeant = true;
}

export function isPostgresMeant(): boolean {
  return chosen.isMeant;
}

/** From now on stores are databases of it, at which so many centrals work where a test can have several. */
export function onPostgres(postgres: Postgres, centrals = 1): void {
  chosen.postgres = postgres;
  chosen.centrals = centrals;
}

export function centralsMeant(): number {
  return chosen.centrals;
}

export async function openTestStore(path: string, now: () => Date): Promise<OpenStore> {
  return chosen.postgres === undefined
    ? openStore(path, now)
    : chosen.postgres.store(databaseOf(path), now);
}

export function openTestReader(path: string): OpenStore {
  return chosen.postgres === undefined
    ? openReader(path)
    : chosen.postgres.reader(databaseOf(path));
}

/** The database that stands for a file. */
export function databaseOf(path: string): string {
  return `t_${createHash("sha256").update(path).digest("hex").slice(0, 24)}`;
}
