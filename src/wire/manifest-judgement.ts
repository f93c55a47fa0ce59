// Judges an uploaded manifest from its bytes alone: whether it can be accepted, and which contents it needs.
// Pure, but slow for a million files: a caller with others to answer runs it in a thread.

import { canonicalJson } from "../core/journal/canonical-json.ts";
import { messageOf } from "../core/faults.ts";
import type { Sha256 } from "../core/ids.ts";
import { caseFaults, decodeManifest, type Manifest } from "./manifest.ts";

/** The facts of a manifest in a form that costs nothing to hand to another thread, however many there are. */
export type ManifestFacts = {
  readonly devlove: Manifest["devlove"];
  /** Null if the manifest has no views. */
  readonly files: number | null;
  readonly bytes: number;
  /** Each content once, in the order of its first path: the digest (32 bytes) and the size. */
  readonly digests: Uint8Array;
  readonly sizes: Float64Array;
  /** A path whose content has another size at an earlier path; null if there is none. */
  readonly twoSizes: string | null;
};

export type ManifestVerdict =
  | { readonly ok: true; readonly facts: ManifestFacts }
  | { readonly ok: false; readonly reason: string };

export const digestBytes = 32;
const faultsShown = 5;

/** Judges a manifest. Never throws. */
export function judgeManifest(bytes: Uint8Array): ManifestVerdict {
  const manifest = readCanonical(bytes);
  const reason = typeof manifest === "string" ? manifest : firstOf(caseFaults(manifest));
  if (typeof manifest === "string" || reason !== "")
    return { ok: false, reason: `the manifest is not valid: ${reason}` };
  return { ok: true, facts: factsOf(manifest) };
}

/** Returns the first path with this content and size, for a reason that names it. */
export function pathWith(bytes: Uint8Array, wanted: Sha256, size: number): string | undefined {
  const manifest = readCanonical(bytes);
  if (typeof manifest === "string") return undefined;
  return manifest.files?.find((file) => file.sha256 === wanted && file.size === size)?.path;
}

/** Joins the first few reasons of many into one text; "" if there are none. */
export function firstOf(reasons: readonly string[]): string {
  const more = reasons.length > faultsShown ? `; and ${reasons.length - faultsShown} more` : "";
  return reasons.slice(0, faultsShown).join("; ") + more;
}

/**
 * Reads a manifest, which has to be canonical, because activations take over the list of files as it stands.
 */
function readCanonical(bytes: Uint8Array): Manifest | string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const decoded = decodeManifest(JSON.parse(text));
    if (!decoded.ok) return decoded.reason;
    return isCanonical(decoded.manifest, text) ? decoded.manifest : "it is not canonical JSON";
  } catch (error) {
    return messageOf(error);
  }
}

/** Compares file by file, so that the text of a million files is not made a second time. */
function isCanonical(manifest: Manifest, text: string): boolean {
  const { files } = manifest;
  if (files === null) return canonicalJson(manifest) === text;
  const list = `,"files":[`;
  const around = canonicalJson({ ...manifest, files: [] });
  // Quotes within texts are escaped, so this is the member itself.
  const end = around.indexOf(`${list}]`) + list.length;
  let at = 0;
  const takes = (piece: string): boolean => {
    const does = text.startsWith(piece, at);
    at += piece.length;
    return does;
  };
  if (!takes(around.slice(0, end))) return false;
  for (const [no, file] of files.entries())
    if (!takes(`${no === 0 ? "" : ","}${canonicalJson(file)}`)) return false;
  return takes(around.slice(end)) && at === text.length;
}

function factsOf({ devlove, files }: Manifest): ManifestFacts {
  const known = new Map<Sha256, number>();
  let bytes = 0;
  let twoSizes: string | null = null;
  for (const { path, sha256, size } of files ?? []) {
    bytes += size;
    const before = known.get(sha256);
    if (before === undefined) known.set(sha256, size);
    else if (before !== size) twoSizes ??= path;
  }
  const digests = new Uint8Array(known.size * digestBytes);
  const sizes = new Float64Array(known.size);
  let no = 0;
  for (const [sha256, size] of known) {
    digests.set(Buffer.from(sha256, "hex"), no * digestBytes);
    sizes[no++] = size;
  }
  return { devlove, files: files?.length ?? null, bytes, digests, sizes, twoSizes };
}
