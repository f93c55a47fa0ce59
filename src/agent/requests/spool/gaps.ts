// Numbers of a lane that stand for no record any more, each with its reason. Central is told of them, and the
// balance counts them as dropped.

import { decodeGapLine, lossReasons, type GapLine } from "../../../wire/request-log.ts";

/** All reasons: those that central is told of, and two that are no gaps to it. */
export const gapReasons = [
  ...lossReasons,
  /**
   * A process ended, and these numbers were reserved ahead: nobody knows which of them stood for a record. They
   * are no records in the balance, and are told as a gap of `crash` of which none is proven.
   */
  "unproven",
  /**
   * Central has these numbers of a process whose disk took nothing any more: as records or as gaps, and only central
   * knows which. They are no part of the balance, and central is never told of them.
   */
  "unknown",
] as const;
export type GapReason = (typeof gapReasons)[number];

export type Gap = { readonly from: number; readonly to: number; readonly reason: GapReason };

export type Dropped = Partial<Record<GapReason, number>>;

/**
 * Reads the reason of a gap. A reason that only a newer release knows becomes `corrupt`: to this release the
 * numbers have no record.
 */
export function parseGapReason(text: unknown): GapReason {
  return gapReasons.find((reason) => reason === text) ?? "corrupt";
}

/** Writes a gap as central and segments have it. */
export function gapLine({ from, to, reason }: Gap): string {
  const count = to - from + 1;
  const told =
    reason === "crash" || reason === "unproven"
      ? { reason: "crash", at_least: reason === "crash" ? count : 0, at_most: count }
      : { reason };
  return `${JSON.stringify({ gap: { from_seq: from, to_seq: to, ...told } } satisfies GapLine)}\n`;
}

/**
 * Returns the reason if `line` is a gap, or undefined if it is a record. Records never begin with this key.
 */
export function gapReasonOf(line: Uint8Array): GapReason | undefined {
  if (gapBegin.some((byte, at) => line[at] !== byte)) return undefined;
  const decoded = decodeGapLine(JSON.parse(new TextDecoder().decode(line)));
  if (!decoded.ok) return parseGapReason(undefined);
  const { reason, at_least: atLeast = 0 } = decoded.value.gap;
  return reason === "crash" && atLeast === 0 ? "unproven" : parseGapReason(reason);
}

const gapBegin = new TextEncoder().encode('{"gap":');

/** Adds `more` to `into`. */
export function addDropped(into: Dropped, more: Dropped): void {
  for (const reason of gapReasons) {
    const count = more[reason] ?? 0;
    if (count > 0) into[reason] = (into[reason] ?? 0) + count;
  }
}

/** Takes the numbers out of which this host cannot say that each stood for a record that is lost. */
export function splitUnproven({ unproven = 0, unknown = 0, ...dropped }: Dropped): {
  readonly dropped: Dropped;
  readonly unproven: number;
  readonly unknown: number;
} {
  return { dropped, unproven, unknown };
}

export function totalDropped(dropped: Dropped): number {
  return gapReasons.reduce((sum, reason) => sum + (dropped[reason] ?? 0), 0);
}

/** The gaps of a lane: sorted and disjoint, with neighbours of one reason merged. */
export class GapList {
  #gaps: Gap[];

  constructor(gaps: readonly Gap[] = []) {
    this.#gaps = [];
    for (const { from, to, reason } of gaps) this.add(from, to, reason);
  }

  get all(): readonly Gap[] {
    return this.#gaps;
  }

  /** Adds a gap. Numbers that are in a gap already keep their reason. */
  add(from: number, to: number, reason: GapReason): void {
    if (to < from) return;
    const before = this.#gaps.filter((gap) => gap.to < from);
    const behind = this.#gaps.filter((gap) => gap.from > to);
    const within = this.#gaps.slice(before.length, this.#gaps.length - behind.length);
    const filled: Gap[] = [];
    let next = from;
    for (const gap of within) {
      if (gap.from > next) filled.push({ from: next, to: gap.from - 1, reason });
      filled.push(gap);
      next = gap.to + 1;
    }
    if (next <= to) filled.push({ from: next, to, reason });
    this.#gaps = [...before, ...filled, ...behind].reduce<Gap[]>(mergeInto, []);
  }

  /** Returns the gap that `seq` is in. */
  at(seq: number): Gap | undefined {
    return this.#gaps.find((gap) => gap.from <= seq && seq <= gap.to);
  }

  /** Returns the parts of the gaps that lie from `from` to `to`. */
  within(from: number, to: number): readonly Gap[] {
    return this.#gaps
      .filter((gap) => gap.from <= to && from <= gap.to)
      .map((gap) => ({ ...gap, from: Math.max(gap.from, from), to: Math.min(gap.to, to) }));
  }

  /** Removes numbers from the gaps, for they are records after all. */
  remove(from: number, to: number): void {
    this.#gaps = this.#gaps.flatMap((gap) =>
      [
        { ...gap, to: Math.min(gap.to, from - 1) },
        { ...gap, from: Math.max(gap.from, to + 1) },
      ].filter((left) => left.from <= left.to),
    );
  }

  /** Whether any of these numbers is in a gap. */
  touches(from: number, to: number): boolean {
    return this.#gaps.some((gap) => gap.from <= to && from <= gap.to);
  }

  /** Counts the numbers from `from` to `to` that are in gaps, by reason. */
  count(from: number, to: number): Dropped {
    const dropped: Dropped = {};
    for (const gap of this.#gaps) {
      const inside = Math.min(gap.to, to) - Math.max(gap.from, from) + 1;
      if (inside > 0) addDropped(dropped, { [gap.reason]: inside });
    }
    return dropped;
  }

  forgetThrough(seq: number): void {
    this.#gaps = this.#gaps
      .filter(({ to }) => to > seq)
      .map((gap) => ({ ...gap, from: Math.max(gap.from, seq + 1) }));
  }
}

function mergeInto(merged: Gap[], gap: Gap): Gap[] {
  const last = merged.at(-1);
  if (last !== undefined && last.reason === gap.reason && last.to + 1 === gap.from)
    merged[merged.length - 1] = { ...last, to: gap.to };
  else merged.push(gap);
  return merged;
}
