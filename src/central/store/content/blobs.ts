// Content-addressed files of central in its state directory: manifests, devlove documents, views, whole bot sets.
//
//   <directory>/<first 2 hex>/<sha256>      whole and verified; a row in `blobs` says so
//   <directory>/tmp/<random>                being received; removed at the next start
//
// A file is synced and renamed, its directory synced, and only then its row committed. A file without a row is not there.

import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { ensureDirectory, renameDurable } from "../../../base/durable-file.ts";
import { Mutex } from "../../../base/mutex.ts";
import { parseSha256, type Sha256, sha256Of } from "../../../core/ids.ts";
import { renewBlobs, type BlobRow } from "./blob-rows.ts";
import { writeVerified } from "./blob-write.ts";
import type { Store } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";
import { dropObjects } from "../objects/loose-objects.ts";
import type {
  BlobReceived,
  Blobs,
  BlobsCollected,
  CollectedPart,
} from "../objects/object-store.ts";

/** A commit blocks the loop for the disk's 1 to 2 ms: an import of ten thousand files must not make as many. */
const commitWindowMs = 4;
/** Digests asked for in one statement. */
const askedAtOnce = 1_000;
const collectedAtOnce = 500;

export async function openBlobs(
  directory: string,
  store: Store,
  now: () => Date,
): Promise<BlobFiles> {
  const incoming = join(directory, "tmp");
  await ensureDirectory(incoming);
  for (const name of await readdir(incoming)) await rm(join(incoming, name), { force: true });
  return new BlobFiles(directory, store, now);
}

export class BlobFiles implements Blobs {
  readonly #directory: string;
  readonly #store: Store;
  readonly #now: () => Date;
  /** Being renamed, and their rows not committed yet. */
  readonly #arriving = new Map<Sha256, number>();
  /** Being removed, and when they will have been. */
  readonly #leaving = new Map<Sha256, Promise<void>>();
  readonly #removing = new Mutex();
  /** Backups under way. */
  #keepers = 0;
  #rows: BlobRow[] = [];
  #committing: Promise<void> | undefined;

  /** Called by `openBlobs`. */
  constructor(directory: string, store: Store, now: () => Date) {
    this.#directory = directory;
    this.#store = store;
    this.#now = now;
  }

  /** Durable when it resolves; a blob that is there already costs one read. */
  async put(bytes: Uint8Array): Promise<Sha256> {
    const sha256 = sha256Of(bytes);
    await this.#renew([sha256]);
    if ((await this.sizeOf(sha256)) === undefined)
      await this.receive(
        sha256,
        (async function* () {
          yield bytes;
        })(),
        bytes.byteLength,
      );
    return sha256;
  }

