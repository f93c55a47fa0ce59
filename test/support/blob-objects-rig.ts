// Blobs and packages in a bucket over a store of the test's own, with a clock that the test moves; and several centrals at one of them.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { collectBlobs } from "../../src/central/store/content/blob-collection.ts";
import type { BlobObjectsDeps } from "../../src/central/store/objects/blob-objects.ts";
import { openBucketStore } from "../../src/central/store/objects/bucket-store.ts";
import { type Sha256, sha256Of } from "../../src/core/ids.ts";
import { TestClock } from "./agent-side.ts";
import { openTestStore } from "./any-store.ts";
import { prefix, startBucketRig } from "./bucket-rig.ts";
import { tempDir } from "./temp-dir.ts";

export const dayMs = 86_400_000;
export const deleteAfterMs = 14 * dayMs;
const never = new AbortController().signal;

export type ObjectsRig = Awaited<ReturnType<typeof startObjectsRig>>;

export async function startObjectsRig() {
  await using stack = new AsyncDisposableStack();
  const { path } = stack.use(tempDir());
  const clock = new TestClock();
  const store = stack.use(await openTestStore(join(path, "central.db"), clock.now));
  const rig = stack.use(await startBucketRig());
  let centrals = 0;
  /** Another central at the same store and bucket; `changes`: what it does otherwise. */
  const central = async (bucket: Partial<BlobObjectsDeps["bucket"]> = {}) => {
    const directory = join(path, `objects-${centrals++}`);
    const whole: BlobObjectsDeps["bucket"] = {
      where: rig.bucket.where,
      put: async (key, source, sha256) => rig.bucket.put(key, source, sha256),
      read: async (key, range) => rig.bucket.read(key, range),
      sizeOf: async (key) => rig.bucket.sizeOf(key),
      remove: async (key) => rig.bucket.remove(key),
      ...bucket,
    };
    const deps = { store, directory, now: clock.now, randomBytes, deleteAfterMs };
    const opened = await openBucketStore({ ...deps, bucket: whole });
    const collect = async () =>
      collectBlobs({ store, blobs: opened.blobs, randomBytes }, clock.now(), never);
    return { ...opened, collect, directory };
  };
  const owned = stack.move();
  return {
    ...rig,
    clock,
    store,
    path,
    central,
    /** Keys of the bucket, without the prefix. */
    keys: (): readonly string[] =>
      [...rig.server.objects.keys()].map((key) => key.slice(prefix.length)).toSorted(),
    rows: async () =>
      store
        .selectFrom("blobs")
        .select(["sha256", "object_key", "when_dead"])
        .orderBy("sha256")
        .execute(),
    loose: async () =>
      store.selectFrom("loose_objects").select(["key", "state"]).orderBy("key").execute(),
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

/** Rows whose object is not there or has another digest; and objects that neither a row nor a note names. */
export async function findingsOf({ server, rows, loose, keys }: ObjectsRig) {
  const held = await rows();
  const noted = (await loose()).map(({ key }) => key);
  const bare = held.filter(({ sha256, object_key: key }) => {
    const object = server.objects.get(`${prefix}${key}`);
    return object === undefined || sha256Of(object) !== sha256;
  });
  const known = new Set([...held.map((row) => row.object_key), ...noted]);
  return { bare, unknown: keys().filter((key) => !known.has(key)) };
}

export const nothingFound = { bare: [], unknown: [] };

export async function* piecesOf(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

export const digestOf = (text: string): Sha256 => sha256Of(Buffer.from(text));
