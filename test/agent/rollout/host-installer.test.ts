// The files between the agent and the host's installer: what the host allows, what it holds, what the installer wrote, what it is asked.

import { mkdtempSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { uptime } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { HostInstaller, installerPlaces } from "../../../src/agent/rollout/host-installer.ts";
import { tempDir } from "../../support/temp-dir.ts";

const dir = tempDir();
afterAll(() => dir[Symbol.dispose]());

function host() {
  const home = mkdtempSync(join(dir.path, "host-"));
  const at = (name: string): string => join(home, name);
  const places = {
    order: at("rollout/order"),
    outcome: at("outcome"),
    enabled: at("enabled"),
    packages: at("status"),
  };
  return { at, installer: new HostInstaller(places) };
}

const dpkgStatus = (agent: string): string =>
  `Package: accel-agent-doc\nStatus: hold ok installed\n\nPackage: accel-agent\nStatus: ${agent} ok installed\nVersion: 1.0.0\n\nPackage: zsh\nStatus: hold ok installed\n`;

test("a host takes part only where the unit is enabled and its packages are not held", () => {
  const { at, installer } = host();
  expect(installer.takes()).toBe("off");
  symlinkSync("/lib/systemd/system/accel-agent-rollout.path", at("enabled"));
  expect(installer.takes()).toBe("yes");
  writeFileSync(at("status"), dpkgStatus("install"));
  expect(installer.takes()).toBe("yes");
  writeFileSync(at("status"), dpkgStatus("hold"));
  expect(installer.takes()).toBe("held");
});

test("an agent that the packages' installer does not serve takes nothing", async () => {
  expect(installerPlaces("/var/lib/accel-agent-shop")).toBeUndefined();
  expect(installerPlaces("/var/lib/accel-agent")?.order).toBe("/var/lib/accel-agent/rollout/order");
  const none = new HostInstaller(undefined);
  await none.ask({ id: "t-go", version: "2.0.0" });
  await none.withdraw();
  expect([none.takes(), none.lying(), none.outcome()]).toEqual(["off", undefined, undefined]);
});

test("an order is one line of a file", async () => {
  const { at, installer } = host();
  await installer.ask({ id: "t-go", version: "2.0.0" });
  await installer.ask({ id: "t-back", version: "1.0.0" });
  expect(readFileSync(at("rollout/order"), "utf8")).toBe("t-back 1.0.0\n");
});

test("what lies there is known by its id, and can be taken back, also twice", async () => {
  const { at, installer } = host();
  expect(installer.lying()).toBeUndefined();
  await installer.ask({ id: "t-go", version: "2.0.0" });
  expect(installer.lying()).toBe("t-go");
  await installer.withdraw();
  await installer.withdraw();
  expect(installer.lying()).toBeUndefined();
  symlinkSync(at("nowhere"), at("rollout/order"));
  expect(installer.lying()).toBe("");
});

test("what the installer wrote is read, unless it means nothing or was cut off by a power cut", () => {
  const { at, installer } = host();
  expect(installer.outcome()).toBeUndefined();
  writeFileSync(at("outcome"), "t-go 2.0.0 returned 2.0.0 did not stay up: x\n");
  expect(installer.outcome()).toMatchObject({
    id: "t-go",
    state: "returned",
    reason: "2.0.0 did not stay up: x",
  });
  writeFileSync(at("outcome"), "t-go 2.0.0 exploded\n");
  expect(installer.outcome()).toBeUndefined();
  writeFileSync(at("outcome"), "t-go 2.0.0 installing \n");
  expect(installer.outcome()).toMatchObject({ state: "installing", reason: "" });
  const beforeBoot = Date.now() / 1_000 - uptime() - 60;
  utimesSync(at("outcome"), beforeBoot, beforeBoot);
  expect(installer.outcome()).toBeUndefined();
});
