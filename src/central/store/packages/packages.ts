// Accelerator packages: which versions there are, and which of them is the newest.

import type { NewPackage, PackageRow } from "../../../core/accel-package.ts";
import { comparePackageVersions, parsePackageVersion } from "../../../core/package-version.ts";
import type { Sha256 } from "../../../core/ids.ts";
import type { Queries } from "../engine/database.ts";
import type { Work } from "../engine/work.ts";

const columns = [
  "id",
  "version",
  "version_key as versionKey",
  "file",
  "size",
  "sha256",
  "stored_as as storedAs",
  "when_created",
] as const;

export function packages(work: Work) {
  const { tx, at } = work;
  return {
    async find(versionKey: string): Promise<PackageRow | undefined> {
      const row = await tx
        .selectFrom("packages")
        .select(columns)
        .where("version_key", "=", versionKey)
        .executeTakeFirst();
      return row === undefined ? undefined : read(row);
    },

    newest: async () => newestPackage(tx),

    async add({ userId, ...given }: NewPackage): Promise<PackageRow | "exists"> {
      const row = await tx
        .insertInto("packages")
        .values({
          version: given.version,
          version_key: given.versionKey,
          file: given.file,
          size: given.size,
          sha256: given.sha256,
          stored_as: given.storedAs,
          uploaded_by_user_id: userId,
          when_created: at,
        })
        .onConflict((conflict) => conflict.column("version_key").doNothing())
        .returning(columns)
        .executeTakeFirst();
      return row === undefined ? "exists" : read(row);
    },
  };
}

/** The highest version; a few hundred rows at most, which no collation of a database orders. */
export async function newestPackage(db: Queries): Promise<PackageRow | undefined> {
  const versions = await db.selectFrom("packages").select(["id", "version"]).execute();
  const parsed = versions.flatMap(({ id, version }) => {
    const known = parsePackageVersion(version);
    return known === undefined ? [] : [{ id, known }];
  });
  const newest = parsed
    .toSorted((a, b) => comparePackageVersions(a.known, b.known) || a.id - b.id)
    .at(-1);
  if (newest === undefined) return undefined;
  return read(
    await db
      .selectFrom("packages")
      .select(columns)
      .where("id", "=", newest.id)
      .executeTakeFirstOrThrow(),
  );
}

/** Names of the files in the directory of packages. */
export async function storedPackages(db: Queries): Promise<ReadonlySet<string>> {
  const rows = await db.selectFrom("packages").select("stored_as").execute();
  return new Set(rows.map((row) => row.stored_as));
}

function read<R extends { readonly sha256: string }>(row: R): R & { readonly sha256: Sha256 } {
  return { ...row, sha256: row.sha256 as Sha256 }; // As written.
}
