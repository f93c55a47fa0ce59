// A scrub is one pass over everything on this host's disk that can be compared with what it should be.
//
//   index    index.db, by SQLite's own check and by ours of its text index and keys
//   bodies   cached responses in files of their own, by the digests that they were stored with (small ones
//            lie in index.db, without digests)
//   blobs    files of all versions, kept ones too, with their manifests and devlove files, by the digests
//            that are their names

import type { Sha256 } from "../../core/ids.ts";

/**
 * The place where a pass continues. `after` is the id of an entry or a digest; "" at the beginning of a
 * stage.
 */
export type WalkPosition =
  | { readonly stage: "index" }
  | { readonly stage: "bodies" | "blobs"; readonly after: string };

/** The start of a scrubbing thread. */
export type WalkInit = {
  readonly blobsDir: string;
  readonly cacheDir: string;
  readonly from: WalkPosition;
  readonly bytesPerS: number;
  /** One Int32: if it is not 0, the walk is to end at once. */
  readonly control: SharedArrayBuffer;
};

/**
 * What a walk tells. `checked` comes every second or so, at the end of a stage and when it stops; `position`
 * is where another walk continues.
 */
export type WalkMessage =
  | {
      readonly kind: "checked";
      readonly what: "bodies" | "blobs";
      readonly count: number;
      readonly bytes: number;
      readonly position: WalkPosition;
    }
  | { readonly kind: "damaged body"; readonly id: number; readonly reason: string }
  | { readonly kind: "damaged blob"; readonly sha256: Sha256; readonly reason: string }
  /** Why a stage could not be walked. */
  | { readonly kind: "skipped"; readonly what: "bodies"; readonly reason: string }
  /** Everything was looked at. If this does not come, the walk was stopped. */
  | { readonly kind: "done" };
