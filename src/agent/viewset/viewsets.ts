// Viewsets on this host: pulled by manifest, verified and validated before anything may serve them; restored at boot from what is on disk; made from the site that lies here.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import type { Registry } from "../../base/metrics.ts";
import type { BackendRules } from "../../core/backend-url.ts";
import type { ReadyViewset } from "../../core/compose-state.ts";
import { AccelError, codeOf, messageOf } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import { encodeManifestTable } from "../../core/manifest-table.ts";
import { devloveBytesMax, type Devlove } from "../../wire/devlove.ts";
import { blobBytesMax, decodeManifest, type Manifest } from "../../wire/manifest.ts";
import type { BlobStream, GetBlob } from "./blob-download.ts";
import { openBlobStore, type BlobStore, type StoredBlob } from "./blob-store.ts";
import { invalid, readDevlove, type SiteNames } from "./devlove-text.ts";
import { ProgressMeter, type ImportProgress } from "./import-progress.ts";
import { createViewsetMetrics, type ViewsetMetrics } from "./metrics.ts";
import { inParallel } from "./parallel.ts";
import {
  SiteImporter,
  type BlobUploads,
  type ImportedSite,
  type SiteLocation,
} from "./site-import.ts";

/** The calls of central's client that are needed here. Throw AccelErrors; NOT_FOUND where central lacks the blob. */
export type CentralBlobs = BlobUploads & { readonly getBlob: GetBlob };

export type ViewsetsOptions = {
  readonly stateDir: string;
  readonly central: CentralBlobs;
  /** Setting `sites`. */
  readonly sites: readonly SiteLocation[];
  /** Where a devlove's backends may point. */
  readonly backendRules: BackendRules;
  readonly onProgress: (progress: ImportProgress) => void;
  readonly registry: Registry;
  readonly health: Health;
  readonly log: Log;
  readonly stop: AbortSignal;
};

/** A million files with paths of 60 bytes and more. */
const manifestBytesMax = 256 * 2 ** 20;
/** As many as the blob store transfers at a time. */
const fetchersMax = 6;

export class Viewsets {
  readonly #options: ViewsetsOptions;
  readonly #store: BlobStore;
  readonly #metrics: ViewsetMetrics;
  readonly #importer: SiteImporter;

