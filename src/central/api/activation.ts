// What an activation names: the manifest, composed of a version's views and its devlove, stored before the transaction that tells the agents.

import { canonicalJson } from "../../core/canonical-json.ts";
import { AccelError } from "../../core/faults.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import { decodeManifest, type Manifest } from "../../wire/manifest.ts";
import type { BlobStore } from "./ports.ts";
import type { ActivationBasis } from "./content-unit.ts";

type Composed = Pick<ActivationBasis, "schema" | "content" | "filesBlob">;

/** Both blobs, devlove and manifest, are durable when this resolves. */
export async function storeManifest(
  blobs: BlobStore,
  { schema, content, filesBlob }: Composed,
): Promise<Sha256> {
  const sha256 = await blobs.put(new TextEncoder().encode(content));
  const files = filesBlob === null ? null : await readFiles(blobs, filesBlob);
  const manifest: Manifest = { devlove: { schema, sha256 }, files };
  return blobs.put(new TextEncoder().encode(canonicalJson(manifest)));
}

async function readFiles(blobs: BlobStore, filesBlob: string): Promise<Manifest["files"]> {
  const sha256 = parseSha256(filesBlob);
  const bytes = sha256 === undefined ? undefined : await blobs.read(sha256);
  if (bytes === undefined)
    throw new AccelError("INTERNAL", `the manifest blob ${filesBlob} of a viewset is missing`);
  const decoded = decodeManifest(JSON.parse(new TextDecoder().decode(bytes)));
  if (!decoded.ok)
    throw new AccelError("INTERNAL", `the manifest blob ${filesBlob} is broken: ${decoded.reason}`);
  return decoded.manifest.files;
}

/** Another change came between reading what a manifest is composed of and activating it: so often it is tried again. */
export const activationTriesMax = 3;
