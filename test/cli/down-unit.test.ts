// What `status` says of a unit that is not up: rows of what systemd 252 showed of such units.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { controlFault } from "../../src/base/control-socket.ts";
import { downUnit, faultOfCentral, faultOfUnit, troubleOfUnit } from "../../src/cli/down-unit.ts";
import { centralProgram, placeOf } from "../../src/base/instance.ts";
import { AccelError } from "../../src/core/faults.ts";
import { tempDir } from "../support/temp-dir.ts";

const now = new Date(1_796_054_885_000);
const lines = (of: Readonly<Record<string, string | number>>): string =>
  Object.entries(of)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
const between = {
  LoadState: "loaded",
  ActiveState: "activating",
  Result: "exit-code",
  ExecMainCode: 1,
  ExecMainStatus: 2,
  ExecMainExitTimestamp: "@1796054882",
  NRestarts: 6,
  ActiveEnterTimestamp: "",
  ActiveExitTimestamp: "",
  InactiveEnterTimestamp: "@1796054882",
};
const starting = {
  ...between,
  Result: "success",
  ExecMainCode: 0,
  ExecMainStatus: 0,
  ExecMainExitTimestamp: "",
};
const served = { ActiveEnterTimestamp: "@1796054000", ActiveExitTimestamp: "@1796054824" };
/** As systemd shows a unit that it does not have, and one that is masked. */
const gone = { ...starting, ActiveState: "inactive", NRestarts: 0, InactiveEnterTimestamp: "" };
const killed = { Result: "signal", ExecMainCode: 2, ExecMainStatus: 9 };
const before = { ExecMainCode: 0, ExecMainStatus: 0, ExecMainExitTimestamp: "" };

