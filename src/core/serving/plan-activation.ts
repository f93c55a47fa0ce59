// An activation as data: what is fetched, what stays, what is given up for it, or why it is impossible.
// Nothing is done here.

import { sumBytes, unionBytes, type BlobList } from "../blob-list.ts";
import type { Sha256 } from "../ids.ts";

export type HeldRelease = {
  readonly domain: string;
  readonly manifest: Sha256;
  /** `needed` releases are in force or pinned and are never given up; `kept` ones are there to go back to. */
  readonly standing: "needed" | "kept";
  /** ISO 8601, UTC. */
  readonly activatedAt: string;
  readonly blobs: BlobList;
};

export type ActivationInput<B> = {
  readonly next: BlobList;
  /** The blobs of the next release that are not here yet. */
  readonly lacking: readonly B[];
  /** The releases that the host holds, of all domains. */
  readonly held: readonly HeldRelease[];
  readonly bytesMax: number;
};

export type ActivationPlan<B> =
  | {
      readonly kind: "go";
      readonly fetch: readonly B[];
      readonly fetchBytes: number;
      /** The kept releases whose room is needed, oldest first. */
      readonly givenUp: readonly HeldRelease[];
    }
  | { readonly kind: "refused"; readonly reason: string };

export function planActivation<B extends { readonly size: number }>({
  next,
  lacking,
  held,
  bytesMax,
}: ActivationInput<B>): ActivationPlan<B> {
  const fetchBytes = lacking.reduce((sum, { size }) => sum + size, 0);
  const needed = held.filter(({ standing }) => standing === "needed");
  const kept = held
    .filter(({ standing }) => standing === "kept")
    .sort((a, b) => (a.activatedAt < b.activatedAt ? -1 : 1));
  const listsWith = (some: readonly HeldRelease[]): readonly BlobList[] => [
    next,
    ...[...needed, ...some].map(({ blobs }) => blobs),
  ];
  const fits = (some: readonly HeldRelease[]): boolean => {
    const lists = listsWith(some);
    // Most releases share most of their files. If they fit without sharing any, the shared bytes need not be
    // counted.
    return sumBytes(lists) <= bytesMax || unionBytes(lists) <= bytesMax;
  };
  // Finds the fewest of the oldest to give up, by halving: each one given up only makes room.
  let least = 0;
  let most = kept.length;
  while (least < most) {
    const middle = (least + most) >>> 1;
    if (fits(kept.slice(middle))) most = middle;
    else least = middle + 1;
  }
  if (!fits(kept.slice(least))) {
    const bytes = unionBytes(listsWith([]));
    return {
      kind: "refused",
      reason: `with it the versions in force on this host need ${bytes} bytes, more than viewset.disk_max allows (${bytesMax})`,
    };
  }
  return { kind: "go", fetch: lacking, fetchBytes, givenUp: kept.slice(0, least) };
}
