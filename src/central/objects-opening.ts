// Where blobs and packages lie: in the state directory, or in the bucket that the settings name, whose code is loaded only then.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Health } from "../base/health.ts";
import type { Log } from "../base/log.ts";
import { createMetrics, type MetricTable, type Registry } from "../base/metrics.ts";
import { repeating } from "../base/wait.ts";
import { AccelError, codeOf, messageOf } from "../core/faults.ts";
import { sha256Of } from "../core/ids.ts";
import { lookForNamed, refuseMissing, type ObjectsLook } from "./objects-look.ts";
import type { CentralSettings } from "./settings/fields.ts";
import { readPassword } from "./settings/password-file.ts";
import { openBlobs } from "./store/content/blobs.ts";
import type { Store } from "./store/engine/database.ts";
import { bucketText, type BucketPlace } from "./store/objects/bucket-place.ts";
import type { Bucket, BucketOptions } from "./store/objects/bucket.ts";
import type { ObjectsSight, ObjectStore } from "./store/objects/object-store.ts";
import {
  placeOfObjects,
  setPlaceOfObjects,
  type ObjectsPlace,
} from "./store/objects/objects-place.ts";
import { openPackageFiles } from "./store/packages/package-files.ts";

export const objectsMetrics = {
  accel_central_object_calls_total: {
    kind: "counter",
    help: "Calls of the bucket that holds blobs and packages, repetitions within a call not counted. `missing`: an object that a row names is not there.",
    labels: ["call", "outcome"],
  },
} as const satisfies MetricTable;

/** The bucket that the settings name, if they name one. Throws FILE_UNUSABLE for an authority that cannot be read. */
export function bucketPlace(settings: CentralSettings): BucketPlace | undefined {
  const bucket = settings["objects.s3.bucket"];
  if (bucket === undefined) return undefined;
  const idFile = settings["objects.s3.access_key_file"];
  const secretFile = settings["objects.s3.secret_key_file"];
  return {
    bucket,
    prefix: settings["objects.s3.prefix"],
    endpoint: settings["objects.s3.endpoint"],
    region: settings["objects.s3.region"],
    pathStyle: settings["objects.s3.path_style"],
    ca: readCa(settings["objects.s3.ca_file"]),
    accessKey:
      idFile === undefined || secretFile === undefined
        ? undefined
        : () => ({
            id: readPassword("objects.s3.access_key_file", idFile) ?? "",
            secret: readPassword("objects.s3.secret_key_file", secretFile) ?? "",
          }),
  };
}

function readCa(path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new AccelError("FILE_UNUSABLE", `objects.s3.ca_file cannot be read: ${messageOf(error)}`);
  }
}

/** Names the place of blobs and packages in the status. */
export function objectsText(settings: CentralSettings): string {
  const place = bucketPlace(settings);
  return place === undefined ? settings.state_dir : bucketText(place);
}

export type ObjectsOpening = {
  readonly settings: CentralSettings;
  readonly store: Store;
  readonly now: () => Date;
  readonly log: Log;
  readonly health: Pick<Health, "raise" | "settle">;
  readonly registry: Registry;
  readonly stop: AbortSignal;
};

