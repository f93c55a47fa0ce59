// Writes lanes: frames to the end of the open segment, a new segment when it is full, one fdatasync for a group of them, reservations ahead.
//
// The disk may refuse anything at any time; nothing here throws. What cannot be written becomes a gap with the reason, and for a second nothing more
// is tried. When an fdatasync fails, what was written since the last one is written again into a new file: the kernel may have dropped the
// pages, and another sync of the same file would not tell. While the disk fails numbers are given out without being reserved on it; but where
// requests wait for room none is given out then, and a second later the disk is asked again.

import { encodeFrame, encodeReservation, type Frame } from "../../../core/journal/spool-frame.ts";
import { gapLine, type GapReason } from "./gaps.ts";
import type { Lane } from "./lane.ts";
import type { Reservations } from "../worker/reservations.ts";
import { Segment } from "./segment.ts";
import { isDiskFull, type SpoolFiles } from "./spool-files.ts";

const pauseMs = 1_000;
/**
 * The most tries to write. On a full disk each one after the first drops the oldest segment before it. After
 * any other failure one more try is made, for it may have been one of many.
 */
const triesMax = 4;
/** Gaps of one lane that central does not know of yet; beyond it records are dropped as part of the last one. */
const gapsMax = 4_096;
/** More than a worker may have numbered at any time: 256 records of 1 KiB. */
const probeBytes = 256 * 2 ** 10;

export type AppenderOptions = {
  readonly files: SpoolFiles;
  readonly directory: string;
  readonly segmentBytesMax: number;
  readonly monotonicMs: () => number;
  /** Makes room for so many bytes within the limit, or, with `undefined`, for any on a full disk. */
  readonly makeRoom: (bytes: number | undefined) => boolean;
  readonly reservations: Reservations;
  readonly nextRank: () => number;
  /** Called with what the disk refused, and with undefined when it works again. */
  readonly onDisk: (error: unknown) => void;
};

export class LaneAppender {
  readonly #options: AppenderOptions;
  readonly #reservations: Reservations;
  #isFailing = false;

  constructor(options: AppenderOptions) {
    this.#options = options;
    this.#reservations = options.reservations;
  }