  async read(sha256: Sha256): Promise<Uint8Array | undefined> {
    return (await this.sizeOf(sha256)) === undefined ? undefined : readFile(this.#path(sha256));
  }

  /** Undefined also where the disk lost the file: it is asked for again. */
  async sizeOf(sha256: Sha256): Promise<number | undefined> {
    const row = await this.#store
      .selectFrom("blobs")
      .select("size")
      .where("sha256", "=", sha256)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const found = await stat(this.#path(sha256)).catch(() => undefined);
    return found?.size === row.size ? row.size : undefined;
  }

  /** Opens a blob that `sizeOf` found; both positions are included. */
  async open(sha256: Sha256, first: number, last: number): Promise<Readable> {
    return createReadStream(this.#path(sha256), { start: first, end: last });
  }

  async missing(wanted: readonly Sha256[]): Promise<readonly Sha256[]> {
    const found = await this.sizes(wanted);
    return [...new Set(wanted)].filter((sha256) => !found.has(sha256));
  }

  /** Returns the sizes of those that are there, as their rows say. Whoever asks may name them within days. */
  async sizes(wanted: readonly Sha256[]): Promise<ReadonlyMap<Sha256, number>> {
    const sizes = new Map<Sha256, number>();
    for (const part of parts([...new Set(wanted)], askedAtOnce)) {
      await this.#renew(part);
      const rows = await this.#store
        .selectFrom("blobs")
        .select(["sha256", "size"])
        .where("sha256", "in", part)
        .execute();
      for (const { sha256, size } of rows) sizes.set(sha256, size);
    }
    return sizes;
  }

  /** Writes what is made piece by piece; it is durable when this resolves. Throws what `body` throws. */
  async write(body: AsyncIterable<Uint8Array>): Promise<Sha256> {
    const staged = join(this.#directory, "tmp", randomBytes(12).toString("hex"));
    try {
      const hash = createHash("sha256");
      let size = 0;
      {
        await using file = await open(staged, "wx", 0o600);
        for await (const chunk of body) {
          hash.update(chunk);
          size += chunk.byteLength;
          await file.writeFile(chunk);
        }
        await file.sync();
      }
      const sha256 = hash.digest("hex") as Sha256; // The one form of a digest in hex.
      await this.#keep(staged, { sha256, size });
      return sha256;
    } finally {
      await rm(staged, { force: true });
    }
  }

  /** Throws only what the disk or the store throws. */
  async receive(
    sha256: Sha256,
    body: AsyncIterable<Uint8Array>,
    bytesMax: number,
  ): Promise<BlobReceived> {
    const staged = join(this.#directory, "tmp", randomBytes(12).toString("hex"));
    try {
      const written = await writeVerified(staged, sha256, body, bytesMax);
      if (typeof written === "string") return written;
      await this.#keep(staged, { sha256, size: written.size });
      return "stored";
    } finally {
      await rm(staged, { force: true });
    }
  }

  /**
   * Keeps everything until it is disposed. Whoever means to remove is told that nothing went, and comes again
   * another night.
   */
  async keepAll(): Promise<Disposable> {
    await this.#removing.run(() => void this.#keepers++);
    return { [Symbol.dispose]: () => void this.#keepers-- };
  }

  /** Nobody may need it any more. */
  async remove(sha256: Sha256): Promise<void> {
    await this.removeAll([sha256], undefined);
  }

  /**
   * Removes the blobs that nobody asked for since, and returns them. Whoever stores or asks meanwhile finds
   * all of a blob or nothing of it.
   */
  async removeAll(
    sha256s: readonly Sha256[],
    since: Date | undefined,
  ): Promise<readonly BlobRow[]> {
    return this.#excluding<readonly BlobRow[]>(sha256s, [], async (free) => {
      let query = this.#store.deleteFrom("blobs").where("sha256", "in", free);
      if (since !== undefined) query = query.where("when_created", "<", since.toISOString());
      const gone = await query.returning(["sha256", "size", "object_key"]).execute();
      // A move into a bucket was begun, and has not been ended.
      const keys = gone.flatMap((row) => row.object_key ?? []);
      await dropObjects(this.#store, keys, this.#now().toISOString());
      for (const { sha256 } of gone) await rm(this.#path(sha256), { force: true });
      return gone;
    });
  }

  /** Files without a row that were last written to before: a crash came between file and row. How many went. */
  async removeStray(sha256s: readonly Sha256[], before: Date): Promise<number> {
    return this.#excluding(sha256s, 0, async (free) => {
      const known = await this.#store
        .selectFrom("blobs")
        .select("sha256")
        .where("sha256", "in", free)
        .execute();
      let removed = 0;
      const strays = new Set(free).difference(new Set(known.map((row) => row.sha256)));
      for (const sha256 of strays) {
        const stats = await stat(this.#path(sha256)).catch(() => undefined);
        if (stats === undefined || stats.mtimeMs >= before.getTime()) continue;
        await rm(this.#path(sha256), { force: true });
        removed++;
      }
      return removed;
    });
  }

  /** Yields what lies in the directory, with a row or without. */
  async *kept(): AsyncGenerator<readonly Sha256[]> {
    const fans = (await readdir(this.#directory)).filter((name) => /^[0-9a-f]{2}$/.test(name));
    for (const fan of fans) {
      const names = await readdir(join(this.#directory, fan));
      yield* parts(
        names.flatMap((name) => parseSha256(name) ?? []),
        collectedAtOnce,
      );
    }
  }

  async collect({ unnamed }: CollectedPart, since: Date): Promise<BlobsCollected> {
    const gone = await this.removeAll(unnamed, since);
    return {
      removed: gone.length,
      removedBytes: gone.reduce((sum, { size }) => sum + size, 0),
      stray: await this.removeStray(unnamed, since),
    };
  }

  /** Files without a row went with the parts that they lay in. */
  async sweep(): Promise<number> {
    return 0;
  }

  /**
   * Acts on those that nobody is storing, one action at a time; whoever begins to store one meanwhile waits
   * for the end.
   */
  async #excluding<T>(
    sha256s: readonly Sha256[],
    nothing: T,
    action: (free: readonly Sha256[]) => Promise<T>,
  ): Promise<T> {
    return this.#removing.run(async () => {
      if (this.#keepers > 0) return nothing;
      const free = sha256s.filter((sha256) => !this.#arriving.has(sha256));
      if (free.length === 0) return nothing;
      const { promise, resolve } = Promise.withResolvers<void>();
      for (const sha256 of free) this.#leaving.set(sha256, promise);
      try {
        return await action(free);
      } finally {
        for (const sha256 of free) this.#leaving.delete(sha256);
        resolve();
      }
    });
  }

  async #renew(sha256s: readonly Sha256[]): Promise<void> {
    return renewBlobs(this.#store, sha256s, this.#now());
  }

  async #keep(staged: string, row: BlobRow): Promise<void> {
    const { sha256 } = row;
    await ensureDirectory(join(this.#directory, sha256.slice(0, 2)));
    for (let gone; (gone = this.#leaving.get(sha256)) !== undefined;) await gone;
    this.#arriving.set(sha256, (this.#arriving.get(sha256) ?? 0) + 1);
    try {
      await renameDurable(staged, this.#path(sha256));
      await this.#commit(row);
    } finally {
      const others = (this.#arriving.get(sha256) ?? 1) - 1;
      if (others === 0) this.#arriving.delete(sha256);
      else this.#arriving.set(sha256, others);
    }
  }

  /** Rows of many uploads share a commit: it waits a little for those that are about to come. */
  async #commit(row: BlobRow): Promise<void> {
    this.#rows.push(row);
    while (this.#rows.includes(row)) {
      this.#committing ??= this.#commitRows().finally(() => {
        this.#committing = undefined;
      });
      await this.#committing;
    }
  }

  async #commitRows(): Promise<void> {
    await sleep(commitWindowMs);
    const rows = this.#rows.slice(0, askedAtOnce);
    const when_created = this.#now().toISOString();
    await this.#store
      .insertInto("blobs")
      .values(rows.map(({ sha256, size }) => ({ sha256, size, when_created })))
      .onConflict((conflict) => conflict.column("sha256").doUpdateSet({ when_created }))
      .execute();
    this.#rows = this.#rows.slice(rows.length);
  }

  #path(sha256: string): string {
    return join(this.#directory, sha256.slice(0, 2), sha256);
  }
}
