// Messages as notices that PostgreSQL takes, and whole again at the other end.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  asciiJson,
  frameBytesMax,
  framesOf,
  Unframer,
} from "../../../src/central/cluster/frames.ts";

const one = "00112233445566aa";
const two = "ffeeddccbbaa9988";
const anyText = fc.string({ unit: "binary", maxLength: 40 });
const anyMessage = fc
  .record({ text: anyText, times: fc.integer({ min: 0, max: 900 }) })
  .map(({ text, times }) => ({ said: text.repeat(times) }));

test("whatever is said is heard as it was, in its order, in texts that are short enough", () => {
  fc.assert(
    fc.property(fc.array(anyMessage, { maxLength: 8 }), (messages) => {
      const { frames } = framesOf(one, messages.map(asciiJson), 7);
      for (const frame of frames) {
        expect(Buffer.byteLength(frame)).toBeLessThanOrEqual(frameBytesMax);
        expect(frame).toMatch(/^[\0-\x7F]*$/);
      }
      const unframer = new Unframer();
      const heard = frames.flatMap((frame) => unframer.take(frame)?.texts ?? []);
      expect(heard.map((text): unknown => JSON.parse(text))).toEqual(messages);
    }),
  );
});

test("small messages share a notice", () => {
  const texts = Array.from({ length: 400 }, (_, no) => asciiJson({ no }));
  expect(framesOf(one, texts, 0).frames).toHaveLength(1);
  expect(framesOf(one, [], 0)).toEqual({ frames: [], nextNo: 0 });
});

const large = (char: string): string => asciiJson(char.repeat(20_000));
const framesOfLarge = (from: string, char: string, no: number): readonly string[] =>
  framesOf(from, [large(char)], no).frames;

test("parts of two senders do not mix", () => {
  const [a, b] = [framesOfLarge(one, "a", 1), framesOfLarge(two, "b", 1)];
  const unframer = new Unframer();
  const heard = a.flatMap((frame, at) => [frame, b[at] ?? ""]).map((frame) => unframer.take(frame));
  expect(heard.filter((whole) => whole !== undefined)).toEqual([
    { from: one, texts: [large("a")] },
    { from: two, texts: [large("b")] },
  ]);
});

const [first = "", second = "", third = ""] = framesOfLarge(one, "a", 1);
const next = framesOfLarge(one, "b", 2);

test.each<readonly [string, readonly string[], number]>([
  ["a part that is missing", [first, third, ...next], 1],
  ["a beginning that is missing", [second, third, ...next], 1],
  ["an end that is missing", [first, second, ...next], 1],
  ["a part that comes twice", [first, second, second, third], 0],
  ["no message of ours", ["", "m", "m x\n{}", `x ${one}\n{}`, `p ${one} 1 0 0\n`], 0],
  ["more parts than any message has", [`p ${one} 1 0 999999\nx`], 0],
  ["numbers that are none", [`p ${one} a b c\nx`, `p ${one}\nx`], 0],
])("%s makes nothing whole that is not", (_, frames, whole) => {
  const unframer = new Unframer();
  const heard = frames.flatMap((frame) => unframer.take(frame) ?? []);
  expect(heard).toEqual(Array.from({ length: whole }, () => ({ from: one, texts: [large("b")] })));
});

test("what a connection that was lost had begun is forgotten", () => {
  const unframer = new Unframer();
  expect([first, second].map((frame) => unframer.take(frame))).toEqual([undefined, undefined]);
  unframer.clear();
  expect(unframer.take(third)).toBeUndefined();
  expect(unframer.take(first)).toBeUndefined();
  unframer.forget(one);
  expect(unframer.take(second)).toBeUndefined();
});
