// Where WebSocket frames end, however the bytes are cut.

import fc from "fast-check";
import { expect, test } from "vitest";
import { closeFrame, FrameEnds } from "../../../../src/agent/accelerator/upgrades/frame-ends.ts";

function frame(length: number, isMasked: boolean, opcode = 2): Buffer {
  const mask = isMasked ? 0x80 : 0;
  const head =
    length < 126
      ? Buffer.from([0x80 | opcode, mask | length])
      : length < 65_536
        ? Buffer.from([0x80 | opcode, mask | 126, length >> 8, length & 0xff])
        : Buffer.from([0x80 | opcode, mask | 127, 0, 0, 0, 0, 0, length >> 16, (length >> 8) & 0xff, length & 0xff]); // prettier-ignore
  return Buffer.concat([head, Buffer.alloc(isMasked ? 4 : 0), Buffer.alloc(length, 0x88)]);
}

const lengths = fc.oneof(fc.nat(200), fc.constantFrom(125, 126, 127, 65_535, 65_536, 70_000));

test("every frame's end is found, and nothing else is taken for one, in pieces of any size", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(lengths, fc.boolean()), { minLength: 1, maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 8 }),
      (wanted, sizes) => {
        const frames = wanted.map(([length, isMasked]) => frame(length, isMasked));
        const ends: number[] = [];
        for (const one of frames) ends.push((ends.at(-1) ?? 0) + one.length);
        const bytes = Buffer.concat(frames);
        const reader = new FrameEnds();
        for (let at = 0, n = 0; at < bytes.length; n++) {
          const piece = bytes.subarray(at, at + (sizes[n % sizes.length] ?? 1));
          const first = ends.find((end) => end > at && end <= at + piece.length);
          expect(reader.take(piece)).toBe(first === undefined ? undefined : first - at);
          at += piece.length;
          expect(reader.isAtEnd).toBe(ends.includes(at));
        }
        expect(reader.isClosed).toBe(false);
      },
    ),
    { numRuns: 300 },
  );
});

test("a Close frame is seen, ours included", () => {
  const reader = new FrameEnds();
  expect(closeFrame(1001)).toEqual(Uint8Array.of(0x88, 2, 3, 0xe9));
  reader.take(frame(10, false, 1));
  expect(reader.isClosed).toBe(false);
  reader.take(closeFrame(1001));
  expect([reader.isClosed, reader.isAtEnd]).toEqual([true, true]);
});
