// Import: the site as it lies on this host becomes blobs and a manifest at central. The same tree gives the same manifest, and moves only what central lacks.
//
// Every file is first copied into the blob store (site-take.ts): what is uploaded is what was hashed, whatever happens to the site meanwhile. The manifest goes
// last, so that central has no manifest whose files it lacks.

import type { BackendRules } from "../../core/serving/backend-url.ts";
import { blobPath } from "../../core/blob-path.ts";
import { canonicalJson } from "../../core/journal/canonical-json.ts";
import { AccelError, codeOf, messageOf } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import { devloveSchemaId } from "../../wire/devlove.ts";
import { caseFaults, manifestBytesMax, type Manifest } from "../../wire/manifest.ts";
import type { ManifestFile } from "../../core/serving/manifest-table.ts";
import type { CentralClient } from "../link/central-client.ts";
import type { BlobStore, StoredBlob } from "./blob-store.ts";
import { readDevloveFile } from "./devlove-file.ts";
import { invalidDevlove, readDevlove, type SiteNames } from "./devlove-text.ts";
import { amountOf, type Amount, type ProgressMeter } from "./import-progress.ts";
import { inParallel, Slots } from "./parallel.ts";
import type { Room } from "./room.ts";
import { SiteTaking, type SiteRoom } from "./site-take.ts";
import type { SiteLocation } from "./site-walk.ts";

type BlobUploads = Pick<CentralClient, "blobsMissing" | "putBlob">;

export type ImportTask = {
  readonly location: SiteLocation;
  readonly names: SiteNames;
  readonly rules: BackendRules;
  readonly progress: ProgressMeter;
};

export type ImportedSite = {
  readonly manifest: Sha256;
  readonly files: number;
  readonly bytes: number;
  /** Links that were not followed, the first few by name. */
  readonly left_out: number;
  readonly left_out_names: readonly string[];
};

const uploadsMax = 6;
const namesMax = 20;

export class SiteImporter {
  readonly #store: BlobStore;
  readonly #central: BlobUploads;
  readonly #room: Pick<Room, "takeUnread">;
  readonly #onSent: (bytes: number) => void;
  /** Shared by imports that run at the same time. */
  readonly #slots = new Slots(uploadsMax);

  constructor(
    store: BlobStore,
    room: Pick<Room, "takeUnread">,
    central: BlobUploads,
    onSent: (bytes: number) => void,
  ) {
    this.#store = store;
    this.#room = room;
    this.#central = central;
    this.#onSent = onSent;
  }

  /** Throws IMPORT_IMPOSSIBLE or VIEWSET_INVALID with the reason, or what `central` throws. Repeated, it goes on where it was. */
  async run(task: ImportTask, signal: AbortSignal): Promise<ImportedSite> {
    using _held = this.#store.hold();
    const devlove = await this.#takeDevlove(task, signal);
    const { location, progress } = task;
    using held = new DisposableStack();
    const room = this.#roomFor(location, held);
    const store = this.#store;
    const { files, leftOut } = await SiteTaking.run({ store, room, location, progress }, signal);
    const contents = manifestOf(devlove, files, location);
    const text = Buffer.from(canonicalJson(contents));
    if (text.length > manifestBytesMax)
      throw new AccelError(
        "IMPORT_IMPOSSIBLE",
        `the list of the ${files.length} files has ${text.length} bytes, at most ${manifestBytesMax} are possible`,
      );
    const manifest = await this.#store.putBytes(text);
    await this.#upload(files, [devlove], manifest, progress, signal);
    progress.end();
    return {
      manifest: manifest.sha256,
      ...amountOf(files),
      left_out: leftOut.length,
      left_out_names: leftOut.slice(0, namesMax),
    };
  }

  /** Taken as long as `held` is. */
  #roomFor({ domain, views_dir: viewsDir }: SiteLocation, held: DisposableStack): SiteRoom {
    return async ({ files, bytes }, read) => {
      try {
        return held.use(await this.#room.takeUnread(domain, bytes, read));
      } catch (error) {
        if (codeOf(error) !== "VIEWSET_TOO_LARGE") throw error;
        const reason = `views_dir ${viewsDir} has ${bytes} bytes in ${files} files to be taken, and there is no room for them: ${messageOf(error)}`;
        throw new AccelError("IMPORT_IMPOSSIBLE", reason, { cause: error });
      }
    };
  }

  async #takeDevlove(
    { location: { devlove_file: path }, names, rules }: ImportTask,
    signal: AbortSignal,
  ): Promise<StoredBlob> {
    const bytes = await readDevloveFile(path, signal);
    if (bytes instanceof AccelError) throw bytes;
    const read = readDevlove(devloveSchemaId, bytes, names, rules);
    if (!read.ok) throw invalidDevlove(`devlove_file ${path}`, read.reasons);
    return this.#store.putBytes(bytes);
  }

  async #upload(
    files: readonly ManifestFile[],
    others: readonly StoredBlob[],
    manifest: StoredBlob,
    progress: ProgressMeter,
    signal: AbortSignal,
  ): Promise<void> {
    const blobs = new Map<Sha256, StoredBlob & Amount>();
    for (const { sha256, size } of others) blobs.set(sha256, { sha256, size, files: 0, bytes: 0 });
    for (const { sha256, size } of files) {
      const { files: count, bytes } = blobs.get(sha256) ?? { files: 0, bytes: 0 };
      blobs.set(sha256, { sha256, size, files: count + 1, bytes: bytes + size });
    }
    const missing = new Set(
      await this.#central.blobsMissing([...blobs.keys(), manifest.sha256], signal),
    );
    const lacking = [...blobs.values()].filter(({ sha256 }) => missing.has(sha256));
    const total = amountOf(files);
    const ahead = sum(lacking);
    const there = { files: total.files - ahead.files, bytes: total.bytes - ahead.bytes };
    progress.begin("uploading", total, there);
    const send = async (blob: StoredBlob & Amount, stop: AbortSignal): Promise<void> => {
      await this.#send(blob, stop);
      progress.add(blob);
    };
    await inParallel(lacking, uploadsMax, send, signal);
    if (missing.has(manifest.sha256)) await this.#send(manifest, signal);
  }

  async #send({ sha256, size }: StoredBlob, signal: AbortSignal): Promise<void> {
    const source = { path: blobPath(this.#store.dir, sha256), size };
    await this.#slots.run(async () => this.#central.putBlob(sha256, source, signal), signal);
    this.#onSent(size);
  }
}

function sum(amounts: readonly Amount[]): Amount {
  return {
    files: amounts.reduce((files, amount) => files + amount.files, 0),
    bytes: amounts.reduce((bytes, amount) => bytes + amount.bytes, 0),
  };
}

/** That names differ only in case is said only where some do: the setting alone makes no other version. */
function manifestOf(
  { sha256 }: StoredBlob,
  files: readonly ManifestFile[],
  { paths_differ_in_case: isMeant }: SiteLocation,
): Manifest {
  const plain = { devlove: { schema: devloveSchemaId, sha256 }, files: [...files] };
  return isMeant === true && caseFaults(plain).length > 0
    ? { ...plain, paths_differ_in_case: true }
    : plain;
}
