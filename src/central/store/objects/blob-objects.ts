// Blobs as objects of a bucket. The row of each holds its key, `<sha256>/<random>`, under which no other object was or will be: what removes an object late
// removes nobody's upload.
//
//   stored     note the key · put the object · give the key to the row, in one transaction. A row that another upload made meanwhile keeps its own
//   collected  nothing names it: its row is marked (`when_dead`) · after the delay the row goes and its key is noted, in one transaction · the object is removed
//   revived    a marked row counts as not there for who asks; an upload looks whether its object is there still, and clears the mark. So does a transaction that names it
//
// A crash between two steps leaves a key that is noted (`loose-objects.ts`), and never a row without its object. The delay is as long as backups of the store are kept: what
// a row of a backup names is there still when that is restored.

import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { Limiter } from "../../../base/limiter.ts";
import { Together } from "../../../base/together.ts";
import { AccelError } from "../../../core/faults.ts";
import { type Sha256, sha256Of } from "../../../core/ids.ts";
import { blobPages, renewBlobs, type BlobRow } from "../content/blob-rows.ts";
import type { Store, Tx } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";
import type { Bucket, ObjectSource } from "./bucket.ts";
import {
  beginObjects,
  dropObjects,
  dueObjects,
  expireObjects,
  forgetObjects,
  takeObjects,
} from "./loose-objects.ts";
import type { BlobReceived, Blobs, BlobsCollected, CollectedPart } from "./object-store.ts";
import type { ObjectStaging } from "./staging.ts";

export type BlobObjectsDeps = {
  readonly store: Store;
  readonly bucket: Pick<Bucket, "put" | "read" | "sizeOf" | "remove" | "where">;
  readonly staging: ObjectStaging;
  readonly now: () => Date;
  readonly randomBytes: (count: number) => Uint8Array;
  /** From the mark to the removal. */
  readonly deleteAfterMs: number;
};

type Known = { readonly size: number; readonly key: string; readonly isDead: boolean };
type Arrived = BlobRow & {
  readonly key: string;
  /** The key of an object that is lost. */
  readonly replaces: string | undefined;
};

/** As with files: an import of ten thousand must not make as many commits. */
const commitWindowMs = 4;
const rowsAtOnce = 500;
const askedAtOnce = 1_000;
const removedAtOnce = 500;
const removalsMax = 8;

export class BlobObjects implements Blobs {
  readonly #deps: BlobObjectsDeps;
  readonly #begins: Together<string, undefined>;
  readonly #commits: Together<Arrived, "kept" | "expired">;

