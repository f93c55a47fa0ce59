// Import: the site on this host becomes blobs and a manifest at central. The same tree gives the same
// manifest, and only what central lacks is sent.
//
// Every file is first copied into the blob store, so that what is uploaded is what was hashed, whatever
// happens to the site meanwhile. The manifest is sent last, so that central never has a manifest whose files
// it lacks.

import type { BigIntStats } from "node:fs";
import { stat } from "node:fs/promises";
import mime from "mime";
import type { BackendRules } from "../../core/serving/backend-url.ts";
import { blobPath } from "../../core/blob-path.ts";
import { canonicalJson } from "../../core/journal/canonical-json.ts";
import { AccelError, codeOf, messageOf, systemCode } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import { devloveSchemaId } from "../../core/serving/devlove.ts";
import { caseFaults, manifestBytesMax, type Manifest, blobBytesMax } from "../../wire/manifest.ts";
import type { ManifestFile } from "../../core/serving/manifest-table.ts";
import { identityOf, Root } from "../../base/below-root.ts";
import { sleep } from "../../base/wait.ts";
import type { CentralClient } from "../link/central-client.ts";
import type { BlobStore, StoredBlob } from "./blob-store.ts";
import { readDevloveFile } from "./devlove-file.ts";
import { invalidDevlove, readDevlove, type SiteNames, boundedLine } from "./devlove-text.ts";
import { amountOf, type Amount, type ProgressMeter } from "./import-progress.ts";
import { inParallel, Slots } from "./parallel.ts";
import type { Room, ReadFiles, UnreadRoom } from "./room.ts";
import {
  type SiteLocation,
  systemReason,
  walkSite,
  type WalkedFile,
  type SiteWalk,
} from "./site-walk.ts";
import { readBlob, type Source } from "./still-file.ts";

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
  /** The number of links that were not followed. */
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

  /**
   * Imports a site. Throws IMPORT_IMPOSSIBLE or VIEWSET_INVALID with the reason, or what `central` throws.
   * Repeated, it continues where it was.
   */
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

  /** Returns how the files take room, which is held as long as `held` is. */
  #roomFor({ domain, views_dir: viewsDir }: SiteLocation, held: DisposableStack): SiteRoom {
    return async ({ files, bytes }, read) => {
      try {
        return held.use(await this.#room.takeUnread(domain, bytes, read));
      } catch (error) {
        if (codeOf(error) !== "VIEWSET_TOO_LARGE") throw error;
        const reason = `views_dir ${viewsDir} has ${bytes} bytes in ${files} files to import, and there is no room for them: ${messageOf(error)}`;
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

/**
 * Makes the manifest. It states `paths_differ_in_case` only if some paths do differ only in case, so that the
 * setting alone does not make another version.
 */
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

// Takes a site as it was at one moment: every file is copied into the blob store, and the site is looked at
// again until nothing has changed between two looks.
//
// If two looks show the same files, and each was taken as it was seen, then all of them were so at once,
// between the end of the first look and the beginning of the second. An import during a deployment gives the
// site before or after it, or the reason why there is none.

export type TakenSite = {
  /** Ascending by path. */
  readonly files: readonly ManifestFile[];
  readonly leftOut: readonly string[];
};

/** Takes room for that much, as Room.takeUnread does; the caller of the import holds it. */
export type SiteRoom = (
  amount: Amount,
  read: () => Promise<ReadFiles>,
) => Promise<Pick<UnreadRoom, "tell">>;

type SiteTask = {
  readonly store: BlobStore;
  readonly room: SiteRoom;
  readonly location: SiteLocation;
  readonly progress: ProgressMeter;
};

type Taken = StoredBlob & { readonly identity: string };

const defaultMime = "application/octet-stream";
/**
 * The most files read at once. Reading is hashing and syncing; more would only fill the queue of the thread
 * pool.
 */
const readersMax = 8;
/**
 * The most looks. Their pauses of 50 to 800 ms are 4 s in all, so a file that is written about every second
 * is at rest between two of the later looks.
 */
const looksMax = 10;
const pauseMs = 50;
const pauseMsMax = 800;
const restlessNamesMax = 5;

/** An error of opening a file of the site, told apart from the blob store's. */
class Unopened extends Error {}

export class SiteTaking {
  readonly #store: BlobStore;
  readonly #room: SiteRoom;
  readonly #root: Root;
  readonly #location: SiteLocation;
  readonly #except: BigIntStats | undefined;
  readonly #taken = new Map<string, Taken>();

  private constructor(
    store: BlobStore,
    room: SiteRoom,
    root: Root,
    location: SiteLocation,
    except: BigIntStats | undefined,
  ) {
    this.#store = store;
    this.#room = room;
    this.#root = root;
    this.#location = location;
    this.#except = except;
  }

  /**
   * Takes a site. Throws IMPORT_IMPOSSIBLE naming what cannot be taken. The blobs stay as long as the caller
   * holds the store.
   */
  static async run(
    { store, room, location, progress }: SiteTask,
    signal: AbortSignal,
  ): Promise<TakenSite> {
    using root = await openViews(location.views_dir);
    const except = await stat(location.devlove_file, { bigint: true }).catch(() => undefined);
    return await new SiteTaking(store, room, root, location, except).#run(progress, signal);
  }

  async #run(progress: ProgressMeter, signal: AbortSignal): Promise<TakenSite> {
    let before = await this.#look(signal);
    progress.begin("reading", amountOf(before.files), { files: 0, bytes: 0 });
    await this.#take(before.files, progress, signal);
    for (let looks = 2; ; looks++) {
      const now = await this.#look(signal);
      const changed = this.#changed(before, now);
      if (changed.length === 0) return this.#site(now);
      if (looks === looksMax) throw this.#restless(changed);
      await this.#take(now.files, undefined, signal);
      await sleep(Math.min(pauseMs * 2 ** (looks - 2), pauseMsMax), signal);
      before = now;
    }
  }

  async #look(signal: AbortSignal): Promise<SiteWalk> {
    const { views_dir: viewsDir, paths_differ_in_case: pathsDifferInCase = false } = this.#location;
    return walkSite({
      root: this.#root,
      viewsDir,
      except: this.#except,
      pathsDifferInCase,
      signal,
    });
  }

  /** Returns the paths that are not the same in both looks, or were not taken as they are. */
  #changed(before: SiteWalk, now: SiteWalk): readonly string[] {
    const gone = new Set(before.files.map(({ path }) => path));
    const changed: string[] = [];
    for (const { path, identity } of now.files)
      if (!gone.delete(path) || this.#taken.get(path)?.identity !== identity) changed.push(path);
    return [...changed, ...gone];
  }

  #restless(changed: readonly string[]): AccelError {
    const names = changed.slice(0, restlessNamesMax).map((path) => JSON.stringify(path));
    const more = changed.length > names.length ? ` and ${changed.length - names.length} more` : "";
    return new AccelError(
      "IMPORT_IMPOSSIBLE",
      `views_dir ${this.#location.views_dir} keeps changing while it is read: ${boundedLine(names)}${more}. Import it when nothing writes there; what is written all the time can be left out by a name that begins with a dot`,
    );
  }

  #site({ files, leftOut }: SiteWalk): TakenSite {
    return {
      leftOut,
      files: files.flatMap(({ path }) => {
        const taken = this.#taken.get(path);
        if (taken === undefined) return []; // This never happens: the path would have counted as changed.
        const { sha256, size } = taken;
        return [{ path, sha256, size, mime: mime.getType(path) ?? defaultMime }];
      }),
    };
  }

  /**
   * Takes the files that were not taken as they are now. One that vanishes is left out; the next look sees
   * that.
   */
  async #take(
    files: readonly WalkedFile[],
    progress: ProgressMeter | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const missing = (): readonly WalkedFile[] =>
      files.filter(({ path, identity }) => this.#taken.get(path)?.identity !== identity);
    const wanted = missing();
    if (wanted.length === 0) return;
    const room = await this.#room(amountOf(wanted), async () =>
      this.#compare(wanted, progress, signal),
    );
    const take = async ({ path, size }: WalkedFile, stop: AbortSignal): Promise<void> => {
      try {
        const seen = { identity: "" };
        const blob = await this.#store.ingest(this.#source(path, seen), stop);
        this.#taken.set(path, { ...blob, identity: seen.identity });
      } catch (error) {
        refuseUnlessGone(error, path);
        this.#taken.delete(path);
      }
      progress?.add({ files: 1, bytes: size });
    };
    await inParallel(missing(), readersMax, take, signal);
    room.tell(wanted.flatMap(({ path }) => this.#taken.get(path) ?? []));
  }

  /**
   * Compares the contents of the files with the store. Those that the store has are taken without copying;
   * files that keep changing are left to copying, which fails with that reason.
   */
  async #compare(
    files: readonly WalkedFile[],
    progress: ProgressMeter | undefined,
    signal: AbortSignal,
  ): Promise<ReadFiles> {
    const blobs: StoredBlob[] = [];
    let unreadBytes = 0;
    const compare = async ({ path, size }: WalkedFile, stop: AbortSignal): Promise<void> => {
      try {
        const seen = { identity: "" };
        const blob = await readBlob(this.#source(path, seen), blobBytesMax, stop);
        if (blob === undefined) {
          unreadBytes += size;
          return;
        }
        blobs.push(blob);
        if (!this.#store.has(blob)) return;
        this.#taken.set(path, { ...blob, identity: seen.identity });
        progress?.add({ files: 1, bytes: size });
      } catch (error) {
        refuseUnlessGone(error, path);
      }
    };
    await inParallel(files, readersMax, compare, signal);
    return { blobs, unreadBytes };
  }

  /**
   * Makes a source that is opened below the root, each time by its name; `seen` gets the identity that the
   * file had then.
   */
  #source(path: string, seen: { identity: string }): Source {
    return {
      name: `${this.#location.views_dir}/${path}`,
      open: async () => {
        try {
          using found = await this.#root.find(path);
          if (found === undefined)
            throw Object.assign(new Error("it leads out of the root"), { code: "ENOENT" });
          seen.identity = identityOf(found.stats);
          return await found.open();
        } catch (cause) {
          throw new Unopened("not opened", { cause });
        }
      },
    };
  }
}

async function openViews(viewsDir: string): Promise<Root> {
  try {
    return await Root.open(viewsDir);
  } catch (error) {
    throw new AccelError("IMPORT_IMPOSSIBLE", `views_dir ${viewsDir} ${systemReason(error)}`);
  }
}

/**
 * Ignores the error of a file that vanished, or that leads out of the root by now, for the next look sees
 * that; any other error of opening it becomes IMPORT_IMPOSSIBLE.
 */
function refuseUnlessGone(error: unknown, path: string): void {
  if (!(error instanceof Unopened)) throw error;
  const code = systemCode(error.cause);
  if (code === undefined || !["ENOENT", "ENOTDIR", "ELOOP"].includes(code))
    throw new AccelError(
      "IMPORT_IMPOSSIBLE",
      `${JSON.stringify(path)} ${systemReason(error.cause)}`,
    );
}
