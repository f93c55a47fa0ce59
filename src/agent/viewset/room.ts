// Keeps what is being prepared, activated or imported within `viewset.disk_max`. If room is needed, the
// remains of transfers that broke off go first, then kept versions; what cannot fit is refused before a byte
// of it is fetched or copied. Blobs that nobody needs any more but that are too young to go are counted only
// in the quick check, which looks no closer.

import type { Log } from "../../base/log.ts";
import { once } from "../../base/wait.ts";
import { blobList, type BlobList } from "../../core/blob-list.ts";
import { AccelError, codeOf } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import { planActivation, type HeldRelease } from "../../core/serving/plan-activation.ts";
import type { PartialFiles } from "./blob-parts.ts";
import type { BlobStore, StoredBlob } from "./blob-store.ts";
import type { ReleaseBlobs } from "./manifest-blobs.ts";

/** The versions that this host has, as they are written down. */
export interface HeldReleases {
  held(): readonly Omit<HeldRelease, "blobs">[];
  /** Gives up versions whose room is needed for another. */
  giveUp(releases: readonly Pick<HeldRelease, "domain" | "manifest">[]): void;
}

export type RoomOptions = {
  readonly store: Pick<BlobStore, "bytesMost" | "lacking"> & {
    readonly parts: Pick<PartialFiles, "idleBytes" | "removeBut">;
  };
  /** The releases that this host holds beside what is being prepared. */
  readonly releases: HeldReleases | undefined;
  readonly releaseBlobs: ReleaseBlobs;
  readonly bytesMax: number;
  readonly collect: () => Promise<unknown>;
  readonly log: Log;
};

type Wanted = Pick<HeldRelease, "domain" | "manifest" | "blobs">;
type Prepared = { blobs: BlobList; fetchBytes: number };

/** What was read of files of this host. */
export type ReadFiles = {
  readonly blobs: readonly StoredBlob[];
  /** The bytes of the files that could not be read because they keep changing. */
  readonly unreadBytes: number;
};

/** Room that is held until it is disposed. */
export type TakenRoom = Disposable & {
  /**
   * Tells that what lacked is in the store by now, and counts there. The version keeps its place until it is
   * in force, or was given up.
   */
  fetched(): void;
};

/** Room for files whose contents were not known when it was taken. */
export type UnreadRoom = Disposable & {
  /** Tells what the files turned out to be; they are in the store by now. */
  tell(blobs: readonly StoredBlob[]): void;
};

export class Room {
  readonly #options: RoomOptions;
  /** What is under way: its place is taken, though nothing written says so yet. */
  readonly #prepared = new Set<Prepared>();
  /** Resolves when some room was given back. */
  #given = Promise.withResolvers<void>();
  #unread = 0;

  constructor(options: RoomOptions) {
    this.#options = options;
  }

  /**
   * Takes room until it is disposed; by then the version is written down as held, or was given up. If only
   * others that are under way are in its way, it waits for them; the caller must hold no room. A version that
   * is in force already, or of which nothing is lacking, is never refused. Throws VIEWSET_TOO_LARGE.
   */
  async take(
    { domain, manifest, blobs }: Wanted,
    lacking: readonly StoredBlob[],
    stop: AbortSignal,
  ): Promise<TakenRoom> {
    const own = { blobs, fetchBytes: bytesOf(lacking) };
    if (own.fetchBytes === 0 || this.#isNeeded(manifest)) this.#prepared.add(own);
    else await this.#waitFor(domain, own, stop);
    return {
      fetched: () => void (own.fetchBytes = 0),
      ...this.#heldUntilDisposed(own),
    };
  }

  #isNeeded(manifest: Sha256): boolean {
    const held = this.#options.releases?.held() ?? [];
    return held.some((one) => one.manifest === manifest && one.standing === "needed");
  }

  async #waitFor(domain: string, own: Prepared, stop: AbortSignal): Promise<void> {
    for (;;) {
      const given = this.#given.promise;
      try {
        await this.#take(domain, own);
        return;
      } catch (error) {
        if (this.#prepared.size === 0 || codeOf(error) !== "VIEWSET_TOO_LARGE") throw error;
        const plan = await this.#planned(own.blobs);
        if (plan.kind === "refused") throw error;
      }
      const why = "what is being activated or imported beside it has taken the room";
      this.#options.log.warn({ domain }, `an activation waits for room: ${why}`);
      await Promise.race([given, once(stop)]);
      stop.throwIfAborted();
    }
  }

