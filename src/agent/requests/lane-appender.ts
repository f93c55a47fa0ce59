// Writes lanes: frames to the end of the open segment, a new segment when it is full, one fdatasync for a group of them, reservations ahead.
//
// The disk may refuse anything at any time; nothing here throws. What cannot be written becomes a gap with the reason, and for a second nothing more
// is tried. When an fdatasync fails, what was written since the last one is written again into a new file: the kernel may have dropped the
// pages, and another sync of the same file would not tell. While the disk fails numbers are given out without being reserved on it.

import { encodeFrame, encodeReservation, type Frame } from "../../core/spool-frame.ts";
import type { GapReason } from "./gaps.ts";
import type { Lane } from "./lane.ts";
import { Segment } from "./segment.ts";
import { isDiskFull, type SpoolFiles } from "./spool-files.ts";

const pauseMs = 1_000;
/** On a full disk: each one after the first drops the oldest segment before. */
const triesMax = 4;
/** Gaps of one lane that central does not know of yet; beyond it records are dropped as part of the last one. */
const gapsMax = 4_096;

export type AppenderOptions = {
  readonly files: SpoolFiles;
  readonly directory: string;
  readonly segmentBytesMax: number;
  readonly monotonicMs: () => number;
  /** Makes room for so many bytes within the limit, or, with `undefined`, for any on a full disk. */
  readonly makeRoom: (bytes: number | undefined) => boolean;
  readonly nextRank: () => number;
  /** What the disk refused; undefined when it works again. */
  readonly onDisk: (error: unknown) => void;
};

export class LaneAppender {
  readonly #options: AppenderOptions;
  #isFailing = false;

  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  /** The frame's numbers follow the lane's last one. Durable after the next sync. */
  append(lane: Lane, frame: Frame): void {
    const lastSeq = frame.firstSeq + frame.count - 1;
    const refused = this.#write(lane, frame, lastSeq);
    lane.receivedThrough(lastSeq, this.#options.monotonicMs());
    if (refused !== undefined) lane.gaps.add(frame.firstSeq, lastSeq, refused);
  }

  /** Everything received is durable afterwards, or a gap. Tells the worker so, and how far it may number. */
  sync(lane: Lane): void {
    const reservedTo = this.#reserveTo(lane);
    const open = openSegment(lane);
    try {
      const isWritten = reservedTo !== undefined && this.#appendReservation(open, reservedTo);
      if (lane.unsynced.length > 0 && open?.isOpen !== true)
        throw new Error(`a segment of lane ${lane.id} had to be closed before its sync`);
      open?.sync();
      if (isWritten) lane.reserved = reservedTo;
      if (open !== undefined && lane.unsynced.length > 0) this.#works();
    } catch (error) {
      this.#writeAgain(lane, error);
    }
    lane.unsynced = [];
    lane.durable = lane.end;
    lane.granted = Math.max(lane.granted, reservedTo ?? 0);
    publish(lane);
  }

  /** The lane's first segment: before the worker may number anything. */
  begin(lane: Lane): void {
    try {
      this.#newSegment(lane, lane.end + 1);
    } catch (error) {
      this.#refuse(lane, error);
      lane.granted = Math.max(lane.granted, lane.end + lane.window);
    }
    publish(lane);
  }

  /** Nothing more comes, `words` are gone: what is reserved beyond the end is given back. */
  end(lane: Lane): void {
    const open = openSegment(lane);
    this.#appendReservation(open, lane.end);
    this.sync(lane);
    openSegment(lane)?.seal();
  }

  #reserveTo(lane: Lane): number | undefined {
    if (lane.words === undefined) return undefined;
    const low = lane.end + Math.floor((lane.window * 3) / 4);
    return low > lane.reserved ? lane.end + lane.window : undefined;
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
        return undefined;
      } catch (error) {
        if (tries === triesMax || !isDiskFull(error) || !makeRoom(undefined))
          return this.#refuse(lane, error);
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
    const reservedTo = Math.max(lane.granted, lane.end + lane.window);
    const part = lane.segments.filter(({ name }) => name.firstSeq === firstSeq).length;
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
      for (const { firstSeq, lastSeq } of lane.unsynced) lane.gaps.add(firstSeq, lastSeq, reason);
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

function openSegment(lane: Lane): Segment | undefined {
  const last = lane.segments.at(-1);
  return last?.isOpen === true ? last : undefined;
}

function publish(lane: Lane): void {
  if (lane.words === undefined) return;
  lane.words.durable = lane.base + lane.durable;
  lane.words.reserved = lane.base + lane.granted;
}
