// Writes lanes: it appends frames to the open segment, begins a new segment when that is full, syncs a group
// of frames with one fdatasync, and reserves numbers ahead.
//
// The disk may refuse anything at any time; nothing here throws. Records that cannot be written become a gap
// with the reason, and for a second nothing more is tried. When an fdatasync fails, what was written since
// the last one is written again into a new file: the kernel may have dropped the pages, and another sync of
// the same file would not tell. While the disk fails, numbers are given out without being reserved on it.
// Where requests wait for room (`block`), none is given out then, and the disk is tried again a second later.

import { giveBack } from "../../../base/give-back.ts";
import { encodeFrame, encodeReservation, type Frame } from "../../../core/journal/spool-frame.ts";
import { gapLine, type GapReason } from "./gaps.ts";
import type { Lane } from "./lane.ts";
import type { Reservations } from "../worker/reservations.ts";
import { windowAtRest } from "./lane-window.ts";
import { Segment, type SegmentPlace } from "./segment.ts";
import { isDiskFull, type SpoolFiles } from "./spool-files.ts";
import type { SpoolRoom } from "./spool-room.ts";

const pauseMs = 1_000;
/**
 * The most tries to write. On a full disk each one after the first drops the oldest segment before it. After
 * any other failure one more try is made, for it may have been one of many.
 */
const triesMax = 4;
/**
 * The most gaps of one lane that central does not know of yet; beyond that, records are dropped as part of
 * the last one.
 */
const gapsMax = 4_096;
/**
 * The bytes with which a disk is probed, more than the records that a worker may have numbered at any time
 * take: 256 of 1 KiB.
 */
const probeBytes = 256 * 2 ** 10;

export type AppenderOptions = {
  readonly files: SpoolFiles;
  readonly directory: string;
  readonly segmentBytesMax: number;
  readonly monotonicMs: () => number;
  /**
   * Makes room for this many bytes within the limit, or with `undefined` for any on a full disk. Returns
   * whether there is room.
   */
  readonly makeRoom: (bytes: number | undefined) => boolean;
  /** Where segments are begun when the disk is full. */
  readonly room: SpoolRoom;
  readonly reservations: Reservations;
  /** Called when records were lost for which no gap could be written. */
  readonly onLoss: () => void;
  readonly nextRank: () => number;
  /** Called with what the disk refused, and with undefined when it works again. */
  readonly onDisk: (error: unknown) => void;
};

export class LaneAppender {
  readonly #options: AppenderOptions;
  readonly #reservations: Reservations;
  #isFailing = false;
  /** The last reservation was refused because the disk is full. */
  #isFull = false;

  constructor(options: AppenderOptions) {
    this.#options = options;
    this.#reservations = options.reservations;
  }