  /**
   * Takes room for files of this host. Unless they surely fit beside all that is here, it calls `read` for
   * their contents, since what is here already takes no room. Throws VIEWSET_TOO_LARGE, and what `read`
   * throws.
   */
  async takeUnread(
    domain: string,
    bytes: number,
    read: () => Promise<ReadFiles>,
  ): Promise<UnreadRoom> {
    const own: Prepared = { blobs: this.#unreadBlob(bytes), fetchBytes: bytes };
    if (!(await this.#fitsAtOnce(own))) {
      const { blobs, unreadBytes } = await read();
      const list = new Map(blobs.map((blob) => [blob.sha256, blob])).values();
      own.fetchBytes = bytesOf(await this.#options.store.lacking(list)) + unreadBytes;
      own.blobs = joined([blobList(blobs), this.#unreadBlob(unreadBytes)]);
      // What adds nothing fits even where there is too much already.
      if (own.fetchBytes > 0) await this.#take(domain, own);
      else this.#prepared.add(own);
    }
    return {
      tell: (told) => {
        own.blobs = blobList(told);
        own.fetchBytes = 0;
      },
      ...this.#heldUntilDisposed(own),
    };
  }

  #heldUntilDisposed(own: Prepared): Disposable {
    return { [Symbol.dispose]: () => this.#giveBack(own) };
  }

  #giveBack(own: Prepared): void {
    this.#prepared.delete(own);
    this.#given.resolve();
    this.#given = Promise.withResolvers();
  }

  async #take(domain: string, own: Prepared): Promise<void> {
    // Usually all that is here, needed or not, and all that comes fits together; then nobody has to read what
    // the other versions need.
    if (await this.#fitsAtOnce(own)) return;
    const next = joined([own, ...this.#prepared].map(({ blobs }) => blobs));
    this.#prepared.add(own);
    try {
      await this.#makeRoom(domain, next);
    } catch (error) {
      this.#prepared.delete(own);
      throw error;
    }
  }

  /** Whether it fits beside all that is here; if so, its room is taken. */
  async #fitsAtOnce(own: Prepared): Promise<boolean> {
    const { store, bytesMax } = this.#options;
    const idleBytes = await store.parts.idleBytes();
    let bytes = (store.bytesMost ?? Infinity) + idleBytes + own.fetchBytes;
    for (const { fetchBytes } of this.#prepared) bytes += fetchBytes;
    if (bytes > bytesMax) return false;
    this.#prepared.add(own);
    return true;
  }

  async #planned(next: BlobList) {
    const { releases, releaseBlobs, bytesMax } = this.#options;
    const held: HeldRelease[] = [];
    for (const release of releases?.held() ?? []) {
      const blobs = await releaseBlobs.of(release.manifest);
      if (blobs !== undefined) held.push({ ...release, blobs });
    }
    return { held, ...planActivation({ next, lacking: [], held, bytesMax }) };
  }

  /**
   * Makes room by giving up what may go. `next` holds the blobs of all that is being prepared. Throws
   * VIEWSET_TOO_LARGE.
   */
  async #makeRoom(domain: string, next: BlobList): Promise<void> {
    const { store, releases, collect, log } = this.#options;
    const { held, ...plan } = await this.#planned(next);
    if (plan.kind === "refused") {
      const beside = this.#prepared.size - 1;
      const counted = `; ${beside} more that are being activated or imported just now are counted`;
      throw new AccelError("VIEWSET_TOO_LARGE", `${plan.reason}${beside > 0 ? counted : ""}`);
    }
    const isGiven = new Set(plan.givenUp);
    const stays = held.filter((release) => !isGiven.has(release));
    const lists = [next, ...stays.map(({ blobs }) => blobs)];
    await store.parts.removeBut((key) => lists.some(({ keys }) => keys.includes(key)));
    if (plan.givenUp.length === 0) return;
    const given = plan.givenUp.map((release) => ({
      domain: release.domain,
      manifest: release.manifest,
    }));
    log.warn({ domain, given_up: given }, "kept versions are given up for room");
    releases?.giveUp(plan.givenUp);
    await collect();
  }

  /** Stands for bytes that nothing else shares: its key is negative, those of blobs are not. */
  #unreadBlob(bytes: number): BlobList {
    return { keys: Float64Array.of(--this.#unread), sizes: Float64Array.of(bytes) };
  }
}

function bytesOf(blobs: readonly StoredBlob[]): number {
  return blobs.reduce((sum, { size }) => sum + size, 0);
}

/** Joins the lists. Blobs that several lists share stand in the result several times. */
function joined(lists: readonly BlobList[]): BlobList {
  const all = (part: "keys" | "sizes"): Float64Array => {
    const whole = new Float64Array(lists.reduce((sum, list) => sum + list[part].length, 0));
    let at = 0;
    for (const list of lists) {
      whole.set(list[part], at);
      at += list[part].length;
    }
    return whole;
  };
  return { keys: all("keys"), sizes: all("sizes") };
}
