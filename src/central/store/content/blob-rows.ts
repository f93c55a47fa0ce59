// The rows of blobs, wherever their bytes lie. `when_created` is when the blob was stored, or when somebody asked whether it is here who may be about to
// name it: what is younger than a few days is never collected.

import type { Sha256 } from "../../../core/ids.ts";
import type { Queries, Store } from "../engine/database.ts";

export type BlobRow = { readonly sha256: Sha256; readonly size: number };

const rowsAtOnce = 1_000;
/** A blob that was asked for within counts as asked for now: most questions write nothing. */
const renewedMs = 3_600_000;

/** Notes that somebody may be about to name these. What is marked to go is none of them: it counts as not there. */
export async function renewBlobs(
  store: Queries,
  sha256s: readonly Sha256[],
  now: Date,
): Promise<void> {
  const before = new Date(now.getTime() - renewedMs).toISOString();
  await store
    .updateTable("blobs")
    .set({ when_created: now.toISOString() })
    .where("sha256", "in", sha256s)
    .where("when_created", "<", before)
    .execute();
}

/** Called in the transaction that names them: what was marked to go stays. */
export async function holdBlobs(
  tx: Queries,
  named: readonly (Sha256 | null | undefined)[],
): Promise<void> {
  const sha256s = named.filter((one) => one !== null && one !== undefined);
  if (sha256s.length === 0) return;
  await tx
    .updateTable("blobs")
    .set({ when_dead: null })
    .where("sha256", "in", sha256s)
    .where("when_dead", "is not", null)
    .execute();
}

/** Yields all rows, page by page in the order of their digests. */
export async function* blobPages(store: Store): AsyncGenerator<readonly BlobRow[]> {
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
