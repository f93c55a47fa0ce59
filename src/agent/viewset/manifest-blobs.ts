// A manifest from its bytes, and the blobs that it needs. What is wrong with a manifest is wrong for ever: its digest names these bytes and no others.

import { blobList, type BlobList } from "../../core/blob-list.ts";
import { AccelError } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import { blobBytesMax, caseFaults, decodeManifest, type Manifest } from "../../wire/manifest.ts";
import type { StoredBlob } from "./blob-store.ts";
import { oneLine } from "./devlove-text.ts";

/** With one of the paths that have this content, and what it is by that name. */
export type NamedBlob = StoredBlob & { readonly path: string; readonly mime: string };

/** No other time or place makes it valid. */
export class ManifestFault extends AccelError {
  readonly isLasting = true;

  constructor(reasons: readonly string[]) {
    super("VIEWSET_INVALID", `manifest: ${oneLine(reasons)}`);
  }
}

/** Throws ManifestFault. */
export function readManifest(bytes: Uint8Array): Manifest {
  let raw: unknown;
  try {
    raw = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new ManifestFault(["it is not JSON in UTF-8"]);
  }
  const decoded = decodeManifest(raw);
  if (!decoded.ok) throw new ManifestFault([decoded.reason]);
  return decoded.manifest;
}

/** For what is new to this host. Throws ManifestFault. */
export function refuseCollisions(manifest: Manifest): void {
  const reasons = caseFaults(manifest);
  if (reasons.length > 0) throw new ManifestFault(reasons);
}

/** Of the views. Throws ManifestFault. */
export function blobsOf({ files }: Manifest): ReadonlyMap<Sha256, NamedBlob> {
  const blobs = new Map<Sha256, NamedBlob>();
  const reasons: string[] = [];
  for (const { path, sha256, size, mime } of files ?? []) {
    const known = blobs.get(sha256);
    if (known === undefined) blobs.set(sha256, { sha256, size, path, mime });
    else if (known.size !== size)
      reasons.push(
        `${JSON.stringify(path)} has the same content as ${JSON.stringify(known.path)} and another size`,
      );
    if (size > blobBytesMax)
      reasons.push(`${JSON.stringify(path)} is larger than ${blobBytesMax} bytes`);
  }
  if (reasons.length > 0) throw new ManifestFault(reasons);
  return blobs;
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
