// Room for what is being prepared, within `viewset.disk_max`: kept versions whose place is needed are given up, and what cannot fit is refused before a
// byte of it is fetched. What nobody needs any more and is too young to go counts only where there is room without looking closer.

import type { Log } from "../../base/log.ts";
import { AccelError } from "../../core/faults.ts";
import { planActivation, type HeldRelease } from "../../core/plan-activation.ts";
import type { BlobStore, StoredBlob } from "./blob-store.ts";
import type { ReleaseBlobs } from "./release-blobs.ts";

/** The versions that this host has, as they are written down. */
export interface HeldReleases {
  held(): readonly Omit<HeldRelease, "blobs">[];
  /** Their room is needed for another. */
  giveUp(releases: readonly Pick<HeldRelease, "domain" | "manifest">[]): void;
}

export type RoomOptions = {
  readonly store: Pick<BlobStore, "bytesMost">;
  /** What this host holds beside what is being prepared. */
  readonly releases: HeldReleases | undefined;
  readonly releaseBlobs: ReleaseBlobs;
  readonly bytesMax: number;
  readonly collect: () => Promise<unknown>;
  readonly log: Log;
};

type Wanted = Pick<HeldRelease, "domain" | "manifest" | "blobs">;
type Prepared = Wanted & { readonly fetchBytes: number };

export class Room {
  readonly #options: RoomOptions;
  /** Under way: their place is taken, though nothing says so yet. */
  readonly #prepared = new Set<Prepared>();

  constructor(options: RoomOptions) {
    this.#options = options;
  }

  /** Taken until it is disposed: by then it is in the store, or was given up. Throws VIEWSET_TOO_LARGE. */
  async take(next: Wanted, lacking: readonly StoredBlob[]): Promise<Disposable> {
    const own = { ...next, fetchBytes: lacking.reduce((sum, { size }) => sum + size, 0) };
    const others = [...this.#prepared];
    this.#prepared.add(own);
    const taken = { [Symbol.dispose]: () => void this.#prepared.delete(own) };
    try {
      // What is here, needed or not, and all that comes: mostly it fits, and nobody has to read what the other versions need.
      const coming = others.reduce((sum, { fetchBytes }) => sum + fetchBytes, own.fetchBytes);
      const { store, bytesMax } = this.#options;
      if ((store.bytesMost ?? Infinity) + coming > bytesMax)
        await this.#plan(next, lacking, others);
      return taken;
    } catch (error) {
      taken[Symbol.dispose]();
      throw error;
    }
  }

  async #plan(
    next: Wanted,
    lacking: readonly StoredBlob[],
    others: readonly Prepared[],
  ): Promise<void> {
    const { releases, releaseBlobs, bytesMax, collect, log } = this.#options;
    const held: HeldRelease[] = others.map(asNeeded);
    for (const release of releases?.held() ?? []) {
      const blobs = await releaseBlobs.of(release.manifest);
      if (blobs !== undefined) held.push({ ...release, blobs });
    }
    const plan = planActivation({ next: next.blobs, lacking, held, bytesMax });
    if (plan.kind === "refused") throw new AccelError("VIEWSET_TOO_LARGE", plan.reason);
    if (plan.givenUp.length === 0) return;
    const given = plan.givenUp.map(({ domain, manifest }) => ({ domain, manifest }));
    log.warn({ domain: next.domain, given_up: given }, "kept versions are given up for room");
    releases?.giveUp(plan.givenUp);
    await collect();
  }
}

function asNeeded({ domain, manifest, blobs }: Prepared): HeldRelease {
  return { domain, manifest, blobs, standing: "needed", activatedAt: "" };
}
