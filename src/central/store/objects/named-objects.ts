// Whether the place of blobs and packages has what the store names. Another bucket, or another directory, answers well and has nothing of it.

import type { Queries } from "../engine/database.ts";

export type NamedObject = {
  readonly kind: "blob" | "package";
  /** In the bucket, or below the directory of the central's state. */
  readonly place: string;
};

/** Returns the newest blob and the newest package that the store names, as far as there are any. May ask a store of an older release, whose objects are in the state directory. */
async function newestNamed(db: Queries, isInBucket: boolean): Promise<readonly NamedObject[]> {
  const blobs = db.selectFrom("blobs").selectAll().orderBy("when_created", "desc").limit(1);
  const packages = db.selectFrom("packages").selectAll().orderBy("id", "desc").limit(1);
  if (!isInBucket) {
    const [blob, wheel] = [await blobs.executeTakeFirst(), await packages.executeTakeFirst()];
    return [
      ...(blob === undefined
        ? []
        : [{ kind: "blob", place: `blobs/${blob.sha256.slice(0, 2)}/${blob.sha256}` } as const]),
      ...(wheel === undefined
        ? []
        : [{ kind: "package", place: `packages/${wheel.stored_as}` } as const]),
    ];
  }
  // What the disk had lost when all was moved has no key, and what goes after its delay may be gone.
  const blob = await blobs
    .where("object_key", "is not", null)
    .where("when_dead", "is", null)
    .executeTakeFirst();
  const wheel = await packages.where("object_key", "is not", null).executeTakeFirst();
  return [
    ...(typeof blob?.object_key === "string"
      ? [{ kind: "blob", place: blob.object_key } as const]
      : []),
    ...(typeof wheel?.object_key === "string"
      ? [{ kind: "package", place: wheel.object_key } as const]
      : []),
  ];
}

export type NamedLook = {
  readonly store: Queries;
  readonly isInBucket: boolean;
  /** Throws where that cannot be known now. */
  readonly isThere: (named: NamedObject) => Promise<boolean>;
};

/** Returns one of the newest that is named and is not there; undefined where all are. Throws what the store and `isThere` throw. */
export async function namedAndMissing(look: NamedLook): Promise<NamedObject | undefined> {
  const { store, isInBucket, isThere } = look;
  for (const named of await newestNamed(store, isInBucket)) {
    if (await isThere(named)) continue;
    // It may have been removed by right between the two looks.
    const again = await newestNamed(store, isInBucket);
    if (again.some(({ place }) => place === named.place)) return named;
  }
  return undefined;
}