test.each<[string, Readonly<Record<string, string | number>>, string, string | undefined]>([
  [
    "between two starts",
    between,
    "",
    "has failed to start 7 times, at 2026-11-30T16:08:02Z (3 s ago) for the last time: it failed with exit status 2",
  ],
  [
    "behind the first",
    { ...between, NRestarts: 0 },
    "",
    "has failed to start at 2026-11-30T16:08:02Z (3 s ago): it failed with exit status 2",
  ],
  [
    "before the agent began",
    { ...between, ...before },
    "",
    "has failed to start 7 times, at 2026-11-30T16:08:02Z (3 s ago) for the last time: a start failed before the agent began",
  ],
  [
    "while another start is under way",
    starting,
    "\n1796054880 1e exit-code 2\n1796054881 1f exit-code 1\n",
    "has failed to start 6 times, at 2026-11-30T16:08:01Z (4 s ago) for the last time: it failed with exit status 1; a start is under way",
  ],
  [
    "while another start is under way, for a user who may not read what ended the last",
    starting,
    "",
    "has failed to start 6 times, at 2026-11-30T16:08:02Z (3 s ago) for the last time; a start is under way",
  ],
  [
    "behind one that served",
    { ...between, ...served },
    "",
    "served until 2026-11-30T16:07:04Z (1 min 1 s ago), and is not up: systemd has started it again 6 times; it ended at 2026-11-30T16:08:02Z (3 s ago) for the last time: it failed with exit status 2",
  ],
  [
    "at a crash",
    { ...between, ...served, ...killed, NRestarts: 0 },
    "",
    "is not up: it ended at 2026-11-30T16:08:02Z (3 s ago): it was ended by SIGKILL, by hand or by the kernel for want of memory; systemd is about to start it again",
  ],
  [
    "behind a crash, the note of which was written when the unit was cleaned up",
    { ...starting, ...served, NRestarts: 1 },
    "\n1796054828 1e signal KILL\n",
    "is not up: it ended between 2026-11-30T16:07:04Z and 2026-11-30T16:07:08Z (57 s ago): it was ended by SIGKILL, by hand or by the kernel for want of memory; a start is under way",
  ],
  [
    "behind a crash, for a user who may not read what it was",
    { ...starting, ...served, NRestarts: 1, InactiveEnterTimestamp: "@1796054828" },
    "",
    "is not up: it ended between 2026-11-30T16:07:04Z and 2026-11-30T16:07:08Z (57 s ago); a start is under way",
  ],
  [
    "behind a crash that was noted at once",
    { ...starting, ...served, NRestarts: 1 },
    "\n1796054824 1e signal KILL\n",
    "is not up: it ended at 2026-11-30T16:07:04Z (1 min 1 s ago): it was ended by SIGKILL, by hand or by the kernel for want of memory; a start is under way",
  ],
  [
    "behind a start that failed shortly after a stop",
    { ...starting, ...served, NRestarts: 1 },
    "\n1796054826 1e success 0\n1796054829 1f exit-code 2\n",
    "is not up: it ended at 2026-11-30T16:07:09Z (56 s ago): it failed with exit status 2; a start is under way",
  ],
  [
    "behind a start that failed shortly after a stop, which the agent noted and took out of the file",
    { ...starting, ...served, NRestarts: 1 },
    "\n1796054829 1f exit-code 2\n",
    "is not up: it ended between 2026-11-30T16:07:04Z and 2026-11-30T16:07:09Z (56 s ago): it failed with exit status 2; a start is under way",
  ],
  [
    "behind a start that failed before anything could be noted",
    { ...starting, ...served, NRestarts: 1 },
    "\n1796054826 1e success 0\n",
    "is not up: it ended at 2026-11-30T16:08:02Z (3 s ago); a start is under way",
  ],
  [
    "behind a crash, with a line of before in the file",
    { ...starting, ...served, NRestarts: 1, InactiveEnterTimestamp: "@1796054824" },
    "\n1796050000 1e success 0\n1796050001 1f exit-code 2\n",
    "is not up: it ended at 2026-11-30T16:07:04Z (1 min 1 s ago); a start is under way",
  ],
  [
    "behind a start that failed, long after what served was stopped",
    { ...starting, ...served, ActiveExitTimestamp: "@1796050000", NRestarts: 1 },
    "\n1796054880 1e exit-code 2\n",
    "is not up: it ended at 2026-11-30T16:08:00Z (5 s ago): it failed with exit status 2; a start is under way",
  ],
  [
    "a first start",
    { ...starting, NRestarts: 0, InactiveExitTimestamp: "@1796054884" },
    "",
    "is starting, since 2026-11-30T16:08:04Z (1 s ago)",
  ],
  [
    "a stop that is under way",
    { ...starting, ...served, ActiveState: "deactivating", NRestarts: 2 },
    "",
    "is stopping, since 2026-11-30T16:07:04Z (1 min 1 s ago)",
  ],
  [
    "it was stopped",
    { ...starting, ...served, ActiveState: "inactive" },
    "",
    "is stopped, since 2026-11-30T16:08:02Z (3 s ago)",
  ],
  [
    "nobody started it",
    { ...starting, ActiveState: "inactive", InactiveEnterTimestamp: "" },
    "",
    "was not started since this host booted",
  ],
  [
    "it failed, and is left so",
    { ...between, ...served, ActiveState: "failed", Result: "timeout" },
    "",
    "is not up: it ended at 2026-11-30T16:08:02Z (3 s ago): systemd ended it, because a start or a stop took too long",
  ],
  ["it is up", { ...starting, ...served, ActiveState: "active" }, "", undefined],
  ["masked", { ...gone, LoadState: "masked" }, "", "is masked, and does not run"],
  [
    "masked behind an end",
    { ...between, LoadState: "masked", ActiveState: "failed" },
    "",
    "is masked, and does not run",
  ],
  ["masked while it ran", { ...gone, LoadState: "masked", ActiveState: "active" }, "", undefined],
  ["its file cannot be read", { ...gone, LoadState: "bad-setting" }, "", undefined],
])("%s", (_what, properties, ends, said) => {
  const down = downUnit({ shown: lines(properties), ends }, "accel-agent", now);
  expect(down?.message).toBe(said === undefined ? undefined : `accel-agent ${said}`);
});

