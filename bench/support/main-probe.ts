// Loaded into a program beside its own code (`--import`): how late the loop of its main thread comes to a timer that is due every 5 ms, in milliseconds, a
// line each, in the file that MAIN_PROBE_FILE names.

import { appendFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const everyMs = 5;
const linesMax = 50;

const file = process.env["MAIN_PROBE_FILE"];
if (isMainThread && file !== undefined) {
  let lines: string[] = [];
  let due = performance.now() + everyMs;
  const look = (): void => {
    const now = performance.now();
    lines.push(`${(now - due).toFixed(2)}\n`);
    if (lines.length >= linesMax) {
      appendFileSync(file, lines.join(""));
      lines = [];
    }
    due = performance.now() + everyMs;
    setTimeout(look, everyMs).unref();
  };
  setTimeout(look, everyMs).unref();
}
