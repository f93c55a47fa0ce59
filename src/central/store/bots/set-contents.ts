// Whole bot sets as blobs: written piece by piece from a reader's transaction, once for each content, and kept for whoever asks next.
//
// A content is known by the digest of its set. While it is written, marks go on: the reader sees the moment at which its transaction began.

import { setImmediate } from "node:timers/promises";
import { canonicalJson } from "../../../core/journal/canonical-json.ts";
import type { Sha256 } from "../../../core/ids.ts";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../../core/addresses/set-digest.ts";
import { holdBlobs } from "../content/blob-rows.ts";
import type { Store, Tx } from "../engine/database.ts";
import type { Blobs } from "../objects/object-store.ts";
import { botSetPages, type ToldSet } from "../journal/site-state.ts";

export type SetContentsDeps = {
  /** The connection that writes. */
  readonly store: Store;
  readonly blobs: Pick<Blobs, "sizeOf" | "write" | "remove">;
  readonly now: () => Date;
};

/** An agent that was told of a content fetches it within this time, or asks anew. */
const keptMs = 86_400_000;

export class SetContents {
  readonly #deps: SetContentsDeps;

  constructor(deps: SetContentsDeps) {
    this.#deps = deps;
  }

  /** Returns the blob of the set as the transaction sees it. Throws if the elements are not those that the set's row promises. */
  async blobOf(tx: Tx, set: ToldSet): Promise<Sha256> {
    const { store, blobs, now } = this.#deps;
    const known = await store
      .selectFrom("bot_set_contents")
      .select("blob")
      .where("digest", "=", set.digest)
      .executeTakeFirst();
    if (known !== undefined && (await blobs.sizeOf(known.blob)) !== undefined) return known.blob;
    const blob = await blobs.write(linesOf(tx, set));
    const made = { blob, when_created: now().toISOString() };
    await store.transaction().execute(async (writing) => {
      await writing
        .insertInto("bot_set_contents")
        .values({ digest: set.digest, ...made })
        .onConflict((conflict) => conflict.column("digest").doUpdateSet(made))
        .execute();
      await holdBlobs(writing, [blob]);
    });
    await this.#dropOld();
    return blob;
  }

  async #dropOld(): Promise<void> {
    const { store, blobs, now } = this.#deps;
    const before = new Date(now().getTime() - keptMs).toISOString();
    const old = await store
      .deleteFrom("bot_set_contents")
      .where("when_created", "<", before)
      .returning("blob")
      .execute();
    for (const { blob } of old) await blobs.remove(blob);
  }
}

async function* linesOf(tx: Tx, set: ToldSet): AsyncGenerator<Uint8Array> {
  let [count, digest] = [0, emptySetDigest];
  for await (const page of botSetPages(tx, set.id)) {
    count += page.length;
    digest = changedSetDigest(digest, page, []);
    yield Buffer.from(page.map(lineOf).join(""));
    await setImmediate(); // A million elements in one go would hold up every channel.
  }
  if (count !== set.count || digest !== set.digest)
    throw new Error(
      `the ${set.kind} set of ${set.host} has ${count} elements with digest ${digest}, its row says ${set.count} with ${set.digest}`,
    );
}

function lineOf({ bot, range }: SetElement): string {
  return `${canonicalJson({ bot, range })}\n`;
}