  /** Appends a frame whose numbers follow the lane's last one. It is durable after the next sync. */
  append(lane: Lane, frame: Frame): void {
    const lastSeq = frame.firstSeq + frame.count - 1;
    const refused = this.#tellGaps(lane, frame.firstSeq) ?? this.#write(lane, frame, lastSeq);
    lane.receivedThrough(lastSeq, this.#options.monotonicMs());
    if (refused === undefined) return;
    lane.gaps.add(frame.firstSeq, lastSeq, refused);
    this.#options.onLoss();
  }

  /**
   * Drops the lane's next `count` records. The gap is written together with its neighbours, before the next
   * frame.
   */
  skip(lane: Lane, count: number, reason: GapReason): void {
    const from = lane.end + 1;
    lane.receivedThrough(lane.end + count, this.#options.monotonicMs());
    lane.gaps.add(from, lane.end, reason);
  }

  /** Writes the lane's gaps, so that none of them is only in memory, if the disk allows. */
  tellGaps(lane: Lane): void {
    this.#tellGaps(lane, lane.end + 1);
  }

  /**
   * Lets what is written be sent without a sync (`relaxed`), unless a reservation is due or what was written
   * is lost.
   */
  publish(lane: Lane): void {
    const isLost = lane.unsynced.length > 0 && openSegment(lane) === undefined;
    if (isLost || this.#reservations.dueTo(lane) !== undefined) {
      this.sync(lane);
      return;
    }
    lane.durable = sendableOf(lane);
    this.#reservations.publish(lane);
  }

  /**
   * Syncs: everything received is durable afterwards, or a gap. Tells the worker so, and how far it may
   * number.
   */
  sync(lane: Lane): void {
    this.#tryAgain(lane);
    const reservedTo = this.#reservations.dueTo(lane);
    const open = openSegment(lane);
    const beganMs = this.#options.monotonicMs();
    try {
      const isWritten = reservedTo !== undefined && this.#appendReservation(open, reservedTo);
      if (lane.unsynced.length > 0 && open?.isOpen !== true)
        throw new Error(`a segment of lane ${lane.id} had to be closed before its sync`);
      open?.sync();
      if (isWritten) lane.reserved = lane.granted = Math.max(lane.granted, reservedTo);
      if (open !== undefined && (isWritten || lane.unsynced.length > 0)) this.#works();
    } catch (error) {
      this.#writeAgain(lane, error);
    }
    const nowMs = this.#options.monotonicMs();
    this.#reservations.synced(nowMs - beganMs, nowMs);
    const { unsynced } = lane;
    lane.unsynced = [];
    for (const { frame } of unsynced) giveBack(frame);
    if (reservedTo !== undefined && lane.reserved < reservedTo) this.#reserveElsewhere(lane);
    lane.durable = sendableOf(lane);
    if (!this.#reservations.areBound) lane.granted = Math.max(lane.granted, reservedTo ?? 0);
    this.#reservations.publish(lane);
  }

  /** Reserves numbers for a lane that rested, or that nothing has come to yet. */
  wake(lane: Lane): void {
    lane.window.wake();
    if (lane.segments.length === 0 && lane.pause === undefined) this.begin(lane);
    else this.sync(lane);
  }

  /**
   * Gives back the numbers that are reserved beyond `through` and that the worker no longer needs, for the lane `rests` or
   * less comes.
   */
  release(lane: Lane, through: number, rests: boolean): void {
    const to = Math.max(through, lane.end);
    lane.window.narrow(Math.min(to - lane.end, rests ? windowAtRest : Infinity));
    const isWritten = to < lane.granted && this.#appendReservation(openSegment(lane), to);
    if (isWritten) lane.reserved = lane.granted = to;
    this.sync(lane);
  }

  /**
   * Creates the lane's first segment, unless nothing is to come yet. The worker may not number anything before
   * numbers are reserved.
   */
  begin(lane: Lane): void {
    try {
      if (lane.window.size > 0 || lane.granted > lane.end) this.#newSegment(lane, lane.end + 1);
    } catch (error) {
      this.#refuse(lane, error);
      if (!this.#reservations.areBound)
        lane.granted = Math.max(lane.granted, lane.end + lane.window.size);
    }
    this.#reservations.publish(lane);
  }

  /**
   * Ends a lane to which nothing more comes and whose `words` are gone. Numbers reserved beyond its end are
   * given back.
   */
  end(lane: Lane): void {
    this.tellGaps(lane);
    this.#appendReservation(openSegment(lane), lane.end);
    this.sync(lane);
    openSegment(lane)?.seal();
  }

  /**
   * Tries a disk that refused records again, where numbers are given out only with room for their records.
   */
  #tryAgain(lane: Lane): void {
    const { monotonicMs } = this.#options;
    const { pause, words } = lane;
    if (!this.#reservations.areBound || pause === undefined || words === undefined) return;
    if (monotonicMs() < pause.untilMs || lane.unsynced.length > 0) return;
    try {
      this.#probe(lane);
      lane.pause = undefined;
    } catch (error) {
      this.#refuse(lane, error);
    }
  }

  #probe(lane: Lane): void {
    const { room } = this.#options;
    const inRoomBytes = Math.min(probeBytes, room.fileBytes / 2);
    try {
      const open = openSegment(lane);
      const isLarge = open?.holds(inRoomBytes) === true;
      const segment = isLarge
        ? open
        : this.#newSegment(lane, nextFirstOf(lane), { bytes: inRoomBytes });
      if (!isLarge) open?.seal();
      segment.probe(segment.isInRoom ? inRoomBytes : probeBytes);
    } catch (error) {
      if (!isDiskFull(error) || !room.fits(inRoomBytes)) throw error;
      openSegment(lane)?.seal();
      this.#newSegment(lane, nextFirstOf(lane), { nowhereElse: true });
    }
  }

  /**
   * Writes gaps that no frame states yet; if they were only in memory, they would be unexplained holes after
   * a crash.
   */
  #tellGaps(lane: Lane, before: number): GapReason | undefined {
    const from = Math.max(lane.written, lane.mark) + 1;
    if (from >= before) return undefined;
    for (const gap of lane.gaps.within(from, before - 1)) {
      const payload = Buffer.from(gapLine(gap));
      const frame = { firstSeq: gap.from, count: gap.to - gap.from + 1, payload };
      const refused = this.#write(lane, frame, gap.to);
      if (refused !== undefined) return refused;
    }
    return undefined;
  }

  /**
   * Appends a reservation, which is durable after the next sync of the segment. Returns whether it was
   * written.
   */
  #appendReservation(open: Segment | undefined, reservedTo: number): boolean {
    this.#isFull = false;
    try {
      open?.append(encodeReservation(reservedTo));
      return open !== undefined;
    } catch (error) {
      this.#isFull = isDiskFull(error);
      if (!this.#isFull || !this.#mayReserveElsewhere(open)) this.#fails(error);
      return false;
    }
  }

  /** A disk on which a segment of the room is full may have room again. */
  #mayReserveElsewhere(open: Segment | undefined): boolean {
    return open?.isInRoom === true || this.#options.room.fits(0);
  }

  /** Reserves numbers by a segment that is begun, in the room that is kept if need be, where there was no room for a reservation. */
  #reserveElsewhere(lane: Lane): void {
    const open = openSegment(lane);
    if (!this.#isFull || !this.#mayReserveElsewhere(open)) return;
    try {
      this.#newSegment(lane, nextFirstOf(lane), { nowhereElse: open?.isInRoom !== true });
      open?.seal();
    } catch (error) {
      this.#fails(error);
    }
  }

  #write(lane: Lane, frame: Frame, lastSeq: number): GapReason | undefined {
    const { monotonicMs, makeRoom, room } = this.#options;
    if (lane.pause !== undefined && monotonicMs() < lane.pause.untilMs) return lane.pause.reason;
    lane.pause = undefined;
    const bytes = encodeFrame(frame);
    if (lane.gaps.all.length >= gapsMax) return lane.gaps.all.at(-1)?.reason;
    if (!makeRoom(bytes.byteLength)) return "spool_full";
    let inRoom = false;
    for (let tries = 1; ; tries++) {
      try {
        this.#segmentFor(lane, frame.firstSeq, bytes.byteLength, inRoom).append(bytes);
        lane.unsynced.push({ firstSeq: frame.firstSeq, lastSeq, frame: bytes });
        lane.written = lastSeq;
        return undefined;
      } catch (error) {
        inRoom = isDiskFull(error) && room.fits(bytes.byteLength);
        if (inRoom) this.#leave(lane);
        const mayTryAgain = isDiskFull(error)
          ? tries < triesMax && (inRoom || makeRoom(undefined))
          : tries === 1;
        if (!mayTryAgain) return this.#refuse(lane, error);
      }
    }
  }

