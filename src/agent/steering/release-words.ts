// What central is told of its wish for a domain: when its entry is done, and again when an operator or a
// trial changes what came of it.

import {
  inForceOf,
  standingOf,
  type EntryPlace,
  type Quarantined,
  type ReleaseBook,
  type ViewsetRef,
} from "../../core/serving/release-list.ts";
import type { FaultCode } from "../../core/faults.ts";
import type { Correction } from "../link/agent-db.ts";
import type { EntryOutcome } from "../link/entry-outcome.ts";

/**
 * Returns what came of the wish, or undefined if it is still to be tried. `entry` is the one whose outcome is
 * asked for.
 */
export function settledWish(
  book: ReleaseBook,
  { manifest, viewset_id }: ViewsetRef,
  entry: EntryPlace,
): EntryOutcome | undefined {
  const standing = standingOf(book, manifest);
  switch (standing.kind) {
    case "in force":
      return { phase: "applied", detail: { manifest, viewset_id } };
    case "pinned": {
      const { viewset_name: name } = standing.pin;
      const reason = `an operator pinned this host to ${JSON.stringify(name)}`;
      return { phase: "refused", detail: { reason, pinned: true, ...serving(book) } };
    }
    case "quarantined":
      return quarantinedOutcome(book, standing.bad, entry);
    case "behind":
      return undefined;
    default:
      return standing satisfies never;
  }
}

/**
 * Gives the entry that met the fault the same answer when it is repeated, and tells a later one that the
 * version failed before.
 */
function quarantinedOutcome(book: ReleaseBook, bad: Quarantined, entry: EntryPlace): EntryOutcome {
  if (isSamePlace(bad.entry, entry)) return refusedWith(book, bad.reason, bad.code);
  const reason = `it failed on this host at ${bad.at}: ${bad.reason}`;
  return refusedWith(book, reason, "VIEWSET_QUARANTINED");
}

export function refusedWith(book: ReleaseBook, reason: string, code: FaultCode): EntryOutcome {
  return { phase: "refused", detail: { reason, code, ...serving(book) } };
}

/** Returns what central is to be told anew about its wish's entry. */
export function correctionsOf(book: ReleaseBook): readonly Correction[] {
  const { wish } = book;
  const entry = wish?.entry ?? null;
  if (wish === null || entry === null) return [];
  const settled = settledWish(book, wish, entry);
  if (settled === undefined) return [];
  const { phase, detail } = settled;
  // A version that was applied and then failed its trial was not refused.
  const isTrial = detail["code"] === "VIEWSET_PROBE_FAILED";
  return [{ ...entry, phase: isTrial ? "failed" : phase, detail }];
}

/** Returns what central is told when the version in force fails but stays for want of another. */
export function stuckCorrections(book: ReleaseBook, reason: string): readonly Correction[] {
  const { wish } = book;
  const entry = wish?.entry ?? null;
  if (entry === null || wish?.manifest !== inForceOf(book)?.manifest) return [];
  const { detail } = refusedWith(book, reason, "VIEWSET_PROBE_FAILED");
  return [{ ...entry, phase: "failed", detail }];
}

/**
 * Returns why an operator's rollback is refused, because the host has changed since it was asked; undefined
 * if it has not.
 */
export function overtaken(asked: ReleaseBook, book: ReleaseBook): string | undefined {
  const [before, now] = [inForceOf(asked), inForceOf(book)];
  const again =
    "nothing was changed: look at `viewset list`, and repeat the command if you still want it";
  if (before?.manifest !== now?.manifest)
    return `${named(now)} is in force now, no longer ${named(before)}; ${again}`;
  if (asked.wish?.manifest !== book.wish?.manifest)
    return `${named(now)} is still in force, but central wants ${named(book.wish)} now, no longer ${named(asked.wish)}; ${again}`;
  return undefined;
}

function named(ref: ViewsetRef | null | undefined): string {
  const name = ref?.viewset_name;
  return name === undefined ? "no version" : JSON.stringify(name);
}

function serving(book: ReleaseBook): { readonly serving?: Readonly<Record<string, unknown>> } {
  const release = inForceOf(book);
  if (release === undefined) return {};
  const { manifest, viewset_id, viewset_name } = release;
  return { serving: { manifest, viewset_id, viewset_name } };
}

function isSamePlace(one: EntryPlace, other: EntryPlace): boolean {
  return one !== null && other !== null && one.epoch === other.epoch && one.seq === other.seq;
}
