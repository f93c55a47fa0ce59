// How the process before ended, and when that is an error: rows of data.

import { expect, test } from "vitest";
import {
  endsWarning,
  loggedTime,
  newestEnds,
  uncleanEnds,
  type AgentRun,
  type UncleanEnd,
} from "../../../src/agent/admin/run-ends.ts";
import { endCauses, parseServiceEnds } from "../../../src/base/service-ends.ts";

const now = new Date("2026-01-01T12:00:00.000Z");
const saidAt = new Date("2026-01-01T11:59:59.000Z");
const said = saidAt.getTime() / 1_000;
const run: AgentRun = {
  invocation: "1f",
  boot: "boot 1",
  seen: "2026-01-01T11:59:10.000Z",
  served: true,
  ended: null,
};
const endsOf = (file: string, of: Partial<AgentRun> = {}, boot: string | null = "boot 1") =>
  uncleanEnds({ ...run, ...of }, { said: parseServiceEnds(file), boot, at: now });

test.each([
  [
    "1f watchdog ABRT",
    "watchdog",
    "systemd's watchdog ended it, for systemd had heard nothing from it for a minute: a thread hung, the host stood still, or the unit was masked while it ran",
  ],
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
])("%s\\n is %s", (line, cause, how) => {
  expect(endsOf(`\n${said} ${line}\n`)).toEqual([
    { at: saidAt.toISOString(), cause, how, invocation: "1f" },
  ]);
});

test("a process that noted its end, or that systemd stopped, ended in good order", () => {
  expect(endsOf(`${said} 1f exit-code 1\n`, { ended: run.seen })).toEqual([]);
  expect(endsOf(`${said} 1f success 0\n`)).toEqual([]);
});

test.each<[string, string, Partial<AgentRun>, string | null, string]>([
  ["systemd did not start it", "", { invocation: null }, "boot 1", "unknown"],
  ["nobody saw it", "", {}, "boot 1", "unknown"],
  ["nobody saw it, and it had not served", "", { served: false }, "boot 1", "start"],
  ["a line is not whole", `${said} 1f\n`, {}, "boot 1", "unknown"],
  ["the host was booted since", "", {}, "boot 2", "host"],
  ["the host was booted since, and had not served", "", { served: false }, "boot 2", "host"],
  ["no boot is known", "", { boot: null }, "boot 2", "unknown"],
  ["no boot is known now", "", {}, null, "unknown"],
])("%s", (_what, file, of, boot, cause) => {
  expect(endsOf(file, of, boot)).toMatchObject([
    { at: now.toISOString(), after: run.seen, cause, invocation: null },
  ]);
});

test("a process that fails before it has served is a start that failed, and one that is killed then was killed", () => {
  expect(endsOf(`${said} 1f exit-code 1\n`, { served: false })).toMatchObject([
    { cause: "start", how: "a start failed with exit status 1" },
  ]);
  expect(endsOf(`${said} 1f signal KILL\n`, { served: false })).toMatchObject([
    { cause: "signal" },
  ]);
});

test("another command of the unit that fails or is ended, before there is an agent, is a start that failed", () => {
  for (const line of ["exit-code ", "signal ", "exit-code  more"])
    expect(endsOf(`${said} 2e ${line}\n`, { ended: run.seen })).toMatchObject([
      { cause: "start", how: "a start failed before the agent began" },
    ]);
});

test("each end since the last note counts, with its own time and cause: the process's own, and those of starts behind it that could note nothing", () => {
  const file = `\n${said - 9} 1f signal KILL\n${said - 5} 2e exit-code 2\n${said} 3d watchdog ABRT\n`;
  const at = (ago: number): string => new Date((said - ago) * 1_000).toISOString();
  expect(endsOf(file).map(({ at: when, cause }) => [when, cause])).toEqual([
    [at(9), "signal"],
    [at(5), "start"],
    [at(0), "watchdog"],
  ]);
  // It was stopped in good order, and the starts failed.
  expect(endsOf(file, { ended: run.seen }).map(({ cause }) => cause)).toEqual([
    "start",
    "watchdog",
  ]);
  // The host went down while it ran, and its first start failed.
  expect(endsOf(`${said} 2e exit-code 2\n`, {}, "boot 2").map(({ cause }) => cause)).toEqual([
    "host",
    "start",
  ]);
});

test.each([
  ["exit-code 1", 3, said],
  ["success 0", 2, said - 60],
])(
  "of ends without room before one of %s it is said that there were more, and the last has its own time",
  (last, count, lastSaid) => {
    const file = `${said - 90} 2e exit-code 1\n${said - 60} 3d exit-code 1\n${said} 4c ${last} more\n`;
    const ends = endsOf(file, { ended: run.seen });
    const at = new Date(lastSaid * 1_000).toISOString();
    expect(endsWarning(ends, now)?.text).toBe(
      `the agent failed to start at least ${count} times since ${ends[0]?.at} or before, at ${at} for the last time: a start failed with exit status 1`,
    );
  },
);