test("a fault by which nobody was reached is told as that of the unit; each other one stays as it is", async () => {
  const error = new AccelError("CONTROL_UNREACHABLE", "no answer on /x: connect ENOENT /x");
  const seen = async (): Promise<{ shown: string; ends: string }> =>
    Promise.resolve({ shown: lines(between), ends: "" });
  expect(await faultOfUnit(error, { instance: "shop" }, seen)).toMatchObject({
    code: "CONTROL_UNREACHABLE",
    message: expect.stringMatching(/^accel-agent@shop has failed to start 7 times, at /),
    hint: "`journalctl -u accel-agent@shop -n 50` says why, and `accel-agent doctor --instance shop` examines the host. systemd starts it again until it stays up.",
    cause: error,
  });
  const silent = new AccelError("CONTROL_SILENT", "it hangs");
  expect(await faultOfUnit(silent, {}, seen)).toBe(silent);
  expect(await faultOfUnit(error, { "state-dir": "/x" }, seen)).toBe(error);
  // No unit has these settings; systemd is not there; the unit is up.
  expect(await faultOfUnit(error, { config: "/srv/a.yaml" }, seen)).toBe(error);
  expect(await faultOfUnit(error, {}, async () => Promise.resolve(undefined))).toBe(error);
  const up = { shown: lines({ ...starting, ActiveState: "active" }), ends: "" };
  expect(await faultOfUnit(error, {}, async () => Promise.resolve(up))).toBe(error);
});

test("a unit that is masked or missing is told of; a missing one only where no agent can be behind the socket", async () => {
  const looking = (state: string) => async () =>
    Promise.resolve({ shown: lines({ ...gone, LoadState: state }), ends: "" });
  const absent = new AccelError("CONTROL_UNREACHABLE", "no answer on /x: connect ENOENT /x");
  const hidden = controlFault("/x", Object.assign(new Error("denied"), { code: "EACCES" }));
  for (const error of [absent, hidden])
    expect(await faultOfUnit(error, { instance: "shop" }, looking("masked"))).toMatchObject({
      code: "CONTROL_UNREACHABLE",
      message: "accel-agent@shop is masked, and does not run",
      hint: "Somebody forbade its start. As root: `systemctl unmask accel-agent@shop`, then `systemctl start accel-agent@shop`.",
      cause: error,
    });
  expect(await faultOfUnit(absent, { instance: "shop" }, looking("not-found"))).toMatchObject({
    message: "there is no unit accel-agent@shop on this host",
    hint: expect.stringMatching(/^Install the package accel-agent again, .* by --state-dir\.$/),
  });
  expect(await faultOfUnit(hidden, { instance: "shop" }, looking("not-found"))).toBe(hidden);
});

test("of an agent that answers it is told that systemd could not start it again, in the words of the doctor", async () => {
  let asked = 0;
  const looking = (properties: object) => async () => {
    asked += 1;
    return Promise.resolve({ shown: lines({ ...gone, ...properties }), ends: "" });
  };
  const masked = looking({ LoadState: "masked", ActiveState: "active" });
  expect(await troubleOfUnit({ instance: "shop" }, masked)).toMatchObject({
    text: "accel-agent@shop is masked: it runs, and systemd, which does not hear it any more, ends it within a minute and starts none",
    hint: "systemctl unmask accel-agent@shop, then systemctl start accel-agent@shop.",
  });
  expect(asked).toBe(1);
  const without = looking({ LoadState: "not-found", ActiveState: "active" });
  expect(await troubleOfUnit({}, without)).toMatchObject({
    text: "there is no unit accel-agent on this host: it runs, and could not start again",
  });
  // All is well; the agent that answered runs without the unit; no unit has these settings; systemd is not there.
  for (const look of [looking({ ActiveState: "active" }), looking({ LoadState: "masked" })])
    expect(await troubleOfUnit({}, look)).toBeUndefined();
  for (const where of [{ "state-dir": "/x" }, { config: "/srv/a.yaml" }])
    expect(await troubleOfUnit(where, masked)).toBeUndefined();
  expect(await troubleOfUnit({}, async () => Promise.resolve(undefined))).toBeUndefined();
});