  constructor(options: ViewsetsOptions, store: BlobStore) {
    this.#options = options;
    this.#store = store;
    const metrics = createViewsetMetrics(options.registry);
    this.#metrics = metrics;
    this.#importer = new SiteImporter(store, options.central, (bytes) => {
      metrics.accel_agent_viewset_blobs_total.inc({ direction: "sent" });
      metrics.accel_agent_viewset_blob_bytes_total.inc({ direction: "sent" }, bytes);
    });
  }

  /** Where workers find the files: `core/blob-path.ts` below it. */
  get blobsDir(): string {
    return this.#store.dir;
  }

  /**
   * Fetches what is missing; when it resolves all of it is verified, validated and survives power loss. Throws VIEWSET_INVALID with all reasons;
   * BLOB_MISMATCH and what central's client throws may be tried again and go on where they were.
   */
  async prepare(manifest: Sha256, names: SiteNames, signal: AbortSignal): Promise<ReadyViewset> {
    const measured = this.#metrics.accel_agent_viewset_prepare_seconds.startTimer();
    return this.#counted("accel_agent_viewset_activations_total", async () => {
      const stop = AbortSignal.any([this.#options.stop, signal]);
      const contents = await this.#fetchManifest(manifest, stop);
      const devlove = await this.#fetchDevlove(contents, names, stop);
      const blobs = blobsOf(contents);
      const lacking = await this.#store.lacking(blobs.values());
      const fetch = async (blob: NamedBlob, fetchStop: AbortSignal): Promise<void> =>
        this.#fetch({ ...blob, bytesMax: blobBytesMax }, JSON.stringify(blob.path), fetchStop);
      await inParallel(lacking, fetchersMax, fetch, stop);
      await this.#store.settle();
      measured();
      this.#options.health.settle("viewset_incomplete", names.name);
      this.#options.log.info(
        { domain: names.name, manifest, files: contents.files?.length, fetched: lacking.length },
        "viewset is whole and valid",
      );
      return ready(manifest, contents, devlove);
    });
  }

  /**
   * The viewset that was committed before the start; undefined, with a warning, when a blob is not on disk as it should be. It was validated when it
   * was prepared: what has been linked or unlinked since then is no reason not to serve it.
   */
  async restore(manifest: Sha256, names: SiteNames): Promise<ReadyViewset | undefined> {
    const whole = await this.#readWhole(manifest).catch((error: unknown) => messageOf(error));
    if (typeof whole !== "string") return ready(manifest, whole.contents, whole.devlove);
    this.#options.health.raise(
      "viewset_incomplete",
      "error",
      `The active viewset of ${names.name} cannot be served from disk: ${whole}`,
      "It is fetched again from central as soon as that can be reached.",
      names.name,
    );
    return undefined;
  }

  /** Throws IMPORT_IMPOSSIBLE or VIEWSET_INVALID with the reason, or what central's client throws; repeated, it goes on where it was. */
  async importSite(importId: string, names: SiteNames, signal: AbortSignal): Promise<ImportedSite> {
    return this.#counted("accel_agent_viewset_imports_total", async () => {
      const location = this.#options.sites.find(({ domain }) => domain === names.name);
      if (location === undefined) {
        throw new AccelError(
          "IMPORT_IMPOSSIBLE",
          `the settings of this agent name no views_dir and devlove_file of ${names.name} (sites)`,
        );
      }
      const stop = AbortSignal.any([this.#options.stop, signal]);
      const rules = this.#options.backendRules;
      const progress = new ProgressMeter(importId, this.#options.onProgress, () =>
        performance.now(),
      );
      const done = await this.#importer.run({ location, names, rules, progress }, stop);
      this.#options.log.info({ domain: names.name, import_id: importId, ...done }, "site imported");
      return done;
    });
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
      throw error;
    }
  }

  async #fetchManifest(manifest: Sha256, signal: AbortSignal): Promise<Manifest> {
    const want = { sha256: manifest, bytesMax: manifestBytesMax };
    return readManifest(await this.#obtain(want, "the manifest", signal));
  }

  async #fetchDevlove(
    { devlove }: Manifest,
    names: SiteNames,
    signal: AbortSignal,
  ): Promise<Devlove> {
    const want = { sha256: devlove.sha256, bytesMax: devloveBytesMax };
    const bytes = await this.#obtain(want, "the devlove file", signal);
    const read = readDevlove(devlove.schema, bytes, names, this.#options.backendRules);
    if (!read.ok) throw invalid("devlove", read.reasons);
    return read.devlove;
  }

  /** Fetched where it is missing, or was and turned out to be damaged. */
  async #obtain(
    want: { readonly sha256: Sha256; readonly bytesMax: number },
    what: string,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    for (let attempt = 0; attempt < 2; attempt++) {
      await this.#fetch(want, what, signal);
      const bytes = await this.#store.readBytes(want.sha256, want.bytesMax);
      if (bytes !== undefined) return bytes;
    }
    throw new AccelError("BLOB_MISMATCH", `${what} (blob ${want.sha256}) is damaged on this disk`);
  }

  async #fetch(
    want: {
      readonly sha256: Sha256;
      readonly size?: number | undefined;
      readonly bytesMax: number;
    },
    what: string,
    signal: AbortSignal,
  ): Promise<void> {
    let isTransfer = false;
    const getBlob: GetBlob = async (sha256, from, stop) => {
      const stream = await this.#options.central.getBlob(sha256, from, stop);
      isTransfer = true;
      return { ...stream, chunks: this.#countedChunks(stream) };
    };
    try {
      await this.#store.fetch(want, getBlob, signal);
      if (isTransfer) this.#metrics.accel_agent_viewset_blobs_total.inc({ direction: "received" });
    } catch (error) {
      if (codeOf(error) !== "NOT_FOUND") throw error;
      const reason = `central does not have the content of ${what} (blob ${want.sha256})`;
      throw new AccelError("VIEWSET_INVALID", reason, { cause: error });
    }
  }

  async *#countedChunks({ chunks }: BlobStream): AsyncGenerator<Uint8Array> {
    const received = this.#metrics.accel_agent_viewset_blob_bytes_total;
    for await (const chunk of chunks) {
      received.inc({ direction: "received" }, chunk.length);
      yield chunk;
    }
  }

  /** The reason where it is not whole. */
  async #readWhole(
    manifest: Sha256,
  ): Promise<string | { readonly contents: Manifest; readonly devlove: Devlove }> {
    const bytes = await this.#store.readBytes(manifest, manifestBytesMax);
    if (bytes === undefined) return `its manifest ${manifest} is missing or damaged`;
    const contents = readManifest(bytes);
    const text = await this.#store.readBytes(contents.devlove.sha256, devloveBytesMax);
    if (text === undefined) return "its devlove file is missing or damaged";
    const read = readDevlove(contents.devlove.schema, text, null, this.#options.backendRules);
    if (!read.ok) return invalid("devlove", read.reasons).message;
    const lacking = await this.#store.lacking(blobsOf(contents).values());
    const [first] = lacking;
    if (first === undefined) return { contents, devlove: read.devlove };
    const path = JSON.stringify(first.path);
    return `${lacking.length} of its files are missing or have another size, ${path} among them`;
  }
}

/** Sweeps what an earlier start left unfinished below `stateDir`/blobs. */
export async function openViewsets(options: ViewsetsOptions): Promise<Viewsets> {
  return new Viewsets(options, await openBlobStore(`${options.stateDir}/blobs`));
}

function readManifest(bytes: Uint8Array): Manifest {
  let raw: unknown;
  try {
    raw = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalid("manifest", ["it is not JSON in UTF-8"]);
  }
  const decoded = decodeManifest(raw);
  if (!decoded.ok) throw invalid("manifest", [decoded.reason]);
  return decoded.manifest;
}

/** With one of the paths that have this content. */
type NamedBlob = StoredBlob & { readonly path: string };

function blobsOf({ files }: Manifest): ReadonlyMap<Sha256, NamedBlob> {
  const blobs = new Map<Sha256, NamedBlob>();
  const reasons: string[] = [];
  for (const { path, sha256, size } of files ?? []) {
    const known = blobs.get(sha256);
    if (known === undefined) blobs.set(sha256, { sha256, size, path });
    else if (known.size !== size)
      reasons.push(
        `${JSON.stringify(path)} has the same content as ${JSON.stringify(known.path)} and another size`,
      );
    if (size > blobBytesMax)
      reasons.push(`${JSON.stringify(path)} is larger than ${blobBytesMax} bytes`);
  }
  if (reasons.length > 0) throw invalid("manifest", reasons);
  return blobs;
}

function ready(manifest: Sha256, { files }: Manifest, devlove: Devlove): ReadyViewset {
  return { manifest, devlove, table: files === null ? null : encodeManifestTable(files) };
}
