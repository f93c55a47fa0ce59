// The pace of a body: only the time in which its visitor is waited for counts against him.

import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { createClock } from "../../../../src/agent/accelerator/clock.ts";
import { BodyPieces, type Bodied } from "../../../../src/agent/accelerator/bodies/body-pieces.ts";

const idleMs = 20_000;

function scene(rateMin = 1_000) {
  const body = new PassThrough();
  const gone = new AbortController();
  const exchange: Bodied = { stop: gone.signal, isReceived: false, promised: undefined };
  let nowMs = 0;
  const clock = { ...createClock(), steadyMs: () => nowMs };
  const options = { bytesMax: 100, pace: { idleMs, rateMin }, clock };
  const pieces = new BodyPieces(exchange, body, options);
  return { body, gone, pieces, pass: (ms: number) => (nowMs += ms) };
}

it("nothing for too long is late", async () => {
  const { pieces, pass } = scene();
  const next = pieces.next();
  pass(idleMs - 1);
  pieces.look();
  pass(1);
  pieces.look();
  await expect(next).rejects.toMatchObject({ kind: "late" });
});

it("a byte now and then is late once all of them are too few for the time", async () => {
  const { body, pieces, pass } = scene(1);
  // A byte each 18 s: after four waits 72 s are over, and 24 s were allowed.
  let next = pieces.next();
  pass(18_000);
  body.write("a");
  expect(String(await next)).toBe("a");
  next = pieces.next();
  pass(2_999);
  pieces.look();
  pass(1);
  pieces.look();
  await expect(next).rejects.toMatchObject({ kind: "late", message: "1 bytes came in 21000 ms" });
});

it("the time in which nobody asks for more does not count", async () => {
  const { body, pieces, pass } = scene();
  body.write("a");
  expect(pieces.next()).toEqual(Buffer.from("a"));
  pass(1_000_000);
  pieces.look();
  const next = pieces.next();
  pass(1_000);
  pieces.look();
  body.end("b");
  expect(String(await next)).toBe("b");
  expect(await pieces.next()).toBeUndefined();
});

it("a visitor who has left is waited for no more, and more than the site takes is never given", async () => {
  const one = scene();
  const next = one.pieces.next();
  one.gone.abort();
  await expect(next).rejects.toMatchObject({ kind: "gone" });
  expect(() => one.pieces.next()).toThrow("the visitor left");
  const other = scene();
  other.body.write("x".repeat(101));
  expect(() => other.pieces.next()).toThrow("may have 100 bytes at most");
});

it("nothing is left on the body by who has read it", async () => {
  const { body, pieces } = scene();
  const next = pieces.next();
  body.end("a");
  await next;
  pieces[Symbol.dispose]();
  expect(body.listenerCount("readable") + body.listenerCount("error")).toBe(0);
});
