// Reads what of a lane is sent next: the lines after its mark, in order, each number once. Numbers without a
// readable record become gap lines.

import { giveBack } from "../../../base/give-back.ts";
import { scanFrames, segmentHeaderBytes, type Frame } from "../../../core/journal/spool-frame.ts";
import { systemCode } from "../../../core/faults.ts";
import { gapLine, gapReasonOf, type GapReason } from "./gaps.ts";
import type { Lane, ReadPlace } from "./lane.ts";
import type { Segment } from "./segment.ts";
import type { BatchLimits, LaneBatch } from "./spool-messages.ts";

export type DamageSink = (segment: Segment, at: number, bytes: Uint8Array) => void;

/** How often in a row a segment is tried whose bytes cannot be read, before its records become a gap. */
const readFailuresMax = 3;
/**
 * What says that the file is gone or bad. Everything else is of the host, such as a process without a descriptor left (EMFILE): it ends some time, and the
 * records are still there.
 */
const codesOfTheFile: ReadonlySet<string | undefined> = new Set([
  "EIO",
  "ENOENT",
  "EISDIR",
  "EBADMSG", // A checksum of the file system (XFS, ext4).
  "EUCLEAN",
  "ENXIO",
]);
/**
 * The bytes read at once, about those of a batch of 2,000 records. Reading the rest of a segment for each
 * batch would be most of the work.
 */
const pieceBytes = 2 ** 20;

/**
 * Reads a batch within the limits, but at least one line. Returns undefined when there is nothing to send.
 * Gaps found on the way are noted in the lane, which must be durable before the batch is sent
 * (`hasFoundGap`); damaged bytes go to `damaged`. Throws what the disk throws.
 */
export function readBatch(
  lane: Lane,
  limits: BatchLimits,
  damaged: DamageSink,
): LaneBatch | undefined {
  const from = lane.mark + 1;
  if (from > lane.durable) return undefined;
  const batch = new BatchBuilder(lane, from, limits);
  const start = placeOf(lane, from);
  let place = start;
  let isFull = false;
  using pieces = new Pieces();
  for (const found of framesFrom(lane, start, { damaged, pieces })) {
    const { frame } = found;
    if (frame.firstSeq > lane.durable) break;
    isFull = !batch.takeFrame(frame);
    place = isFull ? found.place : { ...found.place, at: found.next };
    if (isFull) break;
  }
  if (!isFull) batch.takeHole(lane.durable, lane.hasUnreadTail ? "unproven" : "corrupt");
  lane.places = new Map([
    ...(start === undefined ? [] : [[from, start] as const]),
    ...(place === undefined ? [] : [[batch.next, place] as const]),
  ]);
  return batch.build();
}

/**
 * Notes the written gaps through a mark of central's for which nothing was read; otherwise they would be
 * counted as committed.
 */
export function noteGaps(lane: Lane, through: number, damaged: DamageSink): void {
  using pieces = new Pieces();
  const place = placeOf(lane, lane.mark + 1);
  for (const { frame } of framesFrom(lane, place, { damaged, pieces })) {
    const { firstSeq, count, payload } = frame;
    if (firstSeq > through) return;
    const reason = gapReasonOf(payload);
    if (reason !== undefined) lane.gaps.add(firstSeq, firstSeq + count - 1, reason);
  }
}

/**
 * Returns where to begin reading for `seq`: a place known before, or the first frame of the segment that
 * holds it.
 */
function placeOf(lane: Lane, seq: number): ReadPlace | undefined {
  const known = lane.places.get(seq);
  if (known !== undefined && lane.segments.includes(known.segment)) return known;
  const segment = lane.segments.findLast(({ name }) => name.firstSeq <= seq) ?? lane.segments[0];
  return segment === undefined ? undefined : { segment, at: segmentHeaderBytes };
}

/** What was read of segments, as long as frames in it are looked at. */
class Pieces implements Disposable {
  readonly #pieces: Uint8Array[] = [];

  add(piece: Uint8Array): void {
    this.#pieces.push(piece);
  }

