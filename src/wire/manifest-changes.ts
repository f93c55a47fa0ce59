// What differs between the files of two manifests. Pure, but slow for a million files: a caller with others to answer
// runs it in a thread.

import { messageOf } from "../core/faults.ts";
import { decodeManifest, type Manifest } from "./manifest.ts";

export type FileChange = {
  readonly path: string;
  readonly change: "added" | "removed" | "changed";
  readonly bytes_before: number | null;
  readonly bytes_after: number | null;
};

export type FileChanges = {
  readonly added: number;
  readonly removed: number;
  /** Those whose content or media type differs. */
  readonly changed: number;
  readonly same: number;
  readonly bytes_before: number;
  readonly bytes_after: number;
  /** The first ones in the order of their paths. */
  readonly samples: readonly FileChange[];
  /** Whether there are more than the samples. */
  readonly truncated: boolean;
};

export type ManifestsCompared =
  /** Undefined where the views of one are the host's own directory. */
  | { readonly ok: true; readonly changes: FileChanges | undefined }
  | { readonly ok: false; readonly reason: string };

export const changeSamplesMax = 500;

/** Compares two stored manifests; without the first, nothing was there before. Never throws. */
export function compareManifests(
  before: Uint8Array | undefined,
  after: Uint8Array,
): ManifestsCompared {
  const had = before === undefined ? [] : filesOf(before);
  const has = filesOf(after);
  if (typeof had === "string") return { ok: false, reason: had };
  if (typeof has === "string") return { ok: false, reason: has };
  return { ok: true, changes: had === null || has === null ? undefined : changesOf(had, has) };
}

type Files = NonNullable<Manifest["files"]>;

function filesOf(bytes: Uint8Array): Files | null | string {
  try {
    const decoded = decodeManifest(JSON.parse(new TextDecoder().decode(bytes)));
    return decoded.ok ? decoded.manifest.files : decoded.reason;
  } catch (error) {
    return messageOf(error);
  }
}

function changesOf(before: Files, after: Files): FileChanges {
  const gone = new Map(before.map((file) => [file.path, file]));
  const changes: FileChange[] = [];
  let [added, changed] = [0, 0];
  for (const { path, sha256, mime, size } of after) {
    const had = gone.get(path);
    gone.delete(path);
    if (had === undefined) added++;
    else if (had.sha256 !== sha256 || had.mime !== mime) changed++;
    else continue;
    const change = had === undefined ? "added" : "changed";
    changes.push({ path, change, bytes_before: had?.size ?? null, bytes_after: size });
  }
  for (const { path, size } of gone.values())
    changes.push({ path, change: "removed", bytes_before: size, bytes_after: null });
  changes.sort((a, b) => (a.path < b.path ? -1 : 1));
  const bytes = (files: Files): number => files.reduce((sum, { size }) => sum + size, 0);
  return {
    added,
    removed: gone.size,
    changed,
    same: after.length - added - changed,
    bytes_before: bytes(before),
    bytes_after: bytes(after),
    samples: changes.slice(0, changeSamplesMax),
    truncated: changes.length > changeSamplesMax,
  };
}