/** Opens the place for a central that serves. It need not answer now. Throws OBJECTS_MISPLACED where the store's objects lie at the other one. */
export async function openObjects(
  opening: ObjectsOpening,
): Promise<ObjectStore & ObjectsSight & AsyncDisposable> {
  const { settings, store, now, log } = opening;
  const place = bucketPlace(settings);
  await refuseMisplaced(settings, store, place);
  if (place === undefined) {
    const blobs = await openBlobs(join(settings.state_dir, "blobs"), store, now);
    const packages = await openPackageFiles(join(settings.state_dir, "packages"), store);
    const looking = lookForNamed(directoryLook(settings, store), opening);
    return {
      blobs,
      packages,
      takesNothing: () => false,
      [Symbol.asyncDispose]: async () => looking[Symbol.asyncDispose](),
    };
  }
  await using stack = new AsyncDisposableStack();
  const telling = new BucketTelling(opening, place);
  const bucket = stack.use(
    await openBucket({ place, onCall: telling.called, random: Math.random, stop: opening.stop }),
  );
  stack.use(repeating(probedMs, async () => telling.probe(bucket), { onError: () => undefined }));
  stack.use(lookForNamed(bucketLook(bucket, store), opening));
  const { openBucketStore } = await import("./store/objects/bucket-store.ts");
  const objects = await openBucketStore({
    store,
    bucket,
    directory: join(settings.state_dir, "objects"),
    now,
    randomBytes,
    deleteAfterMs: settings["objects.delete_after"],
  });
  log.info({ objects: bucketText(place) }, "blobs and packages are in a bucket");
  const owned = stack.move();
  return {
    ...objects,
    takesNothing: () => telling.takesNothing,
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

function directoryLook({ state_dir: directory }: CentralSettings, store: Store): ObjectsLook {
  return {
    store,
    isInBucket: false,
    where: directory,
    isThere: async ({ place }) => existsSync(join(directory, place)),
  };
}

function bucketLook(bucket: Bucket, store: Store): ObjectsLook {
  return {
    store,
    isInBucket: true,
    where: bucket.where,
    isThere: async ({ place }) => (await bucket.sizeOf(place)) !== undefined,
  };
}

/** Loads what speaks to S3. */
export async function openBucket(options: BucketOptions): Promise<Bucket> {
  const { Bucket: Opened } = await import("./store/objects/bucket.ts");
  return new Opened(options);
}

/** While it does not answer it is asked so often. */
const probedMs = 30_000;

/** Tells metrics, health and log what came of the calls. */
class BucketTelling {
  readonly #opening: Pick<ObjectsOpening, "log" | "health">;
  readonly #where: string;
  readonly #calls;
  #isAway = false;
  #takesNothing = false;
  /** Of the object that was missed last. */
  #missing: string | undefined;

  constructor(opening: ObjectsOpening, place: BucketPlace) {
    this.#opening = opening;
    this.#where = bucketText(place);
    this.#calls = createMetrics(objectsMetrics, opening.registry).accel_central_object_calls_total;
  }

  get takesNothing(): boolean {
    return this.#takesNothing;
  }

  readonly called: BucketOptions["onCall"] = (call, failure, key) => {
    const { log, health } = this.#opening;
    if (call === "put") this.#takesNothing = failure !== undefined;
    const outcome =
      failure === undefined ? "ok" : failure.kind === "missing" ? "missing" : "failed";
    this.#calls.inc({ call, outcome });
    if (failure === undefined) {
      if (this.#isAway) log.info({ objects: this.#where }, "the bucket answers again");
      this.#isAway = false;
      health.settle("objects_unreachable");
      if (call !== "get" || key !== this.#missing) return;
      this.#missing = undefined;
      health.settle("objects_unreachable", "missing");
    } else if (failure.kind === "missing") {
      this.#missing = key;
      const text = `${this.#where} lacks the object ${key}, which a row names`;
      health.raise("objects_unreachable", "error", text, lostHint, "missing");
      log.error({ objects: this.#where, key }, "an object that a row names is not in the bucket");
    } else {
      const text = `${this.#where} does not do its part: ${failure.reason}`;
      health.raise("objects_unreachable", "error", text, awayHint);
      if (!this.#isAway)
        log.error(
          { objects: this.#where, call, key, reason: failure.reason },
          "the bucket does not do its part",
        );
      this.#isAway = true;
    }
  };

  /** Asks a bucket that did not answer: nobody else may ask for hours. */
  async probe(bucket: Bucket): Promise<void> {
    if (this.#isAway) await bucket.sizeOf("probe");
  }
}

const awayHint =
  "Look at the S3 that `objects.s3` names, and the network there; `accel-central check` tries it.";
const lostHint =
  "Bring it back under its key, from a version or a replica of the bucket. Agents ask for it again and again.";

/** Tries a bucket with an object of its own. Throws OBJECTS_UNREACHABLE, which says what it could not do. Returns its name; undefined where the settings name none. */
export async function tryObjects(settings: CentralSettings): Promise<string | undefined> {
  const place = bucketPlace(settings);
  if (place === undefined) return undefined;
  const stop = new AbortController().signal;
  using bucket = await openBucket({
    place,
    onCall: () => undefined,
    random: Math.random,
    stop,
  });
  const key = `check/${randomBytes(8).toString("hex")}`;
  const bytes = Buffer.from(`accel-central check of ${new Date().toISOString()}\n`);
  const size = bytes.byteLength;
  const tried = async <T>(what: string, action: Promise<T>): Promise<T> =>
    action.catch((error: unknown) => {
      throw new AccelError(
        "OBJECTS_UNREACHABLE",
        `an object cannot be ${what}: ${messageOf(error)}`,
      );
    });
  await tried("written", bucket.put(key, bytes, sha256Of(bytes)));
  const { buffer } = await import("node:stream/consumers");
  const read = await tried(
    "read",
    bucket.read(key, { first: 1, last: size - 1, size }).then(buffer),
  );
  if (!read.equals(bytes.subarray(1)))
    throw new AccelError(
      "OBJECTS_UNREACHABLE",
      `${bucket.where} gives back other bytes than were written`,
    );
  await tried("removed", bucket.remove(key));
  if ((await tried("looked up", bucket.sizeOf(key))) !== undefined)
    throw new AccelError(
      "OBJECTS_UNREACHABLE",
      `${bucket.where} has an object still that was removed`,
    );
  return bucketText(place);
}

/** All objects of a store lie at one place, which the store says: a row of the other place would name nothing. */
async function refuseMisplaced(
  settings: CentralSettings,
  store: Store,
  place: BucketPlace | undefined,
): Promise<void> {
  const found = await placeOfObjects(store);
  const fault = misplaced(settings, place, found);
  if (fault !== undefined) throw fault;
  if (place !== undefined && !found.isInBucket) await setPlaceOfObjects(store, "s3");
}

/** Asks whether a start would find the store's objects at the place that the settings name; changes nothing. Throws OBJECTS_MISPLACED. */
export async function tryObjectsPlace(settings: CentralSettings, store: Store): Promise<void> {
  const place = bucketPlace(settings);
  const found = await placeOfObjects(store);
  const fault = misplaced(settings, place, found);
  if (fault !== undefined) throw fault;
  if (found.isEmpty) return;
  if (place === undefined) return refuseMissing(directoryLook(settings, store));
  const stop = new AbortController().signal;
  using bucket = await openBucket({ place, onCall: () => undefined, random: Math.random, stop });
  // A bucket that does not answer is told by its own check.
  await refuseMissing(bucketLook(bucket, store)).catch((error: unknown) => {
    if (codeOf(error) !== "OBJECTS_UNREACHABLE") throw error;
  });
}

function misplaced(
  settings: CentralSettings,
  place: BucketPlace | undefined,
  { isInBucket, isEmpty }: ObjectsPlace,
): AccelError | undefined {
  if (isInBucket === (place !== undefined)) return undefined;
  if (place === undefined)
    return new AccelError(
      "OBJECTS_MISPLACED",
      "blobs and packages of this store are in a bucket, and the settings name none",
      { hint: "Put `objects.s3` back into central.yaml, as it was when central last ran." },
    );
  return isEmpty
    ? undefined
    : new AccelError(
        "OBJECTS_MISPLACED",
        `blobs and packages of this store are in ${settings.state_dir}, not in ${bucketText(place)}`,
        {
          hint: "`accel-central objects move` brings them there, while central is stopped; or take `objects.s3` out of central.yaml.",
        },
      );
}
