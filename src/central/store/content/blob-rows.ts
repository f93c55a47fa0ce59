// All rows of blobs, page by page in the order of their digests.

import type { Store } from "../engine/database.ts";

const rowsAtOnce = 1_000;

export async function* blobPages(
  store: Store,
): AsyncGenerator<readonly { readonly sha256: string; readonly size: number }[]> {
  for (let after = ""; ;) {
    const rows = await store
      .selectFrom("blobs")
      .select(["sha256", "size"])
      .where("sha256", ">", after)
      .orderBy("sha256")
      .limit(rowsAtOnce)
      .execute();
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = last.sha256;
  }
}
