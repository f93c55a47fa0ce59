// Viewsets on this host: they are pulled by manifest, and verified and validated before anything may serve
// them; restored at boot from what is on disk; and imported from the site on this host.

import { diskSpaceOf } from "../../base/disk-space.ts";
import type { Instruments } from "../../base/metrics.ts";
import type { BackendRules } from "../../core/serving/backend-url.ts";
import { blobKey } from "../../core/blob-list.ts";
import type { ReadyViewset } from "../../core/serving/compose-state.ts";
import { isTextual } from "../../core/http/content-coding.ts";
import { AccelError, codeOf, messageOf } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import { encodeManifestTable } from "../../core/serving/manifest-table.ts";
import type { HeldRelease } from "../../core/serving/plan-activation.ts";
import { devloveBytesMax } from "../../core/serving/devlove.ts";
import { blobBytesMax, manifestBytesMax, type Manifest } from "../../wire/manifest.ts";
import type { RunningImport } from "../../wire/channel.ts";
import type { CentralClient } from "../link/central-client.ts";
import { BlobFetch } from "./blob-fetch.ts";
import { openBlobStore, type BlobStore } from "./blob-store.ts";
import { Collection } from "./collection.ts";
import { Damage } from "./damage.ts";
import {
  invalidDevlove,
  boundedLine,
  readDevlove,
  readTakenDevlove,
  type DevloveTaken,
  type SiteNames,
} from "./devlove-text.ts";
import { ProgressMeter } from "./import-progress.ts";
import {
  allBlobsOf,
  readManifest,
  readTakenManifest,
  refuseCollisions,
  type NamedBlob,
  type ReadVersion,
  ReleaseBlobs,
} from "./manifest-blobs.ts";
import { createViewsetMetrics, type ViewsetMetrics } from "./metrics.ts";
import { inParallel } from "./parallel.ts";
import { Room, type HeldReleases } from "./room.ts";
import { SiteImporter, type ImportedSite } from "./site-import.ts";
import type { SiteLocation } from "./site-walk.ts";
import type { TableMemory } from "./table-memory.ts";

export type ViewsetsOptions = Instruments & {
  readonly stateDir: string;
  readonly central: Pick<CentralClient, "getBlob" | "blobsMissing" | "putBlob">;
  /** Setting `sites`. */
  readonly sites: readonly SiteLocation[];
  /** The rules for where a devlove's backends may point. */
  readonly backendRules: BackendRules;
  /** Setting `viewset.disk_max`. */
  readonly diskMax?: number;
  /** The bytes that others on the disk, such as the cache, give up where room is needed. */
  readonly spareBytes?: () => Promise<number>;
  /** The memory for tables of files. */
  readonly tables?: Pick<TableMemory, "take">;
  /** The releases that this host holds beside what is being prepared. */
  readonly releases?: HeldReleases;
  readonly onProgress: (progress: RunningImport) => void;
  readonly stop: AbortSignal;
};

/**
 * A viewset as restored at boot. `isWhole` is false if some of its files are missing or have another size.
 */
export type RestoredViewset = { readonly ready: ReadyViewset; readonly isWhole: boolean };

/**
 * The rules by which a version is judged. `anew`: by those of this release and the names that are linked now,
 * for what is to come into force. `as taken`: by its shape alone, for what is in force or is gone back to,
 * which was judged when it was taken.
 */
export type Judged = "anew" | "as taken";

/**
 * A viewset whose room is taken and whose files stay until it is disposed; by then it is written down as
 * held, or was given up.
 */
export type PreparedViewset = ReadyViewset & Disposable;

/** The most fetchers: as many as the blob store transfers at a time. */
const fetchersMax = 6;
/** The least size of a text that is worth compressing; below it, compression saves less than it costs. */
const textBytesMin = 1_024;

export class Viewsets implements AsyncDisposable {
  readonly #releaseBlobs: ReleaseBlobs;
  readonly #options: ViewsetsOptions;
  readonly #store: BlobStore;
  readonly #metrics: ViewsetMetrics;
  readonly #blobs: BlobFetch;
  readonly #damage: Damage;
  readonly #importer: SiteImporter;
  readonly #room: Room;
  /** Undefined where no releases are given: nobody says what is needed, so nothing is removed. */
  readonly #collection: Collection | undefined;

