// What the store says of where its blobs and packages lie.

import type { Queries } from "../engine/database.ts";

export type ObjectsPlace = {
  /** Whether they are in a bucket; otherwise they are in the state directory. */
  readonly isInBucket: boolean;
  /** Whether there are none. */
  readonly isEmpty: boolean;
};

/** What it says may be asked of a store of an older release, whose objects are never in a bucket. */
export async function placeOfObjects(db: Queries): Promise<ObjectsPlace> {
  const row: { readonly objects?: string | null } = await db
    .selectFrom("store")
    .selectAll()
    .where("id", "=", 1)
    .executeTakeFirstOrThrow();
  const blob = await db.selectFrom("blobs").select("sha256").limit(1).executeTakeFirst();
  const wheel = await db.selectFrom("packages").select("id").limit(1).executeTakeFirst();
  return { isInBucket: row.objects === "s3", isEmpty: blob === undefined && wheel === undefined };
}

export async function setPlaceOfObjects(db: Queries, objects: "s3" | null): Promise<void> {
  await db.updateTable("store").set({ objects }).where("id", "=", 1).execute();
}
