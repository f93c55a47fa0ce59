// The bytes of the request-log spool: a segment is a header and frames, little-endian, written only at the end.
//
//   header   magic "accspl01" | epoch (8 bytes) | u32 lane no | u64 first_seq | u64 reserved_to | u32 crc32 of the bytes before      40 bytes
//   frame    u32 length of payload | u32 crc32 of the rest | u64 first_seq | u32 count | payload                                     20 bytes + payload
//     records      payload is NDJSON, `count` lines: first_seq and the numbers that follow
//     gap          payload is the one line {"gap": …}: `count` numbers that were given and are lost
//     reservation  count 0, no payload: numbers below first_seq may have been given out since; the last one counts, it replaces reserved_to
//
// A segment may be written in a file that was full of zeros before; zeros from a frame to the end are nothing. Whatever else a crash or a bad disk leaves, scanning finds
// each whole frame and names the bytes between them. No frame can hide in a payload:
// NDJSON has no zero byte, and the length of every frame ends with one.

import { crc32 } from "node:zlib";

export const segmentHeaderBytes = 40;
export const frameHeaderBytes = 20;
/**
 * The largest payload. A group of records has at most some 0.5 MiB; a frame that claims to be larger is none.
 */
export const payloadBytesMax = 4 * 2 ** 20;
/** The most numbers that one frame can stand for: records are bounded by the payload, gaps only by this. */
export const frameCountMax = 2 ** 32 - 1;

export type SegmentHeader = {
  /** 16 lower-case hex characters. */
  readonly epoch: string;
  readonly laneNo: number;
  readonly firstSeq: number;
  readonly reservedTo: number;
};

export type Frame = {
  readonly firstSeq: number;
  readonly count: number;
  readonly payload: Uint8Array;
};

/** From `at` to before `next` lie the bytes of a frame, or bytes that are none. */
export type Scanned =
  | { readonly kind: "frame"; readonly at: number; readonly next: number; readonly frame: Frame }
  | { readonly kind: "bad"; readonly at: number; readonly next: number };

const magic = new TextEncoder().encode("accspl01");
const headerCrcAt = segmentHeaderBytes - 4;

export function encodeSegmentHeader(header: SegmentHeader): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(segmentHeaderBytes);
  const view = viewOf(bytes);
  bytes.set(magic, 0);
  view.setBigUint64(8, BigInt(`0x${header.epoch}`));
  view.setUint32(16, header.laneNo, true);
  view.setBigUint64(20, BigInt(header.firstSeq), true);
  view.setBigUint64(28, BigInt(header.reservedTo), true);
  view.setUint32(headerCrcAt, crc32(bytes.subarray(0, headerCrcAt)), true);
  return bytes;
}

/** Returns the header, or undefined if the bytes begin with no intact one. */
export function decodeSegmentHeader(bytes: Uint8Array): SegmentHeader | undefined {
  if (bytes.byteLength < segmentHeaderBytes) return undefined;
  const view = viewOf(bytes);
  if (view.getUint32(headerCrcAt, true) !== crc32(bytes.subarray(0, headerCrcAt))) return undefined;
  if (magic.some((byte, at) => bytes[at] !== byte)) return undefined;
  const firstSeq = view.getBigUint64(20, true);
  const reservedTo = view.getBigUint64(28, true);
  if (firstSeq > seqMax || reservedTo > seqMax) return undefined;
  return {
    epoch: view.getBigUint64(8).toString(16).padStart(16, "0"),
    laneNo: view.getUint32(16, true),
    firstSeq: Number(firstSeq),
    reservedTo: Number(reservedTo),
  };
}

const seqMax = BigInt(Number.MAX_SAFE_INTEGER);

/** Throws RangeError for a frame that no reader would accept. */
export function encodeFrame({ firstSeq, count, payload }: Frame): Uint8Array<ArrayBuffer> {
  if (payload.byteLength > payloadBytesMax || count > frameCountMax)
    throw new RangeError(`a frame of ${payload.byteLength} bytes for ${count} numbers`);
  const bytes = new Uint8Array(frameHeaderBytes + payload.byteLength);
  const view = viewOf(bytes);
  view.setUint32(0, payload.byteLength, true);
  view.setBigUint64(8, BigInt(firstSeq), true);
  view.setUint32(16, count, true);
  bytes.set(payload, frameHeaderBytes);
  view.setUint32(4, checksum(bytes), true);
  return bytes;
}

/** Encodes that numbers through `reservedTo` may be given out from now on. */
export function encodeReservation(reservedTo: number): Uint8Array<ArrayBuffer> {
  return encodeFrame({ firstSeq: reservedTo + 1, count: 0, payload: new Uint8Array(0) });
}

/**
 * Returns the frame, whose payload shares the memory of `bytes`, or undefined if no whole frame begins at
 * `at`.
 */
export function decodeFrame(bytes: Uint8Array, at: number): Frame | undefined {
  // The fourth byte alone rules out most bytes of a damaged stretch, so it is checked first.
  if (bytes.byteLength - at < frameHeaderBytes || bytes[at + 3] !== 0) return undefined;
  const view = viewOf(bytes);
  const length = view.getUint32(at, true);
  const end = at + frameHeaderBytes + length;
  if (length > payloadBytesMax || end > bytes.byteLength) return undefined;
  const firstSeq = view.getBigUint64(at + 8, true);
  const count = view.getUint32(at + 16, true);
  if (firstSeq > seqMax || (count === 0) !== (length === 0)) return undefined;
  if (view.getUint32(at + 4, true) !== checksum(bytes.subarray(at, end))) return undefined;
  const payload = bytes.subarray(at + frameHeaderBytes, end);
  return { firstSeq: Number(firstSeq), count, payload };
}

/** Returns the length of `bytes` without the zeros at their end. */
export function lengthWithoutZeros(bytes: Uint8Array): number {
  let length = bytes.byteLength;
  while (length > 0 && bytes[length - 1] === 0) length--;
  return length;
}

/**
 * Yields everything from `at` to the end: whole frames in order, and the bytes before, between and behind
 * them as bad. `reachesEnd`: the bytes reach the end of the segment, so zeros at their end are left out.
 */
export function* scanFrames(
  bytes: Uint8Array,
  at = 0,
  { reachesEnd = false } = {},
): Generator<Scanned> {
  // The zeros at the end of the last frame are the frame's: it begins before them.
  const end = reachesEnd ? lengthWithoutZeros(bytes) : bytes.byteLength;
  let bad: number | undefined;
  while (at < end) {
    const frame = decodeFrame(bytes, at);
    if (frame === undefined) {
      bad ??= at;
      at++;
      continue;
    }
    if (bad !== undefined) yield { kind: "bad", at: bad, next: at };
    bad = undefined;
    const next = at + frameHeaderBytes + frame.payload.byteLength;
    yield { kind: "frame", at, next, frame };
    at = next;
  }
  if (bad !== undefined) yield { kind: "bad", at: bad, next: end };
}

/** Covers the frame without its checksum. */
function checksum(frame: Uint8Array): number {
  return crc32(frame.subarray(8), crc32(frame.subarray(0, 4)));
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
