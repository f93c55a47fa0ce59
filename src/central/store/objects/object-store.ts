// Where central keeps what is too large for its rows: the files of viewsets and whole bot sets (blobs), and uploaded wheels (packages). Both lie in the state
// directory, or both in a bucket of S3.
//
// A row names each, and is committed only when what it names is durable and has the digest that the row says. What cannot be had although a row names it is
// OBJECTS_UNREACHABLE where it lies in a bucket.

import type { Readable } from "node:stream";
import type { Sha256 } from "../../../core/ids.ts";
import type { Tx } from "../engine/database.ts";
import type { TableRow } from "../engine/schema.ts";
import type { WheelChecked } from "../packages/wheel-file.ts";

export type WriteFailed = "mismatch" | "too large" | "aborted";
export type BlobReceived = "stored" | WriteFailed;

export type BlobsCollected = {
  /** Blobs that are gone, and their bytes. */
  readonly removed: number;
  readonly removedBytes: number;
  /** Files or objects without a row that are gone. */
  readonly stray: number;
  /** Blobs that go when their delay is over; undefined where there is none. */
  readonly marked?: number;
};

/** A part of what is kept, as a collection sees it. */
export type CollectedPart = {
  readonly named: readonly Sha256[];
  readonly unnamed: readonly Sha256[];
};

/** Content-addressed: equal bytes are one blob. */
export type Blobs = {
  /** Stores bytes; durable when it resolves. What is there already costs one read. */
  put(bytes: Uint8Array): Promise<Sha256>;
  /** Stores what is made piece by piece; durable when it resolves. Throws what `body` throws. */
  write(body: AsyncIterable<Uint8Array>): Promise<Sha256>;
  /** Stores what somebody sends. Throws only what disk, bucket and store throw: what the sender does is an outcome. */
  receive(sha256: Sha256, body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<BlobReceived>;
  /** Returns the bytes; undefined if there is no such blob. */
  read(sha256: Sha256): Promise<Uint8Array | undefined>;
  /** Undefined also where the disk lost the file: it is asked for again. */
  sizeOf(sha256: Sha256): Promise<number | undefined>;
  /** Opens a blob that `sizeOf` found; both positions are included. Resolves when there is something to read. */
  open(sha256: Sha256, first: number, last: number): Promise<Readable>;
  /** Returns the sizes of those that are there, as their rows say. Whoever asks may name them within days. */
  sizes(wanted: readonly Sha256[]): Promise<ReadonlyMap<Sha256, number>>;
  missing(wanted: readonly Sha256[]): Promise<readonly Sha256[]>;
  /** Nobody may need it any more. */
  remove(sha256: Sha256): Promise<void>;
  /** Keeps everything until it is disposed; a collection removes nothing meanwhile. */
  keepAll(): Promise<Disposable>;
  /** Yields the digests of all that is kept, in parts of some hundred. */
  kept(): AsyncIterable<readonly Sha256[]>;
  /** Removes those of `unnamed` that nobody stored or asked for since, or marks them to go after a delay. */
  collect(part: CollectedPart, since: Date): Promise<BlobsCollected>;
  /** Ends a collection: removes what no row names any more. Returns how many went. */
  sweep(stop: AbortSignal): Promise<number>;
};

export type KeptPackage = Pick<TableRow<"packages">, "stored_as" | "object_key">;

/** A file that was received; disposing removes it unless it was released. */
export type StagedPackage = AsyncDisposable & {
  readonly size: number;
  readonly sha256: Sha256;
  readonly check: (file: string) => Promise<WheelChecked>;
  /** Makes it durable, and returns what its row is to say. */
  readonly keep: () => Promise<KeptPackage>;
  /** Called in the transaction that writes the row. Whether that is committed may stay unknown: what no row names goes later. */
  readonly release: (tx: Tx) => Promise<void>;
};

export type Packages = {
  /** Receives a file. Throws what `bytes` and the disk throw. */
  stage(bytes: AsyncIterable<Uint8Array>, bytesMax: number): Promise<StagedPackage | "too-large">;
  /** Opens the file of a row. Resolves when there is something to read. */
  open(row: KeptPackage & { readonly size: number }): Promise<Readable>;
};

export type ObjectStore = { readonly blobs: Blobs; readonly packages: Packages };

export type ObjectsSight = {
  /** Whether the place did not take the last object that was given to it. One that can be read may be full, or forbid writing. */
  readonly takesNothing: () => boolean;
};