  constructor(options: ViewsetsOptions, store: BlobStore) {
    this.#options = options;
    this.#store = store;
    const metrics = createViewsetMetrics(options.registry);
    this.#metrics = metrics;
    this.#blobs = new BlobFetch(store, options.central, metrics);
    this.#damage = new Damage(store);
    this.#releaseBlobs = new ReleaseBlobs(store);
    const { releases, log, stop } = options;
    this.#collection =
      releases &&
      new Collection({
        store,
        blobsOf: async (manifest) => this.#releaseBlobs.of(manifest),
        references: () =>
          releases.held().map(({ manifest, standing }) => ({
            manifest,
            isNeeded: standing === "needed",
          })),
        metrics,
        log,
        stop,
      });
    this.#collection?.request();
    this.#room = new Room({
      store,
      releases,
      releaseBlobs: this.#releaseBlobs,
      bytesMax: options.diskMax ?? Infinity,
      collect: async () => this.#collection?.collect(),
      log,
    });
    this.#importer = new SiteImporter(store, this.#room, options.central, (bytes) => {
      metrics.accel_agent_viewset_blobs_total.inc({ direction: "sent" });
      metrics.accel_agent_viewset_blob_bytes_total.inc({ direction: "sent" }, bytes);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#collection?.[Symbol.asyncDispose]();
  }

  /** The directory in which workers find the files, at `core/blob-path.ts`. */
  get blobsDir(): string {
    return this.#store.dir;
  }

  /**
   * Fetches what is missing; when it resolves, all of it is verified, validated and survives power loss.
   * Throws VIEWSET_INVALID with all reasons, and VIEWSET_TOO_LARGE. After BLOB_MISMATCH, or what central's
   * client throws, it may be tried again and continues where it was.
   */
  async prepare(
    manifest: Sha256,
    names: SiteNames,
    signal: AbortSignal,
    judged: Judged = "anew",
  ): Promise<PreparedViewset> {
    const measured = this.#metrics.accel_agent_viewset_prepare_seconds.startTimer();
    return this.#counted("accel_agent_viewset_activations_total", async () => {
      const stop = AbortSignal.any([this.#options.stop, signal]);
      using taking = new DisposableStack();
      taking.use(this.#store.hold());
      const want = { sha256: manifest, bytesMax: manifestBytesMax };
      const bytes = await this.#blobs.obtain(want, "the manifest", stop);
      const version = judged === "anew" ? readManifest(bytes) : readTakenManifest(bytes);
      const { manifest: contents } = version;
      if (judged === "anew" && !this.#holds(manifest)) refuseCollisions(contents);
      const text = await this.#fetchDevlove(contents, stop);
      const ready = this.#read(manifest, version, text, judged === "anew" ? names : null);
      if (typeof ready === "string") throw new AccelError("VIEWSET_INVALID", ready);
      const lacking = await this.#store.lacking(version.blobs.values());
      const all = allBlobsOf({ sha256: manifest, size: bytes.length }, contents, text.length);
      const own = { domain: names.name, manifest, blobs: all };
      const room = taking.use(await this.#room.take(own, lacking, stop));
      await this.#refuseShortage(lacking);
      await inParallel(
        lacking,
        fetchersMax,
        async (blob, stopped) => this.fetch(blob, stopped),
        stop,
      );
      await this.#store.settle();
      room.fetched();
      this.#releaseBlobs.note(manifest, all);
      this.#collection?.request();
      measured();
      this.#options.health.settle("viewset_incomplete", names.name);
      this.#options.log.info(
        { domain: names.name, manifest, files: contents.files?.length, fetched: lacking.length },
        "the viewset is complete and valid",
      );
      const taken = taking.move();
      return { ...ready(), [Symbol.dispose]: () => taken.dispose() };
    });
  }

  /** Throws a shortage where the disk has less than lacks, even if the cache gives way: what was fetched until it is full would keep it full. */
  async #refuseShortage(lacking: readonly NamedBlob[]): Promise<void> {
    const { stateDir, spareBytes } = this.#options;
    const wanted = lacking.reduce((sum, { size }) => sum + size, 0);
    const { free = Infinity } = diskSpaceOf(stateDir) ?? {};
    if (wanted <= free) return;
    const spare = (await spareBytes?.()) ?? 0;
    if (wanted <= free + spare) return;
    const text = `${mibOf(wanted)} of it are not here, and the disk has ${mibOf(free)} free`;
    throw new AccelError(
      "DISK_FAILED",
      spare === 0 ? text : `${text}, and ${mibOf(spare)} of the cache`,
      { cause: Object.assign(new Error("no room"), { code: "ENOSPC" }) },
    );
  }

  /** Fetches a file unless it is here. It is not durable before `settle`. */
  async fetch({ sha256, size, path, mime }: NamedBlob, signal: AbortSignal): Promise<void> {
    const isText = size >= textBytesMin && isTextual(mime);
    const want = { sha256, size, bytesMax: blobBytesMax, isText };
    await this.#blobs.fetch(want, JSON.stringify(path), signal);
  }

  /**
   * Restores a viewset that was committed before the start, with a warning when not all of it is on disk as
   * it should be. If some of its files are missing, the others are served; without manifest or devlove
   * nothing is, and undefined is returned. It was validated when it was prepared: neither what has been
   * linked or unlinked since then, nor the rules of a newer release, are a reason not to serve it. Sizes are
   * compared, not digests, so that a start is quick.
   */
  async restore(manifest: Sha256, names: SiteNames): Promise<RestoredViewset | undefined> {
    const { health } = this.#options;
    const hint = "What is missing is fetched from central as soon as it can be reached.";
    const read = await this.#readCommitted(manifest).catch((error: unknown) => messageOf(error));
    if (typeof read === "string") {
      const text = `The active viewset of ${names.name} cannot be served from disk: ${read}`;
      health.raise("viewset_incomplete", "error", text, hint, names.name);
      return undefined;
    }
    const { ready, lacking } = read;
    const [first] = lacking;
    if (first !== undefined) {
      const which = `${lacking.length} of its files are missing or have another size, ${JSON.stringify(first.path)} among them`;
      const text = `The active viewset of ${names.name} is served with damage: ${which}`;
      health.raise("viewset_damaged", "error", text, hint, names.name);
    }
    return { ready: ready(), isWhole: first === undefined };
  }

  /**
   * Removes those of these files that cannot be read here or have wrong bytes; `prepare` fetches them again.
   */
  async dropDamaged(files: Iterable<Sha256>): Promise<void> {
    for (const sha256 of files) await this.#damage.drop(sha256);
  }

  /** Tells that something is held no longer: what nothing needs any more is removed. */
  letGo(): void {
    this.#collection?.request();
  }

  /** Returns the versions on this host that need a blob as a file, manifest or devlove file. */
  async holdersOf(sha256: Sha256): Promise<readonly Omit<HeldRelease, "blobs">[]> {
    const key = blobKey(sha256);
    const holders: Omit<HeldRelease, "blobs">[] = [];
    for (const held of this.#options.releases?.held() ?? []) {
      const blobs = await this.#releaseBlobs.of(held.manifest);
      if (held.manifest === sha256 || blobs?.keys.includes(key) === true) holders.push(held);
    }
    return holders;
  }

  /**
   * Imports the site of this host. Throws IMPORT_NO_SITE where the settings name none of the domain, IMPORT_IMPOSSIBLE or VIEWSET_INVALID
   * with the reason, or what central's client throws; repeated, it continues where it was.
   */
  async importSite(importId: string, names: SiteNames, signal: AbortSignal): Promise<ImportedSite> {
    return this.#counted("accel_agent_viewset_imports_total", async () => {
      const location = this.#options.sites.find(({ domain }) => domain === names.name);
      if (location === undefined) {
        throw new AccelError(
          "IMPORT_NO_SITE",
          `the settings of this agent name no views_dir and devlove_file of ${names.name} (sites)`,
        );
      }
      using _ = this.#store.hold();
      const stop = AbortSignal.any([this.#options.stop, signal]);
      const rules = this.#options.backendRules;
      const progress = new ProgressMeter(importId, this.#options.onProgress, () =>
        performance.now(),
      );
      const done = await this.#importer.run({ location, names, rules, progress }, stop);
      this.#collection?.request();
      this.#options.log.info({ domain: names.name, import_id: importId, ...done }, "site imported");
      return done;
    });
  }

  /** Returns whether the version is in force or kept, and so was taken under the rules of its day. */
  #holds(manifest: Sha256): boolean {
    return this.#options.releases?.held().some((held) => held.manifest === manifest) === true;
  }

  /**
   * Returns how to make the viewset ready, or the reason why it cannot be served. With `names` null it is
   * judged as taken. The table is made only when the returned function is called.
   */
  #read(
    manifest: Sha256,
    { manifest: contents, objections }: ReadVersion,
    text: Uint8Array,
    names: SiteNames | null,
  ): string | (() => ReadyViewset) {
    const { schema } = contents.devlove;
    const { backendRules } = this.#options;
    const read: DevloveTaken =
      names === null
        ? readTakenDevlove(schema, text, backendRules)
        : readDevlove(schema, text, names, backendRules);
    if (!read.ok) return invalidDevlove("devlove", read.reasons).message;
    const { devlove, objections: more = [] } = read;
    const all = [...objections, ...more.map((reason) => `devlove: ${reason}`)];
    return () => ({
      manifest,
      devlove,
      table: this.#table(contents),
      ...(all.length > 0 && { objections: boundedLine(all) }),
    });
  }

  #table({ files }: Manifest): SharedArrayBuffer | null {
    if (files === null) return null;
    const { tables } = this.#options;
    const memory = tables && ((bytes: number): SharedArrayBuffer => tables.take(bytes));
    return encodeManifestTable(files, memory);
  }

  async #counted<T>(
    counter: "accel_agent_viewset_activations_total" | "accel_agent_viewset_imports_total",
    action: () => Promise<T>,
  ): Promise<T> {
    try {
      const result = await action();
      this.#metrics[counter].inc({ outcome: "done" });
      return result;
    } catch (error) {
      const refused = ["VIEWSET_INVALID", "IMPORT_IMPOSSIBLE"].includes(codeOf(error));
      this.#metrics[counter].inc({ outcome: refused ? "refused" : "failed" });
      this.#collection?.requestLate();
      throw error;
    }
  }

  async #fetchDevlove({ devlove }: Manifest, signal: AbortSignal): Promise<Uint8Array> {
    const want = { sha256: devlove.sha256, bytesMax: devloveBytesMax };
    return this.#blobs.obtain(want, "the devlove file", signal);
  }

  /** Reads a committed viewset; returns the reason if nothing of it can be served. */
  async #readCommitted(
    manifest: Sha256,
  ): Promise<
    string | { readonly ready: () => ReadyViewset; readonly lacking: readonly NamedBlob[] }
  > {
    const bytes = await this.#store.readBytes(manifest, manifestBytesMax);
    if (bytes === undefined) return `its manifest ${manifest} is missing or damaged`;
    const version = readTakenManifest(bytes);
    const { manifest: contents } = version;
    const text = await this.#store.readBytes(contents.devlove.sha256, devloveBytesMax);
    if (text === undefined) return "its devlove file is missing or damaged";
    const ready = this.#read(manifest, version, text, null);
    if (typeof ready === "string") return ready;
    const own = { sha256: manifest, size: bytes.length };
    this.#releaseBlobs.note(manifest, allBlobsOf(own, contents, text.length));
    const lacking = await this.#store.lacking(version.blobs.values());
    return { ready, lacking };
  }
}

/** Opens the viewsets and sweeps what an earlier start left unfinished below `stateDir`/blobs. */
const mibOf = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MiB`;

export async function openViewsets(options: ViewsetsOptions): Promise<Viewsets> {
  return new Viewsets(options, await openBlobStore(`${options.stateDir}/blobs`));
}