  constructor(deps: BlobObjectsDeps) {
    const { store, now } = deps;
    const together = { gather: async () => sleep(commitWindowMs), weightMax: rowsAtOnce };
    this.#deps = deps;
    this.#begins = new Together({
      ...together,
      run: async (keys: readonly string[]) => {
        await beginObjects(store, keys, now().toISOString());
        return keys.map(() => undefined);
      },
    });
    this.#commits = new Together({
      ...together,
      run: async (rows: readonly Arrived[]) =>
        store.transaction().execute(async (tx) => commitRows(tx, rows, now().toISOString())),
    });
  }

  async put(bytes: Uint8Array): Promise<Sha256> {
    const sha256 = sha256Of(bytes);
    const held = await this.sizes([sha256]);
    if (!held.has(sha256)) await this.#keep(bytes, { sha256, size: bytes.byteLength });
    return sha256;
  }

  async write(body: AsyncIterable<Uint8Array>): Promise<Sha256> {
    const staged = await this.#deps.staging.receive(body, Infinity);
    if (staged.kind === "aborted") throw staged.error;
    if (staged.kind === "too large") throw new RangeError("more bytes than there can be");
    await using object = staged.object;
    await this.#keep(object, object);
    return object.sha256;
  }

  async receive(
    sha256: Sha256,
    body: AsyncIterable<Uint8Array>,
    bytesMax: number,
  ): Promise<BlobReceived> {
    const staged = await this.#deps.staging.receive(body, bytesMax);
    if (staged.kind !== "staged") return staged.kind;
    await using object = staged.object;
    if (object.sha256 !== sha256) return "mismatch";
    await this.#keep(object, object);
    return "stored";
  }

  /** Throws OBJECTS_UNREACHABLE where what was read is not what was stored. */
  async read(sha256: Sha256): Promise<Uint8Array | undefined> {
    const known = await this.#known(sha256);
    if (known === undefined) return undefined;
    const bytes = await buffer(await this.#open(known, 0, known.size - 1));
    if (sha256Of(bytes) === sha256) return bytes;
    throw new AccelError(
      "OBJECTS_UNREACHABLE",
      `the object ${known.key} of ${this.#deps.bucket.where}: what was read has another digest`,
    );
  }

  /** Also of what is marked to go: its object is there. */
  async sizeOf(sha256: Sha256): Promise<number | undefined> {
    return (await this.#known(sha256))?.size;
  }

  async open(sha256: Sha256, first: number, last: number): Promise<Readable> {
    const known = await this.#known(sha256);
    if (known === undefined)
      throw new AccelError("OBJECTS_UNREACHABLE", `the blob ${sha256} was removed just now`);
    return this.#open(known, first, Math.min(last, known.size - 1));
  }

  async sizes(wanted: readonly Sha256[]): Promise<ReadonlyMap<Sha256, number>> {
    const { store, now } = this.#deps;
    const sizes = new Map<Sha256, number>();
    for (const part of parts([...new Set(wanted)], askedAtOnce)) {
      await renewBlobs(store, part, now());
      const rows = await store
        .selectFrom("blobs")
        .select(["sha256", "size"])
        .where("sha256", "in", part)
        .where("object_key", "is not", null)
        .where("when_dead", "is", null)
        .execute();
      for (const { sha256, size } of rows) sizes.set(sha256, size);
    }
    return sizes;
  }

  async missing(wanted: readonly Sha256[]): Promise<readonly Sha256[]> {
    const found = await this.sizes(wanted);
    return [...new Set(wanted)].filter((sha256) => !found.has(sha256));
  }

  /** Marks it: it goes after the delay. */
  async remove(sha256: Sha256): Promise<void> {
    await this.#mark([sha256], undefined);
  }

  /** Objects are no part of a backup, and outlive it by the delay. */
  async keepAll(): Promise<Disposable> {
    return { [Symbol.dispose]: () => undefined };
  }

  kept(): AsyncIterable<readonly Sha256[]> {
    return keptOf(this.#deps.store);
  }

  async collect({ named, unnamed }: CollectedPart, since: Date): Promise<BlobsCollected> {
    const { store } = this.#deps;
    if (named.length > 0)
      await store
        .updateTable("blobs")
        .set({ when_dead: null })
        .where("sha256", "in", named)
        .where("when_dead", "is not", null)
        .execute();
    if (unnamed.length === 0) return { removed: 0, removedBytes: 0, stray: 0, marked: 0 };
    const gone = await this.#dropDue(unnamed, since);
    return {
      removed: gone.length,
      removedBytes: gone.reduce((sum, { size }) => sum + size, 0),
      stray: 0,
      marked: await this.#mark(unnamed, since),
    };
  }

  /** Removes the objects whose keys no row has any more. Returns how many uploads were given up. Throws OBJECTS_UNREACHABLE; what is left is removed by the next. */
  async sweep(stop: AbortSignal): Promise<number> {
    const { store, bucket, now, deleteAfterMs } = this.#deps;
    const at = now();
    const before = new Date(at.getTime() - deleteAfterMs).toISOString();
    const expired = await expireObjects(store, before, at.toISOString());
    const limiter = new Limiter(removalsMax);
    for (let after = ""; !stop.aborted;) {
      const keys = await dueObjects(store, after, removedAtOnce);
      const last = keys.at(-1);
      if (last === undefined) break;
      await Promise.all(keys.map(async (key) => limiter.run(async () => bucket.remove(key))));
      await forgetObjects(store, keys);
      after = last;
    }
    return expired;
  }

  async #known(sha256: Sha256): Promise<Known | undefined> {
    const row = await this.#deps.store
      .selectFrom("blobs")
      .select(["size", "object_key", "when_dead"])
      .where("sha256", "=", sha256)
      .executeTakeFirst();
    // Without a key it was lost before blobs came into the bucket, and is asked for again.
    if (row === undefined || row.object_key === null) return undefined;
    return { size: row.size, key: row.object_key, isDead: row.when_dead !== null };
  }

  async #open({ key, size }: Known, first: number, last: number): Promise<Readable> {
    return this.#deps.bucket.read(key, { first, last, size });
  }

  async #keep(source: ObjectSource, { sha256, size }: BlobRow): Promise<void> {
    const { bucket, store, randomBytes, now } = this.#deps;
    const known = await this.#known(sha256);
    let isThere = false;
    if (known !== undefined) {
      isThere = (await bucket.sizeOf(known.key)) === size;
      if (isThere && (await this.#revive(sha256, known.key))) return;
    }
    const key = `${sha256}/${Buffer.from(randomBytes(8)).toString("hex")}`;
    await this.#begins.ask(key);
    try {
      await bucket.put(key, source, sha256);
    } catch (error) {
      // It may lie there all the same. Where the store is away as well, the note of it is enough.
      await dropObjects(store, [key], now().toISOString()).catch(() => undefined);
      throw error;
    }
    const replaces = isThere ? undefined : known?.key;
    const outcome = await this.#commits.ask({ sha256, size, key, replaces });
    if (outcome === "expired")
      throw new AccelError(
        "OBJECTS_UNREACHABLE",
        `the upload of ${sha256} to ${bucket.where} took longer than objects.delete_after`,
      );
  }

  /** Returns whether the row has that key still; then it stays, and counts as stored now. */
  async #revive(sha256: Sha256, key: string): Promise<boolean> {
    const { store, now } = this.#deps;
    const revived = await store
      .updateTable("blobs")
      .set({ when_created: now().toISOString(), when_dead: null })
      .where("sha256", "=", sha256)
      .where("object_key", "=", key)
      .returning("sha256")
      .execute();
    return revived.length > 0;
  }

  async #dropDue(unnamed: readonly Sha256[], since: Date): Promise<readonly BlobRow[]> {
    const { store, now, deleteAfterMs } = this.#deps;
    const at = now();
    const before = new Date(at.getTime() - deleteAfterMs).toISOString();
    return store.transaction().execute(async (tx) => {
      const gone = await tx
        .deleteFrom("blobs")
        .where("sha256", "in", unnamed)
        .where("when_dead", "<", before)
        .where("when_created", "<", since.toISOString())
        .returning(["sha256", "size", "object_key"])
        .execute();
      const keys = gone.flatMap((row) => row.object_key ?? []);
      await dropObjects(tx, keys, at.toISOString());
      return gone;
    });
  }

  /** Returns how many were marked. */
  async #mark(sha256s: readonly Sha256[], since: Date | undefined): Promise<number> {
    const { store, now } = this.#deps;
    let query = store
      .updateTable("blobs")
      .set({ when_dead: now().toISOString() })
      .where("sha256", "in", sha256s)
      .where("when_dead", "is", null);
    if (since !== undefined) query = query.where("when_created", "<", since.toISOString());
    return (await query.returning("sha256").execute()).length;
  }
}

