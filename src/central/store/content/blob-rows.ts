// All rows of blobs, page by page in the order of their digests.

import type { Sha256 } from "../../../core/ids.ts";
import type { Store } from "../engine/database.ts";

const rowsAtOnce = 1_000;

export async function* blobPages(
  store: Store,
): AsyncGenerator<readonly { readonly sha256: Sha256; readonly size: number }[]> {
  for (let after: Sha256 | undefined; ;) {
    let query = store.selectFrom("blobs").select(["sha256", "size"]);
    if (after !== undefined) query = query.where("sha256", ">", after);
    const rows = await query.orderBy("sha256").limit(rowsAtOnce).execute();
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = last.sha256;
  }
}
