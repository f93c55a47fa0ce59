// One lane as the spool thread knows it: which numbers are where. It does no I/O; others move the numbers,
// and this keeps them consistent.
//
//   begin ≤ counted ≤ durable ≤ end      mark ≤ durable
//   begin … counted    settled: committed, or dropped with a reason, each once, whatever central forgets
//                      later
//   mark               central has everything through here; below `counted` only when central lost something
//   … durable          on disk and synced, or a gap: can be sent
//   … end              received; the next number of the lane is end + 1
//
// Numbers are the lane's own, from 1. The worker's are higher by `base`, for it keeps counting when its lane
// is sealed and another one is opened.

import { batchRecordsMax, formatLaneId, type LaneId } from "../../../wire/request-log.ts";
import {
  addDropped,
  GapList,
  splitUnproven,
  totalDropped,
  type Dropped,
  type Gap,
  type GapReason,
} from "./gaps.ts";
import { LaneWindow } from "./lane-window.ts";
import type { LaneWords } from "../worker/lane-words.ts";
import type { Segment } from "./segment.ts";
import type { Balance, LaneFacts } from "./spool-messages.ts";
import { Sampler } from "./spool-policy.ts";

/** What outlives a lane's process beside the segments. */
export type LaneMark = {
  readonly lane: LaneId;
  readonly begin: number;
  readonly mark: number;
  readonly counted: number;
  readonly committed: number;
  readonly dropped: Dropped;
  readonly end: number;
  readonly gaps: readonly Gap[];
};

/** A place in a segment at which a frame begins. */
export type ReadPlace = { readonly segment: Segment; readonly at: number };

const arrivalSpanMs = 1_000;
/**
 * The most arrivals that are remembered. When they are too many, every other one is forgotten; the oldest
 * stays.
 */
const arrivalsMax = 64;

export class Lane {
  readonly lane: LaneId;
  readonly id: string;
  readonly base: number;
  /** The words that are shared with the worker; undefined once nothing more can come. */
  words: LaneWords | undefined;
  /** The segments in order; the last one of a live lane is being written. */
  readonly segments: Segment[] = [];
  /** Frames written since the last sync, in case it fails. */
  unsynced: { readonly firstSeq: number; readonly lastSeq: number; readonly frame: Uint8Array }[] =
    [];
  gaps: GapList;
  end: number;
  durable: number;
  /** Numbers through this one are reserved on disk; after a crash they are told as a gap. */
  reserved = 0;
  /** Numbers through this one may be given out. They are more than are reserved only while the disk fails. */
  granted = 0;
  readonly window = new LaneWindow();
  readonly sampler = new Sampler();
  /** Numbers through this one have frames; after it come gaps that are only in memory. */
  written: number;
  /**
   * Numbers from this one on were found missing, and it is not known yet whether central has them; 0 when
   * there are none.
   */
  guessedFrom = 0;
  /** A batch through this number is on its way. */
  sentThrough = 0;
  /** The places where reading may continue, by number. */
  places: ReadonlyMap<number, ReadPlace> = new Map();
  /**
   * Reading found numbers without a record, and no mark on disk says so yet. Another process that learns from
   * central that it has these numbers would count them as committed.
   */
  hasFoundGap = false;
  /** The last segment could not be looked at: numbers behind its last record were reserved, or were never given out. */
  hasUnreadTail = false;
  /** Times in a row that a segment could not be read. */
  readFailures = 0;
  /** Why records are not written now, and until when (monotonic) nothing is tried. */
  pause: { readonly untilMs: number; readonly reason: GapReason } | undefined;

  /**
   * A batch through this number may have been on its way when the process before ended; 0 once central has
   * answered.
   */
  #wasSentThrough: number;
  /** Whether an earlier process wrote it, so that only the disk and central know what it did. */
  readonly isFound: boolean;
  readonly #begin: number;
  #committed: number;
  readonly #dropped: Dropped;
  #mark: number;
  #counted: number;
  /**
   * When records behind the mark arrived, oldest first: numbers through `seq` came within a second from
   * `atMs`.
   */
  #arrivals: { readonly seq: number; readonly atMs: number }[] = [];

  constructor(from: LaneMark, base: number, words: LaneWords | undefined) {
    this.lane = from.lane;
    this.id = formatLaneId(from.lane);
    this.base = base;
    this.words = words;
    this.isFound = words === undefined;
    this.gaps = new GapList(from.gaps);
    this.end = this.durable = this.written = from.end;
    this.#begin = from.begin;
    this.#mark = from.mark;
    this.#counted = from.counted;
    this.#committed = from.committed;
    this.#dropped = { ...from.dropped };
    this.#wasSentThrough = words === undefined ? from.mark + batchRecordsMax : 0;
  }

  get mark(): number {
    return this.#mark;
  }

  get counted(): number {
    return this.#counted;
  }

  get isDone(): boolean {
    return this.words === undefined && this.#mark >= this.end;
  }

  lastSeqOf(segment: Segment): number {
    const next = this.segments[this.segments.indexOf(segment) + 1];
    return next === undefined ? this.end : next.name.firstSeq - 1;
  }

