// What systemd is told: through systemd-notify on the PATH, here one that writes its arguments down.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createSdNotify } from "../../src/base/sd-notify.ts";
import { tempDir } from "../support/temp-dir.ts";

function fakeOnPath(dir: string, script: string): NodeJS.ProcessEnv {
  writeFileSync(join(dir, "systemd-notify"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return { PATH: `${dir}:/usr/bin:/bin`, NOTIFY_SOCKET: "/run/nowhere", OUT: join(dir, "out") };
}

test("each assignment is an argument, for the main process", async () => {
  using dir = tempDir();
  const env = fakeOnPath(
    dir.path,
    'for a in "$@"; do echo "$a" >> "$OUT"; done; echo "$NOTIFY_SOCKET" >> "$OUT"',
  );
  const notify = createSdNotify(env);
  await notify.send("READY=1", "STATUS=serving 2 domains; state 7 $(id)");
  await notify.send("WATCHDOG=1");
  expect(readFileSync(join(dir.path, "out"), "utf8").trimEnd().split("\n")).toEqual([
    `--pid=${process.pid}`,
    "READY=1",
    "STATUS=serving 2 domains; state 7 $(id)",
    "/run/nowhere",
    `--pid=${process.pid}`,
    "WATCHDOG=1",
    "/run/nowhere",
  ]);
});

test("what is sent first arrives first, however long it takes", async () => {
  using dir = tempDir();
  const env = fakeOnPath(dir.path, '[ "$2" = RELOADING=1 ] && sleep 0.1; echo "$2" >> "$OUT"');
  const notify = createSdNotify(env);
  await Promise.all([notify.send("RELOADING=1"), notify.send("READY=1")]);
  expect(readFileSync(join(dir.path, "out"), "utf8")).toBe("RELOADING=1\nREADY=1\n");
});

test("a systemd-notify that fails, or is missing, is no error", async () => {
  using dir = tempDir();
  const failing = createSdNotify(fakeOnPath(dir.path, 'touch "$OUT"; exit 1'));
  await expect(failing.send("READY=1")).resolves.toBeUndefined();
  expect(existsSync(join(dir.path, "out"))).toBe(true);
  const missing = createSdNotify({ PATH: "/nowhere", NOTIFY_SOCKET: "/run/nowhere" });
  await expect(missing.send("READY=1")).resolves.toBeUndefined();
});

test("outside systemd nothing is started", async () => {
  using dir = tempDir();
  const { NOTIFY_SOCKET: _, ...env } = fakeOnPath(dir.path, 'touch "$OUT"');
  await createSdNotify(env).send("READY=1");
  expect(() => readFileSync(join(dir.path, "out"))).toThrow(/ENOENT/);
});

test.each([
  [{ NOTIFY_SOCKET: "/x", WATCHDOG_USEC: "60000000" }, 60_000],
  [{ NOTIFY_SOCKET: "/x" }, undefined],
  [{ NOTIFY_SOCKET: "/x", WATCHDOG_USEC: "0" }, undefined],
  [{ NOTIFY_SOCKET: "/x", WATCHDOG_USEC: "soon" }, undefined],
  [{ WATCHDOG_USEC: "60000000" }, undefined],
  [{}, undefined],
])("the watchdog of %j", (env, ms) => {
  expect(createSdNotify(env).watchdogMs).toBe(ms);
});
