// Blobs that nothing names any more go away:
//
//   a manifest that a version has (`files_blob`, `manifest_blob`), its devlove and its files   stay
//   a manifest that a fleet was asked to prepare, likewise                                     stay
//   whole bot sets (`bot_set_contents`)                                                        stay
//   what was stored or asked for within `keptMs`                                               stays: an import may be about to name it, an agent to fetch it
//
// Whoever keeps a digest elsewhere adds it to `named` below. Manifests are read in pieces and their digests found in the text, which takes at most too
// many for named; digests are remembered in a filter that errs on the same side. Where a manifest cannot be read as it was written nothing goes. Half of the
// time it rests: 10,000 versions of 10,000 files are 16 GB to read, some minutes of a night.

import { createHash } from "node:crypto";
import { sleep } from "../../../base/wait.ts";
import { DigestFilter } from "../../../core/digest-filter.ts";
import type { Sha256 } from "../../../core/ids.ts";
import { AccelError } from "../../../core/faults.ts";
import type { Store } from "../engine/database.ts";
import type { Blobs, BlobsCollected } from "../objects/object-store.ts";

export type BlobCollectionDeps = {
  readonly store: Store;
  readonly blobs: Pick<Blobs, "sizeOf" | "open" | "kept" | "collect" | "sweep">;
  readonly randomBytes: (count: number) => Uint8Array;
};

export const keptMs = 3 * 86_400_000;
const digestInText = /"sha256":"([0-9a-f]{64})"/g;
/** The characters of a match in which a piece may end. */
const overlapChars = 80;

/** Throws INTERNAL where a manifest is damaged; nothing has gone then. Ends early, with what went until then, when `stop` aborts. */
export async function collectBlobs(
  deps: BlobCollectionDeps,
  now: Date,
  stop: AbortSignal,
): Promise<BlobsCollected> {
  const since = new Date(now.getTime() - keptMs);
  const named = await namedDigests(deps, stop);
  const { blobs } = deps;
  let total: BlobsCollected = { removed: 0, removedBytes: 0, stray: 0 };
  for await (const part of blobs.kept()) {
    if (stop.aborted) return total;
    const beganMs = performance.now();
    const byName = Map.groupBy(part, (sha256) => named.has(sha256));
    const seen = { named: byName.get(true) ?? [], unnamed: byName.get(false) ?? [] };
    total = sumOf(total, await blobs.collect(seen, since));
    await rest(beganMs, stop);
  }
  return { ...total, stray: total.stray + (await blobs.sweep(stop)) };
}

function sumOf(a: BlobsCollected, b: BlobsCollected): BlobsCollected {
  return {
    removed: a.removed + b.removed,
    removedBytes: a.removedBytes + b.removedBytes,
    stray: a.stray + b.stray,
    ...(b.marked !== undefined && { marked: (a.marked ?? 0) + b.marked }),
  };
}

async function namedDigests(
  { store, blobs, randomBytes }: BlobCollectionDeps,
  stop: AbortSignal,
): Promise<DigestFilter> {
  const { count } = await store
    .selectFrom("blobs")
    .select((select) => select.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  const named = new DigestFilter(count, Buffer.from(randomBytes(4)).readUInt32LE());
  const sets = await store.selectFrom("bot_set_contents").select("blob").execute();
  for (const { blob } of sets) named.add(blob);
  for (const manifest of await manifests(store)) {
    if (stop.aborted) break;
    named.add(manifest);
    // One that the disk lost names nothing: an import that brings it back brings its files.
    if ((await blobs.sizeOf(manifest)) !== undefined) await addNamed(blobs, manifest, named, stop);
  }
  return named;
}

async function manifests(store: Store): Promise<ReadonlySet<Sha256>> {
  const rows = await store.selectFrom("viewsets").select(["files_blob", "manifest_blob"]).execute();
  const prepared = await store
    .selectFrom("fleet_activations")
    .select("manifest_blob")
    .where("state", "=", "preparing")
    .execute();
  return new Set([
    ...rows.flatMap((row) => [row.files_blob ?? [], row.manifest_blob ?? []].flat()),
    ...prepared.map((row) => row.manifest_blob),
  ]);
}

async function addNamed(
  blobs: BlobCollectionDeps["blobs"],
  manifest: Sha256,
  named: DigestFilter,
  stop: AbortSignal,
): Promise<void> {
  const hash = createHash("sha256");
  let left = "";
  let beganMs = performance.now();
  for await (const chunk of (await blobs.open(manifest, 0, Infinity)) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    // Digests are ASCII, whatever stands around them.
    const text = left + chunk.toString("latin1");
    for (const [, digest = ""] of text.matchAll(digestInText)) named.add(digest as Sha256); // By the pattern.
    left = text.slice(-overlapChars);
    await rest(beganMs, stop);
    beganMs = performance.now();
  }
  if (hash.digest("hex") !== manifest)
    throw new AccelError("STORE_DAMAGED", `the manifest blob ${manifest} is damaged`);
}

/** Rests as long as it worked: agents and customers wait for nobody else here. */
async function rest(beganMs: number, stop: AbortSignal): Promise<void> {
  await sleep(performance.now() - beganMs, stop);
}
