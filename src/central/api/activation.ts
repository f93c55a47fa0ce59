// Makes what an activation names: the manifest, composed of a version's views and its devlove. It is stored
// before the transaction that tells the agents.

import { canonicalJson } from "../../core/journal/canonical-json.ts";
import { AccelError } from "../../core/faults.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import {
  decodeManifest,
  manifestBeginning,
  manifestBeginningBytesMax,
  type Manifest,
} from "../../wire/manifest.ts";
import type { VersionBlobs } from "./deps.ts";
import type { ActivationBasis } from "../store/content/viewsets.ts";

type Composed = Pick<ActivationBasis, "schema" | "content" | "filesBlob">;

/**
 * Stores devlove and manifest; both blobs are durable when this resolves. The cost does not grow with the
 * files, except for copying their list.
 */
export async function storeManifest(
  blobs: VersionBlobs,
  { schema, content, filesBlob }: Composed,
): Promise<Sha256> {
  const devlove = { schema, sha256: await blobs.put(new TextEncoder().encode(content)) };
  if (filesBlob === null) return putManifest(blobs, { devlove, files: null });
  const { sha256, bytes } = await readManifestBlob(blobs, filesBlob);
  const start = Buffer.from(bytes.subarray(0, manifestBeginningBytesMax)).toString("latin1");
  const [found, hadSchema, hadSha256] = manifestBeginning.exec(start) ?? [];
  if (found === undefined) return putManifest(blobs, { ...manifestOf(filesBlob, bytes), devlove });
  if (hadSchema === schema && hadSha256 === devlove.sha256) return sha256;
  const own = `{"devlove":${canonicalJson(devlove)},"files":`;
  return blobs.write(pieces(own, bytes.subarray(found.length)));
}

/**
 * The bytes hashed and written at once, in a millisecond or two; between them the event loop has its turn.
 */
const pieceBytes = 2 ** 20;

async function* pieces(head: string, rest: Uint8Array): AsyncGenerator<Uint8Array> {
  yield Buffer.from(head);
  for (let at = 0; at < rest.length; at += pieceBytes) yield rest.subarray(at, at + pieceBytes);
}

async function putManifest(blobs: VersionBlobs, manifest: Manifest): Promise<Sha256> {
  return blobs.put(new TextEncoder().encode(canonicalJson(manifest)));
}

/** Reads the manifest with the views of a version. Throws STORE_DAMAGED if it is missing. */
export async function readManifestBlob(
  blobs: VersionBlobs,
  filesBlob: string,
): Promise<{ readonly sha256: Sha256; readonly bytes: Uint8Array }> {
  const sha256 = parseSha256(filesBlob);
  const bytes = sha256 && (await blobs.read(sha256));
  if (sha256 === undefined || bytes === undefined)
    throw new AccelError("STORE_DAMAGED", `the manifest blob ${filesBlob} of a viewset is missing`);
  return { sha256, bytes };
}

function manifestOf(filesBlob: string, bytes: Uint8Array): Manifest {
  const decoded = decodeManifest(JSON.parse(new TextDecoder().decode(bytes)));
  if (!decoded.ok)
    throw new AccelError(
      "STORE_DAMAGED",
      `the manifest blob ${filesBlob} is broken: ${decoded.reason}`,
    );
  return decoded.manifest;
}

/**
 * How often an activation is tried again because another change came between composing the manifest and
 * activating it.
 */
export const activationTriesMax = 3;