const ended = (minutesAgo: number, cause: UncleanEnd["cause"] = "watchdog"): UncleanEnd => ({
  at: new Date(now.getTime() - minutesAgo * 60_000).toISOString(),
  cause,
  how: cause === "watchdog" ? "it hung" : "otherwise",
  invocation: "1f",
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
  ["starts that fail are none", [ended(9, "start"), ended(5, "start"), ended(1, "start")], "info"],
  [
    "nor are they counted among them",
    [ended(9), ended(5, "start"), ended(3, "start"), ended(1)],
    "warning",
  ],
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

test("where they ended otherwise, each way is told with its number, the last first", () => {
  expect(
    endsWarning([ended(30, "exit"), ended(10), ended(5), ended(1, "exit")], now)?.text,
  ).toMatch(/for the last time: otherwise \(2 times\); it hung \(2 times\)$/);
});

test("unlike things are told each by itself: a kill is no start that failed", () => {
  const file = `${said - 3_000} 1f signal KILL\n${said - 60} 2e exit-code 1\n${said} 3d exit-code 1 more\n`;
  const at = (ago: number): string => new Date((said - ago) * 1_000).toISOString();
  expect(endsWarning(endsOf(file), now)?.text).toBe(
    `the agent ended without being told to once, at ${at(3_000)} (it was ended by SIGKILL, by hand or by the kernel for want of memory), and failed to start at least 2 times since ${at(60)} or before, at ${at(0)} for the last time (a start failed with exit status 1)`,
  );
  expect(endsWarning([ended(9, "host"), ended(5), ended(3), ended(1, "exit")], now)?.text).toMatch(
    /^the agent went down with its host once, at \S+ \(otherwise\), and ended without being told to 3 times since \S+, at \S+ for the last time \(otherwise \(once\); it hung \(2 times\)\)$/,
  );
});

test("many starts that fail hide no crash: of each kind the newest are kept, and it is said of which there were more", () => {
  const ends = [
    ended(50),
    ...Array.from({ length: 9 }, (_, at) => ended(40 - at, "start")),
    ended(2),
  ];
  expect(newestEnds(ends, 9)).toEqual(ends);
  expect(endsWarning(newestEnds(ends, 5), now)?.text).toMatch(
    /^the agent ended without being told to 2 times since 2026-01-01T11:10:\S+, .*, and failed to start at least 5 times since 2026-01-01T11:24:\S+ or before/,
  );
});

test("the warning is in force since the first end that it tells of", () => {
  expect(endsWarning([ended(90), ended(10), ended(5)], now)?.began).toEqual({
    since: "2026-01-01T11:50:00.000Z",
    notBefore: "2026-01-01T11:50:00.000Z",
  });
});

test("an end that nobody saw, as that of a unit that was masked, is given no time but what it lies between", () => {
  const [unseen] = endsOf("");
  if (unseen === undefined) throw new TypeError("no end");
  const [from, to] = [run.seen, now.toISOString()];
  expect(endsWarning([unseen], now)).toMatchObject({
    text: `the agent ended without being told to between ${from} and ${to}: it was killed, or failed`,
    began: { since: to, notBefore: from },
  });
  expect(endsWarning([ended(5), unseen], now)?.text).toMatch(
    /^the agent ended without being told to 2 times since 2026-01-01T11:55:00\.000Z, between 2026-01-01T11:59:10\.000Z and 2026-01-01T12:00:00\.000Z for the last time: /,
  );
  expect(endsWarning([unseen, ended(0)], now)?.text).toMatch(
    /^the agent ended without being told to 2 times since 2026-01-01T12:00:00\.000Z or before, at /,
  );
  expect(loggedTime(unseen)).toEqual({ after: from, before: to });
  expect(loggedTime(ended(5))).toEqual({ at: "2026-01-01T11:55:00.000Z" });
  // As a release before noted it.
  const { after: _, ...old } = unseen;
  expect(endsWarning([old], now)).toMatchObject({
    text: `the agent ended without being told to some time before ${to}: it was killed, or failed`,
    began: { since: to, notBefore: null },
  });
  expect(loggedTime(old)).toEqual({ before: to });
  const [host] = endsOf("", {}, "boot 2");
  expect(host && endsWarning([host], now)?.text).toBe(
    `the agent went down with its host between ${from} and ${to}: the host went down while it ran`,
  );
});

test("every cause is told in the help of the metric", async () => {
  const { runMetrics } = await import("../../../src/agent/admin/run-book.ts");
  for (const cause of endCauses)
    expect(runMetrics.accel_agent_unclean_ends_total.help).toContain(cause);
});
