// Brings blobs and packages from the state directory into a bucket, while no central runs. Files stay where they are.
//
//   keys are noted · objects are put, and read back by digest · the rows get the keys, 100 in a transaction
//   no file is left without a key but what the disk had lost · the store says that its objects are in the bucket
//
// Cut off at any point, central serves from the directory as before, or the move goes on with the rows that have no key yet.

import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { Limiter } from "../../../base/limiter.ts";
import { AccelError, codeOf } from "../../../core/faults.ts";
import type { Sha256 } from "../../../core/ids.ts";
import type { Store } from "../engine/database.ts";
import type { Bucket } from "./bucket.ts";
import { beginObjects, takeObjects } from "./loose-objects.ts";
import { setPlaceOfObjects } from "./objects-place.ts";

export type MoveObjectsOptions = {
  readonly store: Store;
  readonly bucket: Pick<Bucket, "put" | "read" | "where">;
  /** The state directory. */
  readonly stateDir: string;
  readonly now: () => Date;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Called after each transaction, with how many objects the move has brought. */
  readonly onProgress: (moved: ObjectsMoved) => void;
  readonly stop: AbortSignal;
};

export type ObjectsMoved = {
  readonly blobs: number;
  readonly packages: number;
  readonly bytes: number;
  /** Digests of blobs that the disk had lost or damaged: they are asked for again. */
  readonly lost_blobs: readonly string[];
  /** Files of packages that the disk had lost or damaged. */
  readonly lost_packages: readonly string[];
};

type Item = {
  readonly sha256: Sha256;
  readonly size: number;
  readonly path: string;
  readonly name: string;
};
type Keyed = { readonly item: Item; readonly key: string };

const rowsAtOnce = 100;
const copiesMax = 8;

/** Throws OBJECTS_UNREACHABLE, what the store throws, and the reason that `stop` was aborted with. */
export async function moveObjects(options: MoveObjectsOptions): Promise<ObjectsMoved> {
  const { store } = options;
  const moving = new Moving(options);
  for (let after = ""; ;) {
    const items = await blobsLeft(options, after);
    const last = items.at(-1);
    if (last === undefined) break;
    await moving.move("blobs", items);
    after = last.name;
  }
  for (let after = 0; ;) {
    const rows = await store
      .selectFrom("packages")
      .select(["id", "stored_as", "size", "sha256"])
      .where("object_key", "is", null)
      .where("id", ">", after)
      .orderBy("id")
      .limit(1) // Up to 2 GiB each: what was sent is noted at once.
      .execute();
    const [row] = rows;
    if (row === undefined) break;
    const { stored_as: name, size, sha256 } = row;
    const path = join(options.stateDir, "packages", name);
    await moving.move("packages", [{ sha256, size, path, name }]);
    after = row.id;
  }
  await setPlaceOfObjects(store, "s3");
  return moving.moved;
}

async function blobsLeft(
  { store, stateDir }: MoveObjectsOptions,
  after: string,
): Promise<readonly Item[]> {
  const rows = await store
    .selectFrom("blobs")
    .select(["sha256", "size"])
    .where("object_key", "is", null)
    .where("sha256", ">", after as Sha256) // Any text may stand before a digest.
    .orderBy("sha256")
    .limit(rowsAtOnce)
    .execute();
  return rows.map(({ sha256, size }) => ({
    sha256,
    size,
    path: join(stateDir, "blobs", sha256.slice(0, 2), sha256),
    name: sha256,
  }));
}

class Moving {
  moved: ObjectsMoved = { blobs: 0, packages: 0, bytes: 0, lost_blobs: [], lost_packages: [] };
  readonly #options: MoveObjectsOptions;
  readonly #limiter = new Limiter(copiesMax);

  constructor(options: MoveObjectsOptions) {
    this.#options = options;
  }

  async move(table: "blobs" | "packages", items: readonly Item[]): Promise<void> {
    const { store, now, randomBytes, onProgress, stop } = this.#options;
    stop.throwIfAborted();
    const keyed = items.map((item) => ({
      item,
      key: `${item.sha256}/${Buffer.from(randomBytes(8)).toString("hex")}`,
    }));
    const noted = keyed.map(({ key }) => key);
    await beginObjects(store, noted, now().toISOString());
    const copied = await Promise.all(
      keyed.map(async (one) => this.#limiter.run(async () => this.#copied(one))),
    );
    const there = keyed.filter((_, at) => copied[at] === true);
    await this.#commit(table, there, noted);
    const lost = keyed.filter((_, at) => copied[at] !== true).map(({ item }) => item.name);
    const { moved } = this;
    this.moved = {
      ...moved,
      [table]: moved[table] + there.length,
      bytes: moved.bytes + there.reduce((sum, { item }) => sum + item.size, 0),
      lost_blobs: [...moved.lost_blobs, ...(table === "blobs" ? lost : [])],
      lost_packages: [...moved.lost_packages, ...(table === "packages" ? lost : [])],
    };
    onProgress(this.moved);
  }

  /** Returns false for a file that is not there, or is not what its row says. */
  async #copied({ item: { path, size, sha256 }, key }: Keyed): Promise<boolean> {
    const { bucket, stop } = this.#options;
    stop.throwIfAborted();
    const found = await stat(path).catch(() => undefined);
    if (found?.size !== size) return false;
    try {
      await bucket.put(key, { path, size }, sha256);
    } catch (error) {
      if (codeOf(error) === "DISK_FAILED") return false;
      throw error;
    }
    const hash = createHash("sha256");
    const body = await bucket.read(key, { first: 0, last: size - 1, size });
    for await (const chunk of body as AsyncIterable<Buffer>) hash.update(chunk);
    if (hash.digest("hex") === sha256) return true;
    throw new AccelError(
      "OBJECTS_UNREACHABLE",
      `the object ${key} of ${bucket.where}: it gives back other bytes than were written`,
    );
  }

  async #commit(
    table: "blobs" | "packages",
    there: readonly Keyed[],
    noted: readonly string[],
  ): Promise<void> {
    await this.#options.store.transaction().execute(async (tx) => {
      await takeObjects(tx, noted);
      for (const { item, key } of there)
        if (table === "blobs")
          await tx
            .updateTable("blobs")
            .set({ object_key: key })
            .where("sha256", "=", item.sha256)
            .execute();
        else
          await tx
            .updateTable("packages")
            .set({ object_key: key })
            .where("stored_as", "=", item.name)
            .execute();
    });
  }
}
