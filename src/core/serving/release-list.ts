// What a host remembers about the versions of a domain that it served: those that are kept, those that it
// must not try again, and the one that an operator pinned. Pure.
//
// Documents of agent.db, by main domain:
//   releases:<domain>     newest last: those that were served, at most `keep` of them besides the pinned one; the last is in force while the domain has a version
//   quarantine:<domain>   oldest first: digests that proved bad here, with the reason; refused at once until an operator lifts it, or, where a
//                         release of the agent could not read them, another one runs
//   pin:<domain>          an operator (or a trial that failed) chose a kept version over the one that central wants
//   wish:<domain>         what central wants, which entry said so, and why it is not served where trying it failed
//   prepared:<domain>     a version that this host can serve and holds, because a fleet is asked about it (fleet-activation.ts)

import type { FaultCode } from "../faults.ts";
import type { Sha256 } from "../ids.ts";

/** A version of a viewset at central. */
export type ViewsetRef = {
  readonly manifest: Sha256;
  readonly viewset_id: number;
  readonly viewset_name: string;
};

export type Release = ViewsetRef & { readonly activated_at: string; readonly outcome: string };

/** The place of the entry that wanted it, whose receipt may have to be corrected; null if no entry did. */
export type EntryPlace = { readonly epoch: string; readonly seq: number } | null;

/** The release that central wants. `failed` says why it is not served, as of the last try. */
export type Wish = ViewsetRef & {
  readonly entry: EntryPlace;
  readonly failed?: { readonly reason: string; readonly code: FaultCode };
};

export type Quarantined = ViewsetRef & {
  readonly reason: string;
  /** The code of the fault. */
  readonly code: FaultCode;
  readonly at: string;
  readonly entry: EntryPlace;
  /** The release of the agent that could not read it. */
  readonly release?: string;
};

export type Pin = ViewsetRef & {
  readonly pinned_at: string;
  readonly reason: "operator" | "trial";
  /** The manifest that central wanted when it was pinned. Once central wants another, the pin is lifted. */
  readonly instead_of: Sha256 | null;
};

/** A version that is held for the decision of a fleet, until the time at the latest. */
export type PreparedVersion = ViewsetRef & {
  readonly activation_id: number;
  /** ISO 8601, UTC. */
  readonly until: string;
};

/**
 * Returns whether a quarantined release is still bad. One that could not be read is judged anew by another
 * release of the agent, which may know more. Entries without a release were made by another one.
 */
export function isStillBad({ code, release }: Quarantined, own: string): boolean {
  return code !== "VIEWSET_INVALID" || release === own;
}

/** All that is remembered of one domain. */
export type ReleaseBook = {
  readonly releases: readonly Release[];
  readonly quarantined: readonly Quarantined[];
  readonly pin: Pin | null;
  readonly wish: Wish | null;
  readonly prepared: PreparedVersion | null;
};

export const emptyBook: ReleaseBook = {
  releases: [],
  quarantined: [],
  pin: null,
  wish: null,
  prepared: null,
};

/**
 * The most digests kept in quarantine. Older ones are forgotten, and would be refused again after another
 * try.
 */
const quarantinedMax = 50;

const outcomes = { inForce: "in force", replaced: "replaced", back: "rolled back" } as const;

export type Limits = {
  /** Setting `viewset.keep`. */
  readonly keep: number;
  /** Now, ISO 8601, UTC. */
  readonly at: string;
};

/** Where the host stands with the release that central wants. */
export type Standing =
  | { readonly kind: "in force" }
  | { readonly kind: "pinned"; readonly pin: Pin }
  | { readonly kind: "quarantined"; readonly bad: Quarantined }
  /** The release has not been tried yet, or was refused for a reason that may pass. */
  | { readonly kind: "behind" };

export function standingOf(book: ReleaseBook, wanted: Sha256): Standing {
  const { pin, quarantined } = book;
  const bad = quarantined.find(({ manifest }) => manifest === wanted);
  if (bad !== undefined) return { kind: "quarantined", bad };
  if (pin !== null && pin.instead_of === wanted) return { kind: "pinned", pin };
  return inForceOf(book)?.manifest === wanted ? { kind: "in force" } : { kind: "behind" };
}

export function inForceOf({ releases }: Pick<ReleaseBook, "releases">): Release | undefined {
  return releases.find(isInForce);
}

/**
 * Records that central's wish is served from now on. This lifts a pin and, if an operator had the version
 * tried again, its quarantine.
 */
export function granted(book: ReleaseBook, wish: Wish, { keep, at }: Limits): ReleaseBook {
  const { entry, failed: _, ...ref } = wish;
  const before = inForceOf(book);
  const since = before?.manifest === wish.manifest ? before.activated_at : at;
  const next = { ...ref, activated_at: since, outcome: outcomes.inForce };
  return {
    releases: withRelease(book.releases, next, keep),
    quarantined: without(book.quarantined, wish.manifest),
    pin: null,
    wish: { ...ref, entry },
    // Another version's activation may be told again, as by a snapshot; what is given up for it is withdrawn by name.
    prepared: book.prepared?.manifest === wish.manifest ? null : book.prepared,
  };
}