async function* keptOf(store: Store): AsyncGenerator<readonly Sha256[]> {
  for await (const rows of blobPages(store)) yield rows.map(({ sha256 }) => sha256);
}

/** Gives keys to rows. Of several for one digest one is kept, and the others are noted to be removed. */
async function commitRows(
  tx: Tx,
  rows: readonly Arrived[],
  at: string,
): Promise<readonly ("kept" | "expired")[]> {
  const taken = await takeObjects(
    tx,
    rows.map(({ key }) => key),
  );
  const arrived = rows.filter(({ key }) => taken.has(key));
  for (const { sha256, replaces } of arrived)
    if (replaces !== undefined) await loseObject(tx, sha256, replaces);
  const firsts = [...new Map(arrived.map((row) => [row.sha256, row])).values()];
  const held = firsts.length === 0 ? [] : await upsertRows(tx, firsts, at);
  const kept = new Set(held);
  await dropObjects(
    tx,
    arrived.map(({ key }) => key).filter((key) => !kept.has(key)),
    at,
  );
  return rows.map(({ key }) => (taken.has(key) ? "kept" : "expired"));
}

/** Returns the keys that the rows have now. */
async function upsertRows(
  tx: Tx,
  rows: readonly Arrived[],
  at: string,
): Promise<readonly (string | null)[]> {
  const held = await tx
    .insertInto("blobs")
    .values(
      rows.map(({ sha256, size, key }) => ({
        sha256,
        size,
        when_created: at,
        when_dead: null,
        object_key: key,
      })),
    )
    .onConflict((conflict) =>
      conflict.column("sha256").doUpdateSet((row) => ({
        when_created: at,
        when_dead: null,
        object_key: row.fn.coalesce("blobs.object_key", "excluded.object_key"),
      })),
    )
    .returning("object_key")
    .execute();
  return held.map(({ object_key: key }) => key);
}

async function loseObject(tx: Tx, sha256: Sha256, key: string): Promise<void> {
  await tx
    .updateTable("blobs")
    .set({ object_key: null })
    .where("sha256", "=", sha256)
    .where("object_key", "=", key)
    .execute();
}