  [Symbol.dispose](): void {
    for (const piece of this.#pieces) giveBack(piece);
  }
}

type Reading = { readonly damaged: DamageSink; readonly pieces: Pieces };
type Found = { readonly frame: Frame; readonly place: ReadPlace; readonly next: number };

function* framesFrom(
  lane: Lane,
  start: ReadPlace | undefined,
  { damaged, pieces }: Reading,
): Generator<Found> {
  if (start === undefined) return;
  const first = lane.segments.indexOf(start.segment);
  for (const segment of lane.segments.slice(first)) {
    const begin = segment === start.segment ? start.at : segmentHeaderBytes;
    for (const { at, next, frame, bytes } of scanSegment(lane, segment, begin, pieces))
      if (frame === undefined) damaged(segment, at, bytes);
      else if (frame.count > 0) yield { frame, place: { segment, at }, next };
  }
}

type Scan = {
  readonly at: number;
  readonly next: number;
  /** Undefined if the bytes are no frame. */
  readonly frame: Frame | undefined;
  readonly bytes: Uint8Array;
};

/**
 * Scans a segment piece by piece. A frame that a piece cuts off is read again with the next piece; if it is
 * not whole then, it is looked at with all that follows.
 */
function* scanSegment(
  lane: Lane,
  segment: Segment,
  begin: number,
  pieces: Pieces,
): Generator<Scan> {
  let size = pieceBytes;
  for (let from = begin; from < segment.bytes;) {
    const bytes = readSegment(lane, segment, from, from + size);
    pieces.add(bytes);
    const end = from + bytes.byteLength;
    const isLast = bytes.byteLength < size || end >= segment.bytes;
    let next = end;
    for (const found of scanFrames(bytes, 0, { reachesEnd: isLast })) {
      const isCut = found.kind === "bad" && found.next === bytes.byteLength && !isLast;
      if (isCut) next = from + found.at;
      else
        yield {
          at: from + found.at,
          next: from + found.next,
          frame: found.kind === "frame" ? found.frame : undefined,
          bytes: bytes.subarray(found.at, found.next),
        };
    }
    if (isLast) return;
    size = next > from ? pieceBytes : Infinity;
    from = next;
  }
}

function readSegment(lane: Lane, segment: Segment, begin: number, end: number): Uint8Array {
  try {
    const bytes = segment.read(begin, end);
    lane.readFailures = 0;
    return bytes;
  } catch (error) {
    if (!codesOfTheFile.has(systemCode(error))) throw error;
    if (++lane.readFailures < readFailuresMax) throw error;
    return new Uint8Array(0);
  }
}

class BatchBuilder {
  readonly #lane: Lane;
  readonly #limits: BatchLimits;
  readonly #from: number;
  readonly #parts: Uint8Array[] = [];
  #lines = 0;
  #bytes = 0;
  #isGap = false;
  /** The first number not taken yet. */
  next: number;

  constructor(lane: Lane, from: number, limits: BatchLimits) {
    this.#lane = lane;
    this.#limits = limits;
    this.#from = this.next = from;
  }

  /** Takes a frame. Returns false when the batch is full before the end of the frame. */
  takeFrame({ firstSeq, count, payload }: Frame): boolean {
    const last = firstSeq + count - 1;
    if (last < this.next) return true;
    const { gaps } = this.#lane;
    const reason = gapReasonOf(payload);
    if (reason !== undefined) gaps.add(Math.max(firstSeq, this.next), last, reason);
    if (!this.takeHole(firstSeq - 1)) return false;
    if (reason === undefined && firstSeq === this.next && !gaps.touches(firstSeq, last)) {
      if (this.#push(payload, count)) {
        this.next = last + 1;
        return true;
      }
    }
    const lines = reason === undefined ? splitLines(payload) : [];
    return this.#take(last, (seq) => lines[seq - firstSeq]);
  }

  /** Takes numbers through `to` that no frame has, as gaps of `reason`. Returns false when the batch is full. */
  takeHole(to: number, reason: GapReason = "corrupt"): boolean {
    return this.#take(to, () => undefined, reason);
  }

  build(): LaneBatch {
    const body = new Uint8Array(this.#bytes);
    let at = 0;
    for (const part of this.#parts) {
      body.set(part, at);
      at += part.byteLength;
    }
    return {
      firstSeq: this.#from,
      lastSeq: this.next - 1,
      lines: this.#lines,
      isGap: this.#isGap,
      hasMore: this.next <= this.#lane.durable,
      body,
    };
  }

  #take(
    to: number,
    lineOf: (seq: number) => Uint8Array | undefined,
    hole: GapReason = "corrupt",
  ): boolean {
    const { gaps, durable, counted } = this.#lane;
    while (this.next <= to) {
      const gap = gaps.at(this.next);
      const line = gap === undefined ? lineOf(this.next) : undefined;
      if (gap !== undefined) {
        const through = Math.min(gap.to, durable);
        const told = new TextEncoder().encode(gapLine({ ...gap, from: this.next, to: through }));
        if (!this.#push(told, 1)) return false;
        this.#isGap = true;
        this.next = through + 1;
      } else if (line !== undefined) {
        if (!this.#push(line, 1)) return false;
        this.next++;
      } else if (this.next <= counted) {
        gaps.add(this.next, Math.min(to, counted), "released");
      } else {
        gaps.add(this.next, to, hole);
        this.#lane.hasFoundGap = true;
      }
    }
    return true;
  }

  #push(part: Uint8Array, lines: number): boolean {
    const isFirst = this.#lines === 0 && lines === 1;
    const fits =
      this.#lines + lines <= this.#limits.recordsMax &&
      this.#bytes + part.byteLength <= this.#limits.bytesMax;
    if (!fits && !isFirst) return false;
    this.#parts.push(part);
    this.#lines += lines;
    this.#bytes += part.byteLength;
    return true;
  }
}

/** Splits lines; each keeps its line feed. */
function splitLines(payload: Uint8Array): readonly Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let from = 0; from < payload.byteLength;) {
    const feed = payload.indexOf(0x0a, from);
    const to = feed < 0 ? payload.byteLength : feed + 1;
    lines.push(payload.subarray(from, to));
    from = to;
  }
  return lines;
}
