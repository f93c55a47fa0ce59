// What systemd is told, read at a socket by another program.

import { join } from "node:path";
import { expect, test } from "vitest";
import { createSdNotify } from "../../src/base/sd-notify.ts";
import type { SendOutcome } from "../../src/base/socket-calls.ts";
import { DatagramReader } from "../support/datagrams.ts";
import { tempDir } from "../support/temp-dir.ts";

test("assignments are lines of one datagram, in the order of the calls", async () => {
  using dir = tempDir();
  const path = join(dir.path, "notify");
  await using reader = await DatagramReader.at(path);
  const notify = createSdNotify({ NOTIFY_SOCKET: path });
  await Promise.all([
    notify.send("READY=1", "STATUS=serving 2 domains; größer\nMAINPID=1"),
    notify.send("WATCHDOG=1"),
    notify.forget("0.0.0.0_80"),
  ]);
  expect(await reader.next()).toBe("READY=1\nSTATUS=serving 2 domains; größer MAINPID=1");
  expect(await reader.next()).toBe("WATCHDOG=1");
  expect(await reader.next()).toBe("FDSTOREREMOVE=1\nFDNAME=0.0.0.0_80");
});

test("an abstract socket is one, too", async () => {
  const path = `@accel-notify-${process.pid}`;
  await using reader = await DatagramReader.at(path);
  await createSdNotify({ NOTIFY_SOCKET: path }).send("READY=1");
  expect(await reader.next()).toBe("READY=1");
});

test("a reader that is behind is waited for, and what is sent first arrives first", async () => {
  const said: string[] = [];
  let full = 3;
  const send = (_: string, text: string, fds: readonly number[] = []): SendOutcome => {
    if (full-- > 0) return "full";
    said.push(`${text} ${fds.join()}`);
    return "sent";
  };
  const notify = createSdNotify({ NOTIFY_SOCKET: "/x" }, () => ({ send }));
  await Promise.all([notify.send("RELOADING=1"), notify.store("a", 7), notify.send("READY=1")]);
  expect(said).toEqual(["RELOADING=1 ", "FDSTORE=1\nFDNAME=a\nFDPOLL=0 7", "READY=1 "]);
});

test("nobody who reads is no error", async () => {
  const notify = createSdNotify({ NOTIFY_SOCKET: "/run/nowhere" });
  await expect(notify.send("READY=1")).resolves.toBeUndefined();
});

test("outside systemd nothing is opened", async () => {
  const notify = createSdNotify({}, () => {
    throw new Error("opened");
  });
  await expect(notify.send("READY=1")).resolves.toBeUndefined();
  await expect(notify.store("a", 1)).resolves.toBeUndefined();
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
