// Accelerator packages as objects of a bucket: a wheel is received into a file, checked there, and put under a key that its row holds.

import type { Readable } from "node:stream";
import { AccelError } from "../../../core/faults.ts";
import type { Store, Tx } from "../engine/database.ts";
import { checkWheel } from "../packages/wheel-file.ts";
import type { BlobObjectsDeps } from "./blob-objects.ts";
import { beginObjects, dropObjects, takeObjects } from "./loose-objects.ts";
import type { KeptPackage, Packages, StagedPackage } from "./object-store.ts";
import type { StagedObject } from "./staging.ts";

export type PackageObjectsDeps = Pick<
  BlobObjectsDeps,
  "store" | "bucket" | "staging" | "now" | "randomBytes"
>;

export class PackageObjects implements Packages {
  readonly #deps: PackageObjectsDeps;

  constructor(deps: PackageObjectsDeps) {
    this.#deps = deps;
  }

  async stage(
    bytes: AsyncIterable<Uint8Array>,
    bytesMax: number,
  ): Promise<StagedPackage | "too-large"> {
    const staged = await this.#deps.staging.receive(bytes, bytesMax);
    if (staged.kind === "too large") return "too-large";
    if (staged.kind === "aborted") throw staged.error;
    return stagedPackage(this.#deps, staged.object);
  }

  async open({
    object_key: key,
    stored_as: storedAs,
    size,
  }: KeptPackage & { readonly size: number }): Promise<Readable> {
    const { bucket } = this.#deps;
    if (key === null)
      throw new AccelError(
        "OBJECTS_UNREACHABLE",
        `the package ${storedAs} was lost before packages came into ${bucket.where}`,
      );
    return bucket.read(key, { first: 0, last: size - 1, size });
  }
}

function stagedPackage(deps: PackageObjectsDeps, object: StagedObject): StagedPackage {
  const { store, now } = deps;
  const { path, size, sha256 } = object;
  let key: string | undefined;
  let isReleased = false;
  return {
    size,
    sha256,
    check: async (sentAs) => checkWheel(path, sentAs),
    keep: async () => {
      key = await putPackage(deps, object);
      return { stored_as: key, object_key: key };
    },
    release: async (tx) => {
      await takeKey(tx, key, deps.bucket.where);
      isReleased = true;
    },
    [Symbol.asyncDispose]: async () => {
      await object[Symbol.asyncDispose]();
      if (key !== undefined && !isReleased) await giveUp(store, key, now());
    },
  };
}

async function putPackage(
  { store, bucket, now, randomBytes }: PackageObjectsDeps,
  { path, size, sha256 }: StagedObject,
): Promise<string> {
  const key = `${sha256}/${Buffer.from(randomBytes(8)).toString("hex")}`;
  await beginObjects(store, [key], now().toISOString());
  try {
    await bucket.put(key, { path, size }, sha256);
    return key;
  } catch (error) {
    await giveUp(store, key, now());
    throw error;
  }
}

/** Called in the transaction that gives the key to a row. */
async function takeKey(tx: Tx, key: string | undefined, where: string): Promise<void> {
  if (key === undefined) throw new TypeError("a package is released that was not kept");
  const taken = await takeObjects(tx, [key]);
  if (!taken.has(key))
    throw new AccelError(
      "OBJECTS_UNREACHABLE",
      `the upload of a package to ${where} took longer than objects.delete_after`,
    );
}

/** Where the store is away as well, the note of the key is enough. */
async function giveUp(store: Store, key: string, now: Date): Promise<void> {
  await dropObjects(store, [key], now.toISOString()).catch(() => undefined);
}
