// Accelerator packages, one for each version: which there are, and which of them is the newest.

import type { Insertable } from "kysely";
import { comparePackageVersions, parsePackageVersion } from "../../../core/package-version.ts";
import type { Queries } from "../engine/database.ts";
import type { StoreTables, TableRow } from "../engine/schema.ts";
import type { Work } from "../engine/work.ts";

export type PackageRow = TableRow<"packages">;

export async function findPackage(
  { tx }: Work,
  versionKey: string,
): Promise<PackageRow | undefined> {
  return tx
    .selectFrom("packages")
    .selectAll()
    .where("version_key", "=", versionKey)
    .executeTakeFirst();
}

export async function addPackage(
  { tx, at }: Work,
  given: Omit<Insertable<StoreTables["packages"]>, "when_created">,
): Promise<PackageRow | "exists"> {
  const row = await tx
    .insertInto("packages")
    .values({ ...given, when_created: at })
    .onConflict((conflict) => conflict.column("version_key").doNothing())
    .returningAll()
    .executeTakeFirst();
  return row ?? "exists";
}

/** The highest version; a few hundred rows at most, which no collation of a database orders. */
export async function newestPackage(db: Queries): Promise<PackageRow | undefined> {
  const rows = await db.selectFrom("packages").selectAll().execute();
  const parsed = rows.flatMap((row) => {
    const version = parsePackageVersion(row.version);
    return version === undefined ? [] : [{ row, version }];
  });
  return parsed
    .toSorted((a, b) => comparePackageVersions(a.version, b.version) || a.row.id - b.row.id)
    .at(-1)?.row;
}

/** Names of the files in the directory of packages. */
export async function storedPackages(db: Queries): Promise<ReadonlySet<string>> {
  const rows = await db.selectFrom("packages").select("stored_as").execute();
  return new Set(rows.map((row) => row.stored_as));
}