  /** Leaves a segment that a full disk does not let grow. */
  #leave(lane: Lane): void {
    const open = openSegment(lane);
    if (lane.unsynced.length > 0) this.sync(lane);
    open?.seal();
  }

  #segmentFor(lane: Lane, firstSeq: number, bytes: number, inRoom: boolean): Segment {
    const opened = this.#openWithRoom(lane, firstSeq, bytes);
    if (opened !== undefined) return opened;
    if (lane.unsynced.length > 0) this.sync(lane);
    const reopened = this.#openWithRoom(lane, firstSeq, bytes);
    if (reopened !== undefined) return reopened;
    openSegment(lane)?.seal();
    return this.#newSegment(lane, firstSeq, { nowhereElse: inRoom, bytes });
  }

  #openWithRoom(lane: Lane, firstSeq: number, bytes: number): Segment | undefined {
    const open = openSegment(lane);
    if (open === undefined || !open.holds(bytes)) return undefined;
    const isRoomy = open.isInRoom || open.bytes + bytes <= this.#options.segmentBytesMax;
    return isRoomy || firstSeq === open.name.firstSeq ? open : undefined;
  }

  #newSegment(
    lane: Lane,
    firstSeq: number,
    where: Pick<SegmentPlace, "nowhereElse" | "bytes"> = {},
  ): Segment {
    const { files, directory, nextRank, room } = this.#options;
    const { epoch, no: laneNo } = lane.lane;
    const reservedTo = Math.max(lane.granted, lane.end + this.#reservations.ahead(lane));
    const parts = lane.segments.filter(({ name }) => name.firstSeq === firstSeq);
    const part = 1 + Math.max(-1, ...parts.map(({ name }) => name.part));
    const header = { epoch, laneNo, firstSeq, reservedTo };
    const place = { ...where, part, rank: nextRank(), room };
    const segment = Segment.create(files, directory, header, place);
    lane.segments.push(segment);
    lane.reserved = lane.granted = reservedTo;
    return segment;
  }

  #writeAgain(lane: Lane, error: unknown): void {
    this.#fails(error);
    lane.segments.at(-1)?.sealAtSynced();
    const [first] = lane.unsynced;
    if (first === undefined) return;
    try {
      const segment = this.#newSegment(lane, first.firstSeq);
      for (const { frame } of lane.unsynced) segment.append(frame);
      segment.sync();
    } catch (again) {
      const reason = this.#refuse(lane, again);
      lane.segments.at(-1)?.sealAtSynced();
      // Records that were shipped before they were synced may be at central, so no gap may deny them.
      const shipped = Math.max(lane.mark, lane.sentThrough);
      if (shipped >= first.firstSeq) lane.guessedFrom = Math.max(lane.mark + 1, first.firstSeq);
      for (const { firstSeq, lastSeq } of lane.unsynced)
        lane.gaps.add(Math.max(firstSeq, shipped + 1), lastSeq, reason);
      lane.written = first.firstSeq - 1;
    }
  }

  #refuse(lane: Lane, error: unknown): GapReason {
    this.#fails(error);
    const reason = isDiskFull(error) ? "disk_full" : "io_error";
    lane.pause = { untilMs: this.#options.monotonicMs() + pauseMs, reason };
    return reason;
  }

  #fails(error: unknown): void {
    this.#isFailing = true;
    this.#options.onDisk(error);
  }

  #works(): void {
    if (this.#isFailing) this.#options.onDisk(undefined);
    this.#isFailing = false;
  }
}

/**
 * Returns the number through which a lane can be sent. Records that sampling left out just now may be
 * followed by more; they are held back, to be written as one gap.
 */
function sendableOf(lane: Lane): number {
  const isGrowing =
    lane.words !== undefined &&
    lane.written < lane.end &&
    lane.gaps.at(lane.end)?.reason === "sampled";
  return isGrowing ? Math.max(lane.durable, lane.written) : lane.end;
}

/**
 * Returns the first number of a segment that is begun before its first frame comes. Gaps that are only in memory belong to it: after a crash they are reserved numbers
 * that are not there, and no damage.
 */
function nextFirstOf({ written, mark, segments }: Lane): number {
  return Math.max(written + 1, mark + 1, segments.at(-1)?.name.firstSeq ?? 0);
}

function openSegment(lane: Lane): Segment | undefined {
  const last = lane.segments.at(-1);
  return last?.isOpen === true ? last : undefined;
}
