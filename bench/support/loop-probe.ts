// Loaded into the agent beside its own code (`--import`): in each accelerator worker, how late the loop comes to a timer that is due every 10 ms. Lines of
// `milliseconds since the epoch, lateness in ms` in a file a thread.

import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { isMainThread, threadId, workerData } from "node:worker_threads";

const everyMs = 10;
const linesMax = 50;

const directory = process.env["LOOP_PROBE_DIR"];
// The pool starts accelerator workers with a field of this name; other threads have none.
const data = workerData as { readonly accelerator?: unknown } | null;
if (!isMainThread && directory !== undefined && data?.accelerator !== undefined) {
  const file = join(directory, `${process.pid}-${threadId}.loop`);
  let lines: string[] = [];
  let due = performance.now() + everyMs;
  const look = (): void => {
    const now = performance.now();
    lines.push(`${Math.round(performance.timeOrigin + now)},${(now - due).toFixed(2)}\n`);
    if (lines.length >= linesMax) {
      appendFileSync(file, lines.join(""));
      lines = [];
    }
    due = performance.now() + everyMs;
    setTimeout(look, everyMs).unref();
  };
  setTimeout(look, everyMs).unref();
}
