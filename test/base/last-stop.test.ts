// The signal that the unit sends ahead of a stop, and what systemd is told to do for it.

import { EventEmitter, once } from "node:events";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isUnitMasked, LastStop } from "../../src/base/last-stop.ts";
import { tempDir } from "../support/temp-dir.ts";

test("nothing was told, then it was, and afterwards nobody listens", () => {
  const source = new EventEmitter();
  const last = new LastStop(source);
  expect(last.isKnown).toBe(false);
  source.emit("SIGWINCH");
  expect(last.isKnown).toBe(true);
  last[Symbol.dispose]();
  expect(source.listenerCount("SIGWINCH")).toBe(0);
});

test("a real signal is heard", async () => {
  using last = new LastStop(process);
  const heard = once(process, "SIGWINCH");
  process.kill(process.pid, "SIGWINCH");
  await heard;
  expect(last.isKnown).toBe(true);
});

test("nothing is started behind the stop of a unit that is masked, which is sent nothing; asked at the stop, for it may come while the unit runs", () => {
  using dir = tempDir();
  const [first, second] = [join(dir.path, "etc"), join(dir.path, "run")];
  for (const path of [first, second]) mkdirSync(path);
  const isMasked = (unit: string): boolean => isUnitMasked(unit, [first, second]);
  using last = new LastStop(new EventEmitter(), () => isMasked("accel-agent.service"));
  expect(last.isKnown).toBe(false);
  symlinkSync("/dev/null", join(second, "accel-agent.service"));
  expect(last.isKnown).toBe(true);
  // A file of the operator's goes before, as a link to one does.
  writeFileSync(join(first, "accel-agent.service"), "[Unit]\n");
  expect(last.isKnown).toBe(false);
  writeFileSync(join(first, "accel-agent.service"), "");
  expect(last.isKnown).toBe(true);
  rmSync(join(first, "accel-agent.service"));
  symlinkSync("/srv/accel-agent.service", join(first, "accel-agent.service"));
  expect(last.isKnown).toBe(false);

  expect(isMasked("accel-agent@shop.service")).toBe(false);
  symlinkSync("/dev/null", join(first, "accel-agent@.service"));
  expect(isMasked("accel-agent@shop.service")).toBe(true);
  symlinkSync("/srv/own.service", join(second, "accel-agent@shop.service"));
  expect(isMasked("accel-agent@shop.service")).toBe(false);
});

test("the unit sends it where its job is a stop", () => {
  const unit = readFileSync(join(import.meta.dirname, "../../systemd/accel-agent.service"), "utf8");
  const [line = ""] = unit.match(/^ExecStop=.*$/m) ?? [];
  expect(line).toContain('*" stop "*) systemctl kill --signal=WINCH %n');
});