  /** The frame's numbers follow the lane's last one. Durable after the next sync. */
  append(lane: Lane, frame: Frame): void {
    const lastSeq = frame.firstSeq + frame.count - 1;
    const refused = this.#tellGaps(lane, frame.firstSeq) ?? this.#write(lane, frame, lastSeq);
    lane.receivedThrough(lastSeq, this.#options.monotonicMs());
    if (refused !== undefined) lane.gaps.add(frame.firstSeq, lastSeq, refused);
  }

  /** The lane's next `count` records are dropped. Written as one gap with its neighbours, before the next frame. */
  skip(lane: Lane, count: number, reason: GapReason): void {
    const from = lane.end + 1;
    lane.receivedThrough(lane.end + count, this.#options.monotonicMs());
    lane.gaps.add(from, lane.end, reason);
  }

  /** Writes the lane's gaps. Nothing of the lane is only in memory afterwards, if the disk allows. */
  tellGaps(lane: Lane): void {
    this.#tellGaps(lane, lane.end + 1);
  }

  /** Written is as good as synced, until a reservation is due. */
  publish(lane: Lane): void {
    const isLost = lane.unsynced.length > 0 && openSegment(lane) === undefined;
    if (isLost || this.#reservations.dueTo(lane) !== undefined) {
      this.sync(lane);
      return;
    }
    lane.durable = sendableOf(lane);
    this.#reservations.publish(lane);
  }

  /** Everything received is durable afterwards, or a gap. Tells the worker so, and how far it may number. */
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
    lane.unsynced = [];
    lane.durable = sendableOf(lane);
    if (!this.#reservations.areBound) lane.granted = Math.max(lane.granted, reservedTo ?? 0);
    this.#reservations.publish(lane);
  }

  /** The worker gives back what is reserved beyond `through`. */
  release(lane: Lane, through: number): void {
    lane.window.rest();
    const to = Math.max(through, lane.end + this.#reservations.ahead(lane));
    const isWritten = to < lane.granted && this.#appendReservation(openSegment(lane), to);
    if (isWritten) lane.reserved = lane.granted = to;
    this.sync(lane);
  }

  /** The lane's first segment: before the worker may number anything. */
  begin(lane: Lane): void {
    try {
      this.#newSegment(lane, lane.end + 1);
    } catch (error) {
      this.#refuse(lane, error);
      if (!this.#reservations.areBound)
        lane.granted = Math.max(lane.granted, lane.end + lane.window.size);
    }
    this.#reservations.publish(lane);
  }

  /**
   * Ends a lane from which nothing more comes and whose `words` are gone: what is reserved beyond its end is
   * given back.
   */
  end(lane: Lane): void {
    this.tellGaps(lane);
    this.#appendReservation(openSegment(lane), lane.end);
    this.sync(lane);
    openSegment(lane)?.seal();
  }

  /**
   * Asks a disk that refused records whether it takes others, where numbers are given out only with room for
   * their records.
   */
  #tryAgain(lane: Lane): void {
    const { monotonicMs } = this.#options;
    const { pause, words } = lane;
    if (!this.#reservations.areBound || pause === undefined || words === undefined) return;
    if (monotonicMs() < pause.untilMs || lane.unsynced.length > 0) return;
    try {
      const segment = openSegment(lane) ?? this.#newSegment(lane, lane.end + 1);
      segment.probe(probeBytes);
      lane.pause = undefined;
    } catch (error) {
      this.#refuse(lane, error);
    }
  }

  /** Gaps that no frame tells of yet: only in memory they would be holes after a crash. */
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

  /** Durable after the next sync of the segment. */
  #appendReservation(open: Segment | undefined, reservedTo: number): boolean {
    try {
      open?.append(encodeReservation(reservedTo));
      return open !== undefined;
    } catch (error) {
      this.#fails(error);
      return false;
    }
  }

  #write(lane: Lane, frame: Frame, lastSeq: number): GapReason | undefined {
    const { monotonicMs, makeRoom } = this.#options;
    if (lane.pause !== undefined && monotonicMs() < lane.pause.untilMs) return lane.pause.reason;
    lane.pause = undefined;
    const bytes = encodeFrame(frame);
    if (lane.gaps.all.length >= gapsMax) return lane.gaps.all.at(-1)?.reason;
    if (!makeRoom(bytes.byteLength)) return "spool_full";
    for (let tries = 1; ; tries++) {
      try {
        this.#segmentFor(lane, frame.firstSeq, bytes.byteLength).append(bytes);
        lane.unsynced.push({ firstSeq: frame.firstSeq, lastSeq, frame: bytes });
        lane.written = lastSeq;
        return undefined;
      } catch (error) {
        const mayTryAgain = isDiskFull(error)
          ? tries < triesMax && makeRoom(undefined)
          : tries === 1;
        if (!mayTryAgain) return this.#refuse(lane, error);
      }
    }
  }

  #segmentFor(lane: Lane, firstSeq: number, bytes: number): Segment {
    const opened = this.#openWithRoom(lane, firstSeq, bytes);
    if (opened !== undefined) return opened;
    if (lane.unsynced.length > 0) this.sync(lane);
    const reopened = this.#openWithRoom(lane, firstSeq, bytes);
    if (reopened !== undefined) return reopened;
    openSegment(lane)?.seal();
    return this.#newSegment(lane, firstSeq);
  }

  #openWithRoom(lane: Lane, firstSeq: number, bytes: number): Segment | undefined {
    const open = openSegment(lane);
    if (open === undefined || firstSeq === open.name.firstSeq) return open;
    return open.bytes + bytes <= this.#options.segmentBytesMax ? open : undefined;
  }

  #newSegment(lane: Lane, firstSeq: number): Segment {
    const { files, directory, nextRank } = this.#options;
    const { epoch, no: laneNo } = lane.lane;
    const reservedTo = Math.max(lane.granted, lane.end + this.#reservations.ahead(lane));
    const parts = lane.segments.filter(({ name }) => name.firstSeq === firstSeq);
    const part = 1 + Math.max(-1, ...parts.map(({ name }) => name.part));
    const header = { epoch, laneNo, firstSeq, reservedTo };
    const segment = Segment.create(files, directory, header, { part, rank: nextRank() });
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
      // What was shipped before it was synced may be at central: no gap may tell otherwise.
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

/** Through here records are written, or gaps: samples that were left out just now may be followed by more, and are written as one. */
function sendableOf(lane: Lane): number {
  const isGrowing =
    lane.words !== undefined &&
    lane.written < lane.end &&
    lane.gaps.at(lane.end)?.reason === "sampled";
  return isGrowing ? Math.max(lane.durable, lane.written) : lane.end;
}

function openSegment(lane: Lane): Segment | undefined {
  const last = lane.segments.at(-1);
  return last?.isOpen === true ? last : undefined;
}
