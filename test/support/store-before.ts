// A central's SQLite file as an older release left it.

import { Kysely } from "kysely";
import { Migrator } from "kysely/migration";
import { openSqlite } from "../../src/base/sqlite.ts";
import { migrations } from "../../src/central/store/engine/migrations.ts";
import { PacedSqliteDialect } from "../../src/central/store/engine/paced-dialect.ts";

/** Makes the file with all steps up to this one. */
export async function storeBefore(
  path: string,
  lastStep: keyof typeof migrations,
): Promise<Kysely<unknown>> {
  const db = new Kysely<unknown>({
    dialect: new PacedSqliteDialect({ database: openSqlite(path, { sync: "full" }) }),
  });
  const provider = { getMigrations: async () => ({ ...migrations }) };
  const { error } = await new Migrator({ db, provider }).migrateTo(lastStep);
  if (error !== undefined) throw new Error(`${lastStep} was not reached`, { cause: error });
  return db;
}
