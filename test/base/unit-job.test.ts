// The unit's job as systemctl(1) lists it, and the unit by the control group of its process.

import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { isStop, unitJob, unitOfCgroup } from "../../src/base/unit-job.ts";
import { tempDir } from "../support/temp-dir.ts";

const unit = "accel-agent.service";

afterEach(() => {
  vi.unstubAllEnvs();
});

test.each([
  ["0::/system.slice/accel-agent.service\n", unit],
  [
    "0::/system.slice/system-accel\\x2dagent.slice/accel-agent@two.service\n",
    "accel-agent@two.service",
  ],
  ["4:memory:/\n1:name=systemd:/system.slice/accel-agent.service\n0::/\n", unit],
  ["0::/machine.slice/x.service/payload/system.slice/accel-agent.service\n", unit],
  ["0::/system.slice/accel-agent.service/a:b\n", unit],
  ["0::/\n", undefined],
  ["0::/user.slice/user-0.slice/session-1.scope\n", undefined],
  ["", undefined],
])("the unit of %j", (text, found) => {
  expect(unitOfCgroup(text)).toBe(found);
});

test.each([
  ["  7 accel-agent.service stop running\n", true],
  ["7 accel-agent.service stop waiting", true],
  ["7 accel-agent.service restart running\n", false],
  ["7 accel-agent.service start waiting\n", false],
  ["6 accel-agent@two.service stop running\n7 accel-agent.service restart running\n", false],
  ["6 accel-central.service stop running\n", false],
  ["", false],
])("a stop in %j: %s", (rows, expected) => {
  expect(isStop(rows, unit)).toBe(expected);
});

/** Puts a systemctl(1) of one line of shell in place of the host's. */
function useSystemctl(dir: string, line: string): void {
  const program = join(dir, "systemctl");
  writeFileSync(program, `#!/bin/sh\n${line}\n`);
  chmodSync(program, 0o755);
  vi.stubEnv("PATH", `${dir}:${process.env["PATH"] ?? ""}`);
}

test.each([
  ["it lists a stop", 'for unit; do :; done; echo "7 $unit stop running"', { kind: "stop" }],
  ["it lists a restart", 'for unit; do :; done; echo "7 $unit restart running"', { kind: "other" }],
  ["it lists nothing", "exit 0", { kind: "other" }],
  [
    "it reaches nobody",
    "echo Failed to connect to bus >&2; exit 1",
    { kind: "unknown", reason: expect.stringContaining("Failed to connect to bus") },
  ],
])("systemctl is asked: %s", async (_, line, expected) => {
  using dir = tempDir();
  useSystemctl(dir.path, line);
  expect(await unitJob(unit)).toEqual(expected);
});
