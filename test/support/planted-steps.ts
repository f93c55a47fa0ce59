// Steps of releases to come, made up: one that adds to every table, and one that takes away.

import { Migrator } from "kysely/migration";
import type { Store } from "../../src/central/store/engine/database.ts";
import { migrations } from "../../src/central/store/engine/migrations.ts";
import {
  expansion,
  keptSteps,
  type StoreSteps,
} from "../../src/central/store/engine/store-steps.ts";

/** Tables that the customer API and agents read and write all the time. */
const widened = [
  "audit",
  "blobs",
  "bot_elements",
  "bot_sets",
  "bots",
  "centrals",
  "channels",
  "clears",
  "customers",
  "deployment_sites",
  "domain_links",
  "domains",
  "instances",
  "journal",
  "receipts",
  "store",
  "tokens",
  "users",
  "viewsets",
];

export const plantedName = "0900-planted";
export const plantedStatements = `
  ${widened.map((table) => `ALTER TABLE ${table} ADD COLUMN planted text; ALTER TABLE ${table} ADD COLUMN planted_count integer NOT NULL DEFAULT 7;`).join("\n")}
  CREATE TABLE planted (id $id, domain_id integer → domains, note text NOT NULL);
  CREATE INDEX journal_planted ON journal (planted_count);
`;
export const planted = { [plantedName]: expansion(plantedStatements) } as const;

/** Brings a store to a release that has these steps beside ours. */
export async function bringTo(store: Store, more: StoreSteps): Promise<void> {
  const provider = keptSteps({ ...migrations, ...more });
  const { error } = await new Migrator({ db: store, provider }).migrateToLatest();
  if (error !== undefined) throw new Error("a planted step failed", { cause: error });
}
