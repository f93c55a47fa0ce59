// The signal that the unit sends ahead of a stop, and what systemd is told to do for it.

import { EventEmitter, once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LastStop } from "../../src/base/last-stop.ts";

test("nothing was told, then it was, and afterwards nobody listens", () => {
  const source = new EventEmitter();
  const last = new LastStop(source);
  expect(last.isTold).toBe(false);
  source.emit("SIGWINCH");
  expect(last.isTold).toBe(true);
  last[Symbol.dispose]();
  expect(source.listenerCount("SIGWINCH")).toBe(0);
});

test("a real signal is heard", async () => {
  using last = new LastStop(process);
  const heard = once(process, "SIGWINCH");
  process.kill(process.pid, "SIGWINCH");
  await heard;
  expect(last.isTold).toBe(true);
});

test("the unit sends it where its job is a stop", () => {
  const unit = readFileSync(join(import.meta.dirname, "../../systemd/accel-agent.service"), "utf8");
  const [line = ""] = unit.match(/^ExecStop=.*$/m) ?? [];
  expect(line).toContain('*" stop "*) systemctl kill --signal=WINCH %n');
});
