// A body sent by its pace: never faster than the rate behind the free bytes, and as fast as it where the visitor keeps up.

import fc from "fast-check";
import { expect, test } from "vitest";
import { pauseMs, pieceOf, startMs, type BytePace } from "../../../src/core/limits/byte-pace.ts";

const paces: fc.Arbitrary<BytePace> = fc.record({
  rateBytesS: fc.oneof(
    fc.integer({ min: 1_024, max: 20_000 }),
    fc.integer({ min: 1_024, max: 2 ** 30 }),
  ),
  afterBytes: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2 ** 20 })),
});

/** Sends a body as Pacer does, to a visitor who takes `takesMs` for each piece; returns when each piece went out, and how large it was. */
function send(pace: BytePace, size: number, takesMs: (piece: number) => number) {
  const pieces: { readonly atMs: number; readonly bytes: number }[] = [];
  let [sent, nowMs] = [0, 0];
  let fromMs: number | undefined;
  while (sent < size) {
    if (sent >= pace.afterBytes) {
      fromMs = startMs(pace, sent, fromMs ?? nowMs, nowMs);
      nowMs += pauseMs(pace, sent, nowMs - fromMs);
    }
    const bytes = Math.min(size - sent, pieceOf(pace, sent));
    pieces.push({ atMs: nowMs, bytes });
    sent += bytes;
    nowMs += takesMs(pieces.length);
  }
  return pieces;
}

/** The most that went out within any second, of what is paced. */
function mostInASecond(pieces: ReturnType<typeof send>, { afterBytes }: BytePace): number {
  let [most, sent] = [0, 0];
  const paced = pieces.filter(({ bytes }) => (sent += bytes) > afterBytes);
  for (const [first, { atMs }] of paced.entries()) {
    const within = paced.slice(first).filter((piece) => piece.atMs < atMs + 1_000);
    most = Math.max(
      most,
      within.reduce((sum, { bytes }) => sum + bytes, 0),
    );
  }
  return most;
}

test("a visitor who keeps up gets the rate, in pieces that are never long in coming", () => {
  fc.assert(
    fc.property(paces, fc.integer({ min: 1, max: 40 }), (pace, pieceCount) => {
      const size = pace.afterBytes + pieceCount * pieceOf(pace, pace.afterBytes);
      const pieces = send(pace, size, () => 0);
      const lastMs = pieces.at(-1)?.atMs ?? 0;
      const paced = size - pace.afterBytes;
      const behindLast = (paced - (pieces.at(-1)?.bytes ?? 0)) / pace.rateBytesS;
      expect(lastMs).toBeCloseTo(behindLast * 1_000, 3);
      for (const [at, { atMs }] of pieces.entries())
        expect(atMs - (pieces[at - 1]?.atMs ?? 0)).toBeLessThanOrEqual(1_001);
      expect(pieces.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(size);
    }),
  );
});

test("a visitor who pauses is sent two seconds' worth at most in a second, and a piece", () => {
  fc.assert(
    fc.property(
      paces,
      fc.array(fc.constantFrom(0, 0, 1, 300, 5_000), { minLength: 1, maxLength: 20 }),
      (pace, takes) => {
        const size = pace.afterBytes + 60 * pieceOf(pace, pace.afterBytes);
        const pieces = send(pace, size, (piece) => takes[piece % takes.length] ?? 0);
        const piece = pieceOf(pace, pace.afterBytes);
        expect(mostInASecond(pieces, pace)).toBeLessThanOrEqual(2 * pace.rateBytesS + piece + 1);
      },
    ),
  );
});