  /**
   * Whether the segment is part of a batch without an answer. Central may have it already, so it must not be
   * told as dropped. `surely` counts only batches that this process sent.
   */
  isPinned(segment: Segment, surely: boolean): boolean {
    const through = surely ? this.sentThrough : Math.max(this.sentThrough, this.#wasSentThrough);
    return segment.name.firstSeq <= through && this.lastSeqOf(segment) > this.#mark;
  }

  /**
   * Notes that central has everything through `mark`, which is lower than before when central lost something.
   */
  settle(mark: number): void {
    // The mark answers no batch of this process: central got these records from the process before, unsynced.
    const isGuessed = this.guessedFrom > 0 && this.guessedFrom <= mark;
    if (isGuessed && mark !== this.sentThrough) this.gaps.remove(this.guessedFrom, mark);
    this.guessedFrom = 0;
    if (mark > this.#counted) {
      const dropped = this.gaps.count(this.#counted + 1, mark);
      this.#committed += mark - this.#counted - totalDropped(dropped);
      addDropped(this.#dropped, dropped);
      this.#counted = mark;
    }
    this.#mark = mark;
    this.sentThrough = this.#wasSentThrough = 0;
    this.gaps.forgetThrough(mark);
    this.#arrivals = this.#arrivals.filter(({ seq }) => seq > mark);
  }

  /**
   * Notes that central has numbers through `mark` that no batch of this process brought. Where the disk says nothing of
   * them, the process before told central, and could not write down what: records or gaps.
   */
  leaveUnknown(mark: number): void {
    for (const { from, to, reason } of this.gaps.within(this.#counted + 1, mark)) {
      if (reason !== "unproven") continue;
      this.gaps.remove(from, to);
      this.gaps.add(from, to, "unknown");
    }
    if (mark <= this.durable) return;
    this.gaps.add(this.durable + 1, mark, "unknown");
    this.end = this.durable = mark;
  }

  /** Returns how long the oldest record behind the mark has been waiting, to the second. */
  behindMs(nowMs: number): number {
    const [oldest] = this.#arrivals;
    return oldest === undefined ? 0 : nowMs - oldest.atMs;
  }

  /** Notes that numbers through `seq` were received. */
  receivedThrough(seq: number, nowMs: number): void {
    this.window.received(seq, nowMs);
    this.end = seq;
    this.#arrived(seq, nowMs);
  }

  #arrived(seq: number, atMs: number): void {
    const last = this.#arrivals.at(-1);
    if (last !== undefined && atMs - last.atMs < arrivalSpanMs) {
      this.#arrivals[this.#arrivals.length - 1] = { seq, atMs: last.atMs };
      return;
    }
    if (this.#arrivals.length >= arrivalsMax)
      this.#arrivals = this.#arrivals.filter((_, at) => at % 2 === 0);
    this.#arrivals.push({ seq, atMs });
  }

  balance(): Balance {
    const waiting = this.gaps.count(this.#counted + 1, this.durable);
    const all = { ...this.#dropped };
    addDropped(all, waiting);
    const { dropped, unproven, unknown } = splitUnproven(all);
    const seen = this.words?.seen ?? this.base + this.end;
    const taken = Math.max(seen - this.base, this.durable);
    return {
      accepted: taken - this.#begin - unproven - unknown,
      committed: this.#committed,
      spooled: this.durable - this.#counted - totalDropped(waiting),
      inMemory: taken - this.durable,
      dropped,
      unproven,
      unknown,
    };
  }

  facts({ wallMs, monotonicMs }: { wallMs: number; monotonicMs: number }): LaneFacts {
    const hasBacklog = this.#mark < this.durable;
    const [first] = this.segments;
    const waitingMs =
      first?.modifiedMs === undefined
        ? this.behindMs(monotonicMs)
        : Math.max(0, wallMs - first.modifiedMs);
    return {
      lane: this.id,
      live: this.words !== undefined,
      mark: this.#mark,
      durable: this.durable,
      inFlight: this.sentThrough > this.#mark,
      bytes: this.segments.reduce((sum, { bytes }) => sum + bytes, 0),
      waitingMs: hasBacklog ? waitingMs : 0,
      balance: this.balance(),
    };
  }

  toMark(): LaneMark {
    return {
      lane: this.lane,
      begin: this.#begin,
      mark: this.#mark,
      counted: this.#counted,
      committed: this.#committed,
      dropped: { ...this.#dropped },
      end: this.end,
      gaps: this.gaps.all,
    };
  }
}

/** Makes the mark of a lane that begins; `seq` is the number before its first one. */
export function newLaneMark(lane: LaneId, seq = 0): LaneMark {
  return {
    lane,
    begin: seq,
    mark: seq,
    counted: seq,
    committed: 0,
    dropped: {},
    end: seq,
    gaps: [],
  };
}

export const emptyBalance: Balance = {
  accepted: 0,
  committed: 0,
  spooled: 0,
  inMemory: 0,
  dropped: {},
  unproven: 0,
  unknown: 0,
};

export function sumBalances(balances: Iterable<Balance>): Balance {
  const sum = { ...emptyBalance, dropped: {} };
  for (const { accepted, committed, spooled, inMemory, dropped, unproven, unknown } of balances) {
    sum.accepted += accepted;
    sum.committed += committed;
    sum.spooled += spooled;
    sum.inMemory += inMemory;
    addDropped(sum.dropped, dropped);
    sum.unproven += unproven;
    sum.unknown += unknown;
  }
  return sum;
}
