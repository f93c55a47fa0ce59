// Reads a manifest from its bytes, and the blobs that it needs. A fault of a manifest lasts for ever, since
// its digest names these bytes and no others.

import { parseJson } from "../../core/journal/json-text.ts";
import { blobList, type BlobList } from "../../core/blob-list.ts";
import { AccelError } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import {
  blobBytesMax,
  caseFaults,
  decodeManifest,
  takeManifest,
  type Manifest,
  manifestBytesMax,
} from "../../wire/manifest.ts";
import { devloveBytesMax } from "../../core/serving/devlove.ts";
import type { StoredBlob, BlobStore } from "./blob-store.ts";
import { boundedLine } from "./devlove-text.ts";

/** A blob with one of the paths that have this content, and its media type by that name. */
export type NamedBlob = StoredBlob & { readonly path: string; readonly mime: string };

/** A fault of a manifest: it is invalid at any other time and place too. */
export class ManifestFault extends AccelError {
  readonly isLasting = true;

  constructor(reasons: readonly string[]) {
    super("VIEWSET_INVALID", `manifest: ${boundedLine(reasons)}`);
  }
}

export type ReadVersion = {
  readonly manifest: Manifest;
  /** The blobs of the views. */
  readonly blobs: ReadonlyMap<Sha256, NamedBlob>;
  /** The reasons for which this release would refuse the version if it were new. */
  readonly objections: readonly string[];
};

/** Reads the manifest of a version that is to come into force. Throws ManifestFault. */
export function readManifest(bytes: Uint8Array): ReadVersion {
  const decoded = decodeManifest(parse(bytes));
  if (!decoded.ok) throw new ManifestFault([decoded.reason]);
  const { blobs, faults } = blobsOf(decoded.manifest);
  if (faults.length > 0) throw new ManifestFault(faults);
  return { manifest: decoded.manifest, blobs, objections: [] };
}

/**
 * Reads the manifest of a version that this host took before: only its shape is checked, whatever the rules
 * are now. Throws ManifestFault if the shape is wrong.
 */
export function readTakenManifest(bytes: Uint8Array): ReadVersion {
  const raw = parse(bytes);
  const decoded = decodeManifest(raw);
  const taken = decoded.ok ? decoded : takeManifest(raw);
  if (!taken.ok) throw new ManifestFault([taken.reason]);
  const { blobs, faults } = blobsOf(taken.manifest);
  const reasons = decoded.ok ? faults : [decoded.reason, ...faults];
  return {
    manifest: taken.manifest,
    blobs,
    objections: reasons.map((reason) => `manifest: ${reason}`),
  };
}

function parse(bytes: Uint8Array): unknown {
  const raw = parseJson(bytes);
  if (raw === undefined) throw new ManifestFault(["it is not JSON in UTF-8"]);
  return raw;
}

/** Refuses collisions in a manifest that is new to this host. Throws ManifestFault. */
export function refuseCollisions(manifest: Manifest): void {
  const reasons = caseFaults(manifest);
  if (reasons.length > 0) throw new ManifestFault(reasons);
}

function blobsOf({ files }: Manifest): {
  readonly blobs: ReadonlyMap<Sha256, NamedBlob>;
  readonly faults: readonly string[];
} {
  const blobs = new Map<Sha256, NamedBlob>();
  const faults: string[] = [];
  for (const { path, sha256, size, mime } of files ?? []) {
    const known = blobs.get(sha256);
    if (known === undefined) blobs.set(sha256, { sha256, size, path, mime });
    else if (known.size !== size)
      faults.push(
        `${JSON.stringify(path)} has the same content as ${JSON.stringify(known.path)} and another size`,
      );
    if (size > blobBytesMax)
      faults.push(`${JSON.stringify(path)} is larger than ${blobBytesMax} bytes`);
  }
  return { blobs, faults };
}

/** Lists everything on disk that the version needs, including the manifest and the devlove file. */
export function allBlobsOf(
  manifest: StoredBlob,
  contents: Manifest,
  devloveBytes: number,
): BlobList {
  return blobList([
    manifest,
    { sha256: contents.devlove.sha256, size: devloveBytes },
    ...(contents.files ?? []),
  ]);
}

// Which blobs a release needs, by the digest of its manifest. They are read once and remembered, within
// bounds, since a digest never names anything else.

/**
 * The most blobs of all remembered manifests: 16 bytes each, 64 MiB. The manifests asked for longest ago are
 * read again.
 */
const blobsMax = 4 * 2 ** 20;

export class ReleaseBlobs {
  readonly #store: BlobStore;
  readonly #lists = new Map<Sha256, BlobList>();
  #blobs = 0;

  constructor(store: BlobStore) {
    this.#store = store;
  }

  /** Returns the blobs of a release; undefined if its manifest is missing, damaged or no manifest. */
  async of(manifest: Sha256): Promise<BlobList | undefined> {
    const known = this.#lists.get(manifest);
    if (known !== undefined) {
      this.note(manifest, known);
      return known;
    }
    const bytes = await this.#store.readBytes(manifest, manifestBytesMax).catch(() => undefined);
    if (bytes === undefined) return undefined;
    try {
      const { manifest: contents } = readTakenManifest(bytes);
      // No one records the size of the devlove file, so it counts with the most that it may have.
      const list = allBlobsOf({ sha256: manifest, size: bytes.length }, contents, devloveBytesMax);
      this.note(manifest, list);
      return list;
    } catch {
      return undefined;
    }
  }

  note(manifest: Sha256, list: BlobList): void {
    const before = this.#lists.get(manifest);
    if (before !== undefined) this.#blobs -= before.keys.length;
    this.#lists.delete(manifest);
    this.#lists.set(manifest, list);
    this.#blobs += list.keys.length;
    for (const [oldest, { keys }] of this.#lists) {
      if (this.#blobs <= blobsMax || oldest === manifest) return;
      this.#lists.delete(oldest);
      this.#blobs -= keys.length;
    }
  }
}
