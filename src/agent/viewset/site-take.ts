// Taking a site as it was at one moment: every file into the blob store, and looked at again until nothing has changed between two looks.
//
// Two looks that show the same files, each taken as it was seen: then all of them were so at once, between the end of the first look and the
// begin of the second. A deployment that goes on meanwhile gives the site of before or of after, or the reason why there is none.

import type { BigIntStats } from "node:fs";
import { stat } from "node:fs/promises";
import mime from "mime";
import { identityOf, Root } from "../../base/below-root.ts";
import { sleep } from "../../base/wait.ts";
import { AccelError } from "../../core/faults.ts";
import type { ManifestFile } from "../../core/serving/manifest-table.ts";
import { blobBytesMax } from "../../wire/manifest.ts";
import type { BlobStore, StoredBlob } from "./blob-store.ts";
import { boundedLine } from "./devlove-text.ts";
import { amountOf, type Amount, type ProgressMeter } from "./import-progress.ts";
import { inParallel } from "./parallel.ts";
import type { ReadFiles, UnreadRoom } from "./room.ts";
import {
  codeOfSystem,
  systemReason,
  walkSite,
  type WalkedFile,
  type SiteWalk,
  type SiteLocation,
} from "./site-walk.ts";
import { readBlob, type Source } from "./still-file.ts";

export type TakenSite = {
  /** Ascending by path. */
  readonly files: readonly ManifestFile[];
  readonly leftOut: readonly string[];
};

/** Room for so much, as in Room.takeUnread; held by the caller. */
export type SiteRoom = (
  amount: Amount,
  read: () => Promise<ReadFiles>,
) => Promise<Pick<UnreadRoom, "tell">>;

export type SiteTask = {
  readonly store: BlobStore;
  readonly room: SiteRoom;
  readonly location: SiteLocation;
  readonly progress: ProgressMeter;
};

type Taken = StoredBlob & { readonly identity: string };

const defaultMime = "application/octet-stream";
/** Reading is hashing and syncing: more in flight only fills the queue of the thread pool. */
const readersMax = 8;
/** With pauses of 50 to 800 ms, 5 s: a file that is written every second or so is at rest between two of the later looks. */
const looksMax = 10;
const pauseMs = 50;
const pauseMsMax = 800;
const namesMax = 5;

/** What opening a file of the site throws, told apart from what the blob store throws. */
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

  /** Throws IMPORT_IMPOSSIBLE naming what cannot be taken. Blobs are there as long as the caller holds the store. */
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

  /** Paths that are not the same in both, or were not taken as they are. */
  #changed(before: SiteWalk, now: SiteWalk): readonly string[] {
    const gone = new Set(before.files.map(({ path }) => path));
    const changed: string[] = [];
    for (const { path, identity } of now.files)
      if (!gone.delete(path) || this.#taken.get(path)?.identity !== identity) changed.push(path);
    return [...changed, ...gone];
  }

  #restless(changed: readonly string[]): AccelError {
    const names = changed.slice(0, namesMax).map((path) => JSON.stringify(path));
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
        if (taken === undefined) return []; // Never: it would have counted as changed.
        const { sha256, size } = taken;
        return [{ path, sha256, size, mime: mime.getType(path) ?? defaultMime }];
      }),
    };
  }

  /** Those that were not taken as they are. */
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

  /** What the files hold. Where the store has it they are taken, and need not be copied; those that keep changing are left to copying, which says so. */
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

  /** Opened below the root, each time by its name; `seen` is what it was then. */
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

/** What vanishes, or leads out of the root meanwhile, is left to the next look. */
function refuseUnlessGone(error: unknown, path: string): void {
  if (!(error instanceof Unopened)) throw error;
  const code = codeOfSystem(error.cause);
  if (code === undefined || !["ENOENT", "ENOTDIR", "ELOOP"].includes(code))
    throw new AccelError(
      "IMPORT_IMPOSSIBLE",
      `${JSON.stringify(path)} ${systemReason(error.cause)}`,
    );
}