/** Records that this host holds a version for the decision of a fleet; what it held before is let go. */
export function prepared(book: ReleaseBook, version: PreparedVersion): ReleaseBook {
  return { ...book, prepared: version };
}

/** Records that nothing is held any more for this activation of a fleet. */
export function withdrawn(book: ReleaseBook, activationId: number): ReleaseBook {
  return book.prepared?.activation_id === activationId ? { ...book, prepared: null } : book;
}

/**
 * Records that central's wish is not served; `bad` is given if it must not be tried again. A pin stays only
 * in place of the version that it was set against.
 */
export function refusedWish(book: ReleaseBook, wish: Wish, bad?: Quarantined): ReleaseBook {
  return {
    ...book,
    quarantined: bad === undefined ? book.quarantined : withQuarantined(book.quarantined, bad),
    pin: book.pin?.instead_of === wish.manifest ? book.pin : null,
    wish,
    prepared: book.prepared?.manifest === wish.manifest ? null : book.prepared,
  };
}

export type Return = {
  readonly to: Release;
  readonly by: Pin["reason"];
  /** The release that is left behind, if it failed. */
  readonly bad?: Quarantined;
};

/** Records that a kept version is served again. */
export function wentBack(
  book: ReleaseBook,
  { to, by, bad }: Return,
  { keep, at }: Limits,
): ReleaseBook {
  const { releases, wish } = book;
  const { activated_at: _, outcome: __, ...ref } = to;
  const next = { ...ref, activated_at: at, outcome: outcomes.inForce };
  const ended = `${outcomes.back}${bad === undefined ? " by an operator" : `: ${bad.reason}`}`;
  const quarantined = without(book.quarantined, to.manifest);
  const wanted = wish?.manifest ?? null;
  return {
    releases: withRelease(releases, next, keep, ended),
    quarantined: bad === undefined ? quarantined : withQuarantined(quarantined, bad),
    pin: wanted === to.manifest ? null : { ...ref, pinned_at: at, reason: by, instead_of: wanted },
    wish,
    prepared: book.prepared,
  };
}

function without(list: readonly Quarantined[], digest: Sha256): readonly Quarantined[] {
  return list.filter(({ manifest }) => manifest !== digest);
}

/** Puts `next` in force and notes how the release before it ended. */
function withRelease(
  releases: readonly Release[],
  next: Release,
  keep: number,
  beforeEnded: string = outcomes.replaced,
): readonly Release[] {
  const others = releases
    .filter(({ manifest }) => manifest !== next.manifest)
    .map((release) => (isInForce(release) ? { ...release, outcome: beforeEnded } : release));
  return [...others, next].slice(-keep);
}

function isInForce({ outcome }: Release): boolean {
  return outcome === outcomes.inForce;
}

/** Returns the releases that are left when these are given up. The one in force always stays. */
export function withoutReleases(
  releases: readonly Release[],
  given: ReadonlySet<string>,
): readonly Release[] {
  return releases.filter((release) => isInForce(release) || !given.has(release.manifest));
}

function withQuarantined(list: readonly Quarantined[], added: Quarantined): readonly Quarantined[] {
  return [...list.filter(({ manifest }) => manifest !== added.manifest), added].slice(
    -quarantinedMax,
  );
}

export type FoundRelease =
  | { readonly kind: "found"; readonly release: Release }
  | { readonly kind: "none"; readonly reason: string };

/**
 * Finds the kept version that an operator means: by name, by id, or by the beginning of its digest. If none
 * is named, it is the newest that is not in force and was not rolled back.
 */
export function findRelease(
  { releases, quarantined }: ReleaseBook,
  said: string | undefined,
): FoundRelease {
  if (said === undefined) {
    const bad = new Set(quarantined.map(({ manifest }) => manifest));
    const release = releases.findLast(
      (one) => !isInForce(one) && !one.outcome.startsWith(outcomes.back) && !bad.has(one.manifest),
    );
    return release === undefined
      ? { kind: "none", reason: "no version to go back to is kept on this host" }
      : { kind: "found", release };
  }
  const named = (some: readonly Release[]): Release | undefined =>
    some.findLast(({ viewset_name: name }) => name === said) ??
    some.findLast(({ viewset_id: id }) => String(id) === said) ??
    (said.length >= 8 ? some.findLast(({ manifest }) => manifest.startsWith(said)) : undefined);
  const release = named(releases.filter((one) => !isInForce(one)));
  if (release !== undefined) return { kind: "found", release };
  const what = `version ${JSON.stringify(said)}`;
  return {
    kind: "none",
    reason:
      named(releases) === undefined
        ? `no ${what} is kept on this host`
        : `${what} is in force already`,
  };
}
