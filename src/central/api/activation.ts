// What an activation names: the manifest, composed of a version's views and its devlove, stored before the transaction that tells the agents.

import { canonicalJson } from "../../core/journal/canonical-json.ts";
import { AccelError } from "../../core/faults.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import { decodeManifest, type Manifest } from "../../wire/manifest.ts";
import type { VersionBlobs } from "./deps.ts";
import type { ActivationBasis } from "../store/content/viewsets.ts";

type Composed = Pick<ActivationBasis, "schema" | "content" | "filesBlob">;

/**
 * How canonical JSON of a manifest begins; what follows is the same whatever the devlove is. Whose views are stored has judged that they are canonical.
 */
const beginning = /^\{"devlove":\{"schema":"([^"\\]+)","sha256":"([0-9a-f]{64})"\},"files":/;
const beginningBytesMax = 512;

/** Both blobs, devlove and manifest, are durable when this resolves. What it costs does not grow with the files but for copying their list. */
export async function storeManifest(
  blobs: VersionBlobs,
  { schema, content, filesBlob }: Composed,
): Promise<Sha256> {
  const devlove = { schema, sha256: await blobs.put(new TextEncoder().encode(content)) };
  if (filesBlob === null) return putManifest(blobs, { devlove, files: null });
  const { sha256, bytes } = await readBlob(blobs, filesBlob);
  const start = Buffer.from(bytes.subarray(0, beginningBytesMax)).toString("latin1");
  const [found, hadSchema, hadSha256] = beginning.exec(start) ?? [];
  if (found === undefined) return putManifest(blobs, { ...manifestOf(filesBlob, bytes), devlove });
  if (hadSchema === schema && hadSha256 === devlove.sha256) return sha256;
  const own = `{"devlove":${canonicalJson(devlove)},"files":`;
  return blobs.write(pieces(own, bytes.subarray(found.length)));
}

/** Hashed and written in a millisecond or two each, with turns of the loop between them. */
const pieceBytes = 2 ** 20;

async function* pieces(head: string, rest: Uint8Array): AsyncGenerator<Uint8Array> {
  yield Buffer.from(head);
  for (let at = 0; at < rest.length; at += pieceBytes) yield rest.subarray(at, at + pieceBytes);
}

async function putManifest(blobs: VersionBlobs, manifest: Manifest): Promise<Sha256> {
  return blobs.put(new TextEncoder().encode(canonicalJson(manifest)));
}

async function readBlob(
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

/** Another change came between reading what a manifest is composed of and activating it: so often it is tried again. */
export const activationTriesMax = 3;
