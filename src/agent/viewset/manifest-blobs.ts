// A manifest from its bytes, and the blobs that it needs. What is wrong with a manifest is wrong for ever: its digest names these bytes and no others.

import { blobList, type BlobList } from "../../core/blob-list.ts";
import { AccelError } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import {
  blobBytesMax,
  caseFaults,
  decodeManifest,
  takeManifest,
  type Manifest,
} from "../../wire/manifest.ts";
import type { StoredBlob } from "./blob-store.ts";
import { boundedLine } from "./devlove-text.ts";

/** With one of the paths that have this content, and what it is by that name. */
export type NamedBlob = StoredBlob & { readonly path: string; readonly mime: string };

/** No other time or place makes it valid. */
export class ManifestFault extends AccelError {
  readonly isLasting = true;

  constructor(reasons: readonly string[]) {
    super("VIEWSET_INVALID", `manifest: ${boundedLine(reasons)}`);
  }
}

export type ReadVersion = {
  readonly manifest: Manifest;
  /** Of the views. */
  readonly blobs: ReadonlyMap<Sha256, NamedBlob>;
  /** What this release would refuse it for, were it new. */
  readonly objections: readonly string[];
};

/** Of a version that is to come into force. Throws ManifestFault. */
export function readManifest(bytes: Uint8Array): ReadVersion {
  const decoded = decodeManifest(parse(bytes));
  if (!decoded.ok) throw new ManifestFault([decoded.reason]);
  const { blobs, faults } = blobsOf(decoded.manifest);
  if (faults.length > 0) throw new ManifestFault(faults);
  return { manifest: decoded.manifest, blobs, objections: [] };
}

/** Of a version that this host took before: by its shape, whatever the rules are now. Throws ManifestFault where it has none. */
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
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new ManifestFault(["it is not JSON in UTF-8"]);
  }
}

/** For what is new to this host. Throws ManifestFault. */
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

/** Everything on disk that the version needs, the manifest and the devlove file among it. */
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