const refused = (code: string): AccelError =>
  controlFault("/x", Object.assign(new Error(`connect ${code} /x`), { code }));

test.each<[string, Readonly<Record<string, string | number>>, string, RegExp]>([
  [
    "was never started",
    { ...starting, ActiveState: "inactive", InactiveEnterTimestamp: "" },
    "central does not run: accel-central was not started since this host booted",
    /^As root: `systemctl start accel-central` starts it\.$/,
  ],
  [
    "fails",
    between,
    "central does not run: accel-central has failed to start 7 times, at ",
    /^`journalctl -u accel-central -n 50` says why, and `accel-central check` judges the settings\. systemd starts/,
  ],
  [
    "fails before there is a process",
    { ...between, ...before },
    "a start failed before central began",
    /^`journalctl /,
  ],
  [
    "is starting",
    { ...starting, NRestarts: 0, InactiveExitTimestamp: "@1796054884" },
    "accel-central is starting, since 2026-",
    /^Ask again in a moment\./,
  ],
  [
    "is masked",
    { ...gone, LoadState: "masked" },
    "accel-central is masked, and does not run",
    /`systemctl unmask accel-central`/,
  ],
  [
    "is missing",
    { ...gone, LoadState: "not-found" },
    "central does not run: there is no unit accel-central on this host",
    /^Install the package accel-central again, or, of a central that runs otherwise, /,
  ],
])("of a central whose unit %s that is told", async (_what, properties, message, hint) => {
  using dir = tempDir();
  const config = join(dir.path, "central.yaml");
  const place = { ...placeOf(centralProgram), config, stateDir: dir.path };
  writeFileSync(config, "listen: 127.0.0.1:8000\n");
  const look = async () => Promise.resolve({ shown: lines(properties), ends: "" });
  const error = refused("ENOENT");
  const socket = join(dir.path, "control.sock");
  const fault = await faultOfCentral(error, socket, { place, look });
  expect(fault).toMatchObject({
    code: "CONTROL_UNREACHABLE",
    message: expect.stringContaining(message),
    hint: expect.stringMatching(hint),
    cause: error,
  });
  // It is that of another state directory.
  expect(await faultOfCentral(error, "/elsewhere/control.sock", { place, look })).toBe(error);
  writeFileSync(config, "state_dir: /elsewhere\n");
  expect(await faultOfCentral(error, "/elsewhere/control.sock", { place, look })).toMatchObject({
    message: expect.stringContaining(message),
  });
});

test("of a central that systemd knows nothing of, no raw fault of the socket is told; each other fault stays as it is", async () => {
  using dir = tempDir();
  const place = { ...placeOf(centralProgram), config: join(dir.path, "c"), stateDir: dir.path };
  const socket = join(dir.path, "control.sock");
  const shown = (properties: object) => async () =>
    Promise.resolve({ shown: lines({ ...starting, ...properties }), ends: "" });
  const up = { place, look: shown({ ActiveState: "active" }) };
  for (const given of [up, { place, look: async () => Promise.resolve(undefined) }])
    for (const code of ["ENOENT", "ECONNREFUSED"])
      expect(await faultOfCentral(refused(code), socket, given)).toMatchObject({
        message: `central does not run: nothing listens on ${socket}`,
      });
  for (const error of [refused("EACCES"), new AccelError("NOT_FOUND", "there is no user x")])
    expect(await faultOfCentral(error, socket, up)).toBe(error);
  // Nobody wrote its settings.
  const never = shown({ ActiveState: "inactive", InactiveEnterTimestamp: "" });
  expect(await faultOfCentral(refused("EACCES"), socket, { place, look: never })).toMatchObject({
    message: "central does not run: accel-central was not started since this host booted",
    hint: `There is no settings file ${place.config}, without which the unit starts nothing. As root: write it, then \`systemctl start accel-central\`.`,
  });
});
