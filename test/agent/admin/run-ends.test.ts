// How the process before ended, and when that is an error: rows of data.

import { expect, test } from "vitest";
import {
  endCauses,
  endsWarning,
  parseServiceEnd,
  uncleanEnd,
  type AgentRun,
  type UncleanEnd,
} from "../../../src/agent/admin/run-ends.ts";

const now = new Date("2026-01-01T12:00:00.000Z");
const saidAt = new Date("2026-01-01T11:59:59.500Z");
const run: AgentRun = {
  invocation: "1f",
  boot: "boot 1",
  seen: "2026-01-01T11:59:10.000Z",
  ended: null,
};
const endOf = (file: string, of: Partial<AgentRun> = {}, boot: string | null = "boot 1") =>
  uncleanEnd({ ...run, ...of }, { said: parseServiceEnd(file, saidAt), boot, at: now });

test.each([
  ["1f watchdog ABRT", "watchdog", "systemd's watchdog ended it, because it made no progress"],
  [
    "1f signal KILL",
    "signal",
    "it was ended by SIGKILL, by hand or by the kernel for want of memory",
  ],
  ["1f core-dump SEGV", "signal", "it was ended by SIGSEGV"],
  ["1f exit-code 7", "exit", "it failed with exit status 7"],
  ["1f oom-kill KILL", "memory", "the kernel ended it for want of memory"],
  ["1f timeout KILL", "timeout", "systemd ended it, because a start or a stop took too long"],
  ["1f resources", "unknown", "systemd calls the result resources"],
])("%s\\n is %s", (file, cause, how) => {
  expect(endOf(`${file}\n`)).toEqual({ at: saidAt.toISOString(), cause, how });
});

test("a process that noted its end, or that systemd stopped, ended in good order", () => {
  expect(endOf("1f exit-code 1", { ended: run.seen })).toBeUndefined();
  expect(endOf("1f success 0")).toBeUndefined();
});

test.each<[string, string, Partial<AgentRun>, string | null, string]>([
  ["systemd saw another end", "2e watchdog ABRT", {}, "boot 1", "unknown"],
  ["systemd did not start it", " signal KILL", { invocation: null }, "boot 1", "unknown"],
  ["nobody saw it", "", {}, "boot 1", "unknown"],
  ["the host was booted since", "", {}, "boot 2", "host"],
  ["the host was booted since, and the file is of before", "2e success 0", {}, "boot 2", "host"],
  ["no boot is known", "", { boot: null }, "boot 2", "unknown"],
  ["no boot is known now", "", {}, null, "unknown"],
])("%s", (_what, file, of, boot, cause) => {
  expect(endOf(file, of, boot)).toMatchObject({ at: now.toISOString(), cause });
});

const ended = (minutesAgo: number, cause: UncleanEnd["cause"] = "watchdog"): UncleanEnd => ({
  at: new Date(now.getTime() - minutesAgo * 60_000).toISOString(),
  cause,
  how: "it hung",
});

test.each<[string, readonly UncleanEnd[], string | undefined]>([
  ["none", [], undefined],
  ["one, long ago", [ended(61)], undefined],
  ["one", [ended(59)], "warning"],
  ["two within a quarter of an hour", [ended(14), ended(1)], "warning"],
  ["three within a quarter of an hour", [ended(15), ended(9), ended(1)], "error"],
  ["three within longer", [ended(16), ended(9), ended(1)], "warning"],
  [
    "a host that goes down is no crash",
    [ended(9, "host"), ended(5, "host"), ended(1, "host")],
    "info",
  ],
  ["nor is it counted among them", [ended(9), ended(5, "host"), ended(1)], "warning"],
])("%s: %s", (_what, ends, severity) => {
  expect(endsWarning(ends, now)?.severity).toBe(severity);
});

test("the warning says when, how often and how", () => {
  expect(endsWarning([ended(5)], now)?.text).toBe(
    "the agent ended without being told to at 2026-01-01T11:55:00.000Z: it hung",
  );
  expect(endsWarning([ended(90), ended(10), ended(5)], now)?.text).toBe(
    "the agent ended without being told to 2 times since 2026-01-01T11:50:00.000Z, at 2026-01-01T11:55:00.000Z for the last time: it hung",
  );
});

test("the warning is in force since the first end that it tells of", () => {
  expect(endsWarning([ended(90), ended(10), ended(5)], now)?.at).toBe("2026-01-01T11:50:00.000Z");
});

test("every cause is told in the help of the metric", async () => {
  const { runMetrics } = await import("../../../src/agent/admin/run-book.ts");
  for (const cause of endCauses)
    expect(runMetrics.accel_agent_unclean_ends_total.help).toContain(cause);
});
