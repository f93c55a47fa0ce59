// The spool's bytes: what was written is read back; cut or damaged anywhere, every frame that is still whole is found and no other.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decodeFrame,
  decodeSegmentHeader,
  encodeFrame,
  encodeReservation,
  encodeSegmentHeader,
  frameHeaderBytes,
  payloadBytesMax,
  scanFrames,
  segmentHeaderBytes,
  type Frame,
} from "../../../src/core/journal/spool-frame.ts";

const text = new TextEncoder();
const seq = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const header = fc.record({
  epoch: fc.stringMatching(/^[0-9a-f]{16}$/),
  laneNo: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  firstSeq: seq,
  reservedTo: seq,
});
const frame: fc.Arbitrary<Frame> = fc.oneof(
  fc.record({
    firstSeq: seq,
    count: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
    payload: fc
      .array(fc.json({ maxDepth: 1 }), { minLength: 1, maxLength: 4 })
      .map((lines) => text.encode(lines.map((line) => `${line}\n`).join(""))),
  }),
  seq.map((firstSeq) => ({ firstSeq, count: 0, payload: new Uint8Array(0) })),
);

function joined(frames: readonly Frame[]): { bytes: Uint8Array; ends: readonly number[] } {
  const parts = frames.map(encodeFrame);
  let end = 0;
  const ends = parts.map((part) => (end += part.byteLength));
  return { bytes: Buffer.concat(parts), ends };
}

const framesOf = (bytes: Uint8Array): readonly Frame[] =>
  [...scanFrames(bytes)].flatMap((found) =>
    found.kind === "frame"
      ? [{ ...found.frame, payload: Uint8Array.from(found.frame.payload) }]
      : [],
  );

describe("header", () => {
  test("is read as it was written", () => {
    fc.assert(
      fc.property(header, (value) => {
        const bytes = encodeSegmentHeader(value);
        expect(bytes.byteLength).toBe(segmentHeaderBytes);
        expect(decodeSegmentHeader(bytes)).toEqual(value);
      }),
    );
  });

  test("any bit turned, any byte missing: no header", () => {
    const bytes = encodeSegmentHeader({
      epoch: "0123456789abcdef",
      laneNo: 3,
      firstSeq: 1,
      reservedTo: 4096,
    });
    for (let bit = 0; bit < segmentHeaderBytes * 8; bit++) {
      const damaged = Uint8Array.from(bytes);
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(decodeSegmentHeader(damaged), `bit ${bit}`).toBeUndefined();
    }
    expect(decodeSegmentHeader(bytes.subarray(0, -1))).toBeUndefined();
  });
});

describe("frames", () => {
  test("are read as they were written, one behind the other", () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 6 }), (frames) => {
        expect(framesOf(joined(frames).bytes)).toEqual(frames);
      }),
    );
  });

  test("cut at any byte: the whole ones before the cut, the rest is one bad tail", () => {
    fc.assert(
      fc.property(fc.array(frame, { minLength: 1, maxLength: 4 }), (frames) => {
        const { bytes, ends } = joined(frames);
        for (let cut = 0; cut <= bytes.byteLength; cut++) {
          const found = [...scanFrames(bytes.subarray(0, cut))];
          const whole = ends.filter((end) => end <= cut).length;
          expect(found.filter(({ kind }) => kind === "frame")).toHaveLength(whole);
          const good = ends[whole - 1] ?? 0;
          const tail = found.filter(({ kind }) => kind === "bad");
          expect(tail).toEqual(cut === good ? [] : [{ kind: "bad", at: good, next: cut }]);
        }
      }),
      { numRuns: 30 },
    );
  });

  test("one damaged: all others are found, its bytes are named", () => {
    fc.assert(
      fc.property(
        fc.array(frame, { minLength: 1, maxLength: 5 }),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        (frames, where, flip) => {
          const { bytes, ends } = joined(frames);
          const at = where % bytes.byteLength;
          bytes[at] = (bytes[at] ?? 0) ^ flip;
          const hit = ends.findIndex((end) => at < end);
          expect(framesOf(bytes)).toEqual(frames.filter((_, i) => i !== hit));
          expect([...scanFrames(bytes)].filter(({ kind }) => kind === "bad")).toEqual([
            { kind: "bad", at: ends[hit - 1] ?? 0, next: ends[hit] },
          ]);
        },
      ),
    );
  });

  test("zeros, as a file system leaves them after a power loss, are no frames", () => {
    expect([...scanFrames(new Uint8Array(100))]).toEqual([{ kind: "bad", at: 0, next: 100 }]);
  });

  test("a reservation names the number behind the last reserved", () => {
    const bytes = encodeReservation(4096);
    expect(bytes.byteLength).toBe(frameHeaderBytes);
    expect(decodeFrame(bytes, 0)).toMatchObject({ firstSeq: 4097, count: 0 });
  });

  test("what no reader would accept is not written", () => {
    const payload = new Uint8Array(payloadBytesMax + 1);
    expect(() => encodeFrame({ firstSeq: 1, count: 1, payload })).toThrow(RangeError);
  });
});
