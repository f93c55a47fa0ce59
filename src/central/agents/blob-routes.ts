// Content-addressed files for agents: read in ranges (so that a transfer resumes), asked for in bulk, uploaded and verified.

import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import { readBody } from "../../base/http-listener.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import { parseJson } from "../../core/journal/json-text.ts";
import { blobBytesMax, blobCoding, blobSizeField, decodeBlobsWanted } from "../../wire/manifest.ts";
import { describeErrors } from "../../wire/validate.ts";
import { agentAnswer, refusal, type AgentAnswer, type AgentRoute } from "./answers.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";
import type { BlobReceived, Blobs } from "../store/objects/object-store.ts";

const wantedBytesMax = 10_000 * 72 + 1_024; // Room for 10,000 digests with quotes and commas.
/** The most uploads at once of all agents together: each holds a descriptor and a temporary file. */
const uploadsMax = 256;
const uploadsOfSiteMax = 16;

/** Serves `GET blobs/{sha256}`. What is sealed for one site is given only to that site. */
export function createBlobRoute(blobs: Blobs, store: Pick<AgentStore, "certificates">): AgentRoute {
  return async ({ request, response, signal, deploymentSiteId }, [name = ""]) => {
    const sha256 = parseSha256(name);
    const found =
      sha256 === undefined
        ? undefined
        : ((await sharedBlob(blobs, sha256)) ?? (await ownBlob(store, deploymentSiteId, sha256)));
    if (found === undefined) return refusal("not_found", `there is no blob ${name}`);
    const { size } = found;
    const range = parseRange(request.headers.range, size);
    if (range === "unsatisfiable")
      return { status: 416, headers: { "content-range": `bytes */${size}` } };
    const { first, last } = range ?? { first: 0, last: size - 1 };
    const isCoded = range === undefined && size > 0 && acceptsCoding(request);
    const isSent = size > 0 && request.method !== "HEAD";
    // Before the head: what cannot be had is a refusal.
    const stream = isSent ? await found.open(first, last) : undefined;
    response.writeHead(range === undefined ? 200 : 206, {
      "content-type": "application/octet-stream",
      "cache-control": "private, max-age=31536000, immutable",
      vary: "accept-encoding",
      ...(isCoded
        ? { etag: `"${name}-${blobCoding}"`, "content-encoding": blobCoding, [blobSizeField]: size }
        : { etag: `"${name}"`, "accept-ranges": "bytes", "content-length": last - first + 1 }),
      ...(range === undefined ? {} : { "content-range": `bytes ${first}-${last}/${size}` }),
    });
    if (stream === undefined) response.end();
    else {
      const sent = isCoded
        ? pipeline(stream, createZstdCompress({ params: coderParams }), response, { signal })
        : pipeline(stream, response, { signal });
      // The receiver is gone, or the disk failed. What arrived is no whole body, and the receiver asks again.
      await sent.catch(() => response.destroy());
    }
    return undefined;
  };
}

/** The level of the coding: it shrinks text to a third, for 2 ms a MiB of the pool's threads. */
const coderParams = { [constants.ZSTD_c_compressionLevel]: 1 };

/**
 * Returns whether the blob may be coded. Agents name one coding or `identity`; whoever names more gets the
 * bytes as they are.
 */
function acceptsCoding({ headers }: IncomingMessage): boolean {
  return headers["accept-encoding"] === blobCoding;
}

type BlobFound = {
  readonly size: number;
  /** Resolves when there is something to read. */
  readonly open: (first: number, last: number) => Promise<Readable>;
};

async function sharedBlob(blobs: Blobs, sha256: Sha256): Promise<BlobFound | undefined> {
  const size = await blobs.sizeOf(sha256);
  return size === undefined
    ? undefined
    : { size, open: async (first, last) => blobs.open(sha256, first, last) };
}

async function ownBlob(
  store: Pick<AgentStore, "certificates">,
  deploymentSiteId: number,
  sha256: Sha256,
): Promise<BlobFound | undefined> {
  const bytes = await store.certificates(deploymentSiteId, sha256);
  return bytes === undefined
    ? undefined
    : {
        size: bytes.byteLength,
        open: async (first, last) => Readable.from([bytes.subarray(first, last + 1)]),
      };
}

/**
 * Parses one range (RFC 9110 §14.1.2). Returns undefined for the whole, also if the header is no single byte
 * range, which §14.2 allows to ignore.
 */
function parseRange(
  header: string | undefined,
  size: number,
): { readonly first: number; readonly last: number } | "unsatisfiable" | undefined {
  const [, from = "", to = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? [];
  if (from === "" && to === "") return undefined;
  const first = from === "" ? Math.max(0, size - Number(to)) : Number(from);
  const last = from === "" || to === "" ? size - 1 : Math.min(Number(to), size - 1);
  if (from !== "" && to !== "" && Number(to) < first) return undefined;
  return first >= size ? "unsatisfiable" : { first, last };
}

/** Serves `POST blobs/missing`. */
export function createBlobsMissingRoute(blobs: Blobs): AgentRoute {
  return async ({ request }) => {
    const read = await readBody(request, wantedBytesMax);
    if (!read.ok) return refusal("too_large", "at most 10,000 digests at once");
    const decoded = decodeBlobsWanted(parseJson(Buffer.from(read.body).toString("utf8")));
    if (!decoded.ok) return refusal("invalid", describeErrors(decoded.errors));
    return agentAnswer({ missing: await blobs.missing(decoded.value.sha256) });
  };
}

/** Serves `PUT blobs/{sha256}`. */
export function createBlobUploadRoute(blobs: Blobs): AgentRoute {
  const uploads = new Map<number, number>();
  return async ({ request, deploymentSiteId }, [name = ""]) => {
    const sha256 = parseSha256(name);
    if (sha256 === undefined) return refusal("invalid", "a blob is named by its SHA-256");
    if (Number(request.headers["content-length"] ?? 0) > blobBytesMax)
      return refusal("too_large", `a blob has at most ${blobBytesMax} bytes`);
    const own = uploads.get(deploymentSiteId) ?? 0;
    const all = [...uploads.values()].reduce((sum, count) => sum + count, 0);
    if (own >= uploadsOfSiteMax || all >= uploadsMax)
      return refusal("unavailable", "too many uploads at once", { retryAfterS: 1 });
    uploads.set(deploymentSiteId, own + 1);
    try {
      // An iterator that ends early must not close the socket, over which the answer goes.
      const body = request.iterator({ destroyOnReturn: false });
      return received(await blobs.receive(sha256, body, blobBytesMax), sha256);
    } finally {
      const left = (uploads.get(deploymentSiteId) ?? 1) - 1;
      if (left === 0) uploads.delete(deploymentSiteId);
      else uploads.set(deploymentSiteId, left);
    }
  };
}

function received(outcome: BlobReceived, sha256: Sha256): AgentAnswer {
  switch (outcome) {
    case "stored":
      return { status: 204 };
    case "mismatch":
      return refusal("invalid", `what arrived has another SHA-256 than ${sha256}`);
    case "too large":
      return refusal("too_large", `a blob has at most ${blobBytesMax} bytes`);
    case "aborted":
      return refusal("invalid", "the upload was torn");
    default:
      return outcome satisfies never;
  }
}
