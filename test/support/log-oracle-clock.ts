// Preloaded into a program under test: its wall clock is off by what a file says, in milliseconds, and jumps when the file changes. The monotonic
// clock is not touched, as a step of a real clock would not touch it.

import { readFileSync } from "node:fs";

const path = process.env["ACCEL_TEST_CLOCK"] ?? "";
/** So late a jump may be noticed. */
const readEveryMs = 20;

const realNow = Date.now;
let offsetMs = 0;
let readAtMs = -Infinity;

function shiftedNow(): number {
  const now = performance.now();
  if (now - readAtMs > readEveryMs) {
    readAtMs = now;
    try {
      offsetMs = Number(readFileSync(path, "utf8"));
    } catch {
      // It is being replaced: the next look finds it.
    }
  }
  return realNow() + offsetMs;
}

globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [shiftedNow()] : args, newTarget) as object, // Dates are objects.
  get: (target, key) => (key === "now" ? shiftedNow : Reflect.get(target, key)),
});
