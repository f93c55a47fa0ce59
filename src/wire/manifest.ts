// A viewset as its manifest, itself a blob of canonical JSON: which file has which content.

import { Type, type Static } from "typebox";
import { takeShape } from "./shape-taking.ts";
import { closed, decoder } from "./validate.ts";
import { caseCollisions, describeCollision, directoryCharsMax } from "../core/case-collisions.ts";
import { Count, Sha256Text } from "./parts.ts";

export const ManifestEntry = closed({
  /**
   * Relative to the viewset's root, with `/` between segments; no empty, `.` or `..` segment and no NUL,
   * otherwise any text.
   */
  path: Type.String({ minLength: 1, maxLength: 4096 }),
  sha256: Sha256Text,
  size: Count,
  mime: Type.String({ minLength: 3, maxLength: 255 }),
});

/**
 * `files` is null if the views are the host's own directory. The devlove's blob holds its `content`, byte for
 * byte.
 */
export const Manifest = closed({
  devlove: closed({ schema: Type.String(), sha256: Sha256Text }),
  files: Type.Union([Type.Array(ManifestEntry, { maxItems: 2_000_000 }), Type.Null()]),
  /** Says that names which differ only in case are meant. If absent, such names are refused. */
  paths_differ_in_case: Type.Optional(Type.Literal(true)),
});
export type Manifest = Static<typeof Manifest>;

/**
 * How the canonical JSON of a manifest begins; what follows is the same whatever the devlove is. Views are
 * only stored after their manifest was judged to be canonical.
 */
export const manifestBeginning =
  /^\{"devlove":\{"schema":"([^"\\]+)","sha256":"([0-9a-f]{64})"\},"files":/;
export const manifestBeginningBytesMax = 512;

const decode = decoder(Manifest);

export type ManifestDecoded =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly reason: string };

/** Checks what the schema cannot: paths that stay below the root, each once. */
export function decodeManifest(raw: unknown): ManifestDecoded {
  const decoded = decode(raw);
  if (!decoded.ok)
    return {
      ok: false,
      reason: decoded.errors.map(({ path, message }) => `${path} ${message}`).join("; "),
    };
  const seen = new Set<string>();
  for (const { path } of decoded.value.files ?? []) {
    if (
      path.includes("\0") ||
      !path.isWellFormed() ||
      path.split("/").some((segment) => segment === "" || segment === "." || segment === "..")
    ) {
      return { ok: false, reason: `${JSON.stringify(path)} is no path below the root` };
    }
    if (seen.has(path)) return { ok: false, reason: `${JSON.stringify(path)} stands twice` };
    seen.add(path);
  }
  return { ok: true, manifest: decoded.value };
}

/**
 * Takes a manifest that an agent accepted before by its shape alone. Its paths are keys of a table and never
 * file names, so they can do no harm.
 */
export function takeManifest(raw: unknown): ManifestDecoded {
  const shape: object = Manifest;
  const taken = takeShape(shape, raw);
  return taken.ok ? { ok: true, manifest: taken.value as Manifest } : taken;
}

const tooDeep = `the paths of its directories have more than ${directoryCharsMax} characters together`;

/**
 * Says why a readable manifest is not accepted: it has names that differ only in case, and does not say that
 * they are meant.
 */
export function caseFaults({ files, paths_differ_in_case: isMeant }: Manifest): readonly string[] {
  if (files === null || isMeant === true) return [];
  const paths = files.map(({ path }) => path);
  return caseCollisions(paths)?.map(describeCollision) ?? [tooDeep];
}

/**
 * The most bytes of a stored manifest: enough for a million files with paths of 60 bytes and more. Larger
 * ones are never read.
 */
export const manifestBytesMax = 256 * 2 ** 20;

/**
 * The body of `POST /agent-api/v1/blobs/missing`, which asks which of these blobs central lacks. Each is then
 * sent with `PUT /agent-api/v1/blobs/{sha256}`.
 */
export const BlobsWanted = closed({ sha256: Type.Array(Sha256Text, { maxItems: 10_000 }) });
export const decodeBlobsWanted = decoder(BlobsWanted);
export const BlobsMissing = closed({ missing: Type.Array(Sha256Text) });
export const decodeBlobsMissing = decoder(BlobsMissing);
export const blobBytesMax = 4 * 2 ** 30; // 4 GiB: the largest file of a viewset.
/** The coding in which text travels to an agent that accepts it. */
export const blobCoding = "zstd";
/** The response field that gives the size of the blob itself, beside the coding. */
export const blobSizeField = "accel-blob-size";
