// Releases that are no good, on a system that boots: one does not start, one crashes when it takes over. The release before serves on, and nobody but the operator notices.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { BootedDebian } from "./booted.ts";
import type { VisitorCount } from "./steady-visitors.ts";

export async function mainPidOf(debian: BootedDebian, unit: string): Promise<string> {
  return (await debian.must(`systemctl show -p MainPID --value ${unit}`)).trim();
}

/** The program that the unit runs. */
export async function runningOf(debian: BootedDebian, unit: string): Promise<string> {
  return (await debian.must(`readlink /proc/${await mainPidOf(debian, unit)}/exe`)).trim();
}

/** `home`: of the version that serves; the packages of another one, 1.1.0, are in /root/two, and are installed in the end, and serve. */
export async function installNoGood(
  debian: BootedDebian,
  home: string,
  visitedDuring: (action: () => Promise<void>) => Promise<VisitorCount>,
): Promise<void> {
  const settings = "/etc/accel-agent/agent.yaml";
  const running = async (): Promise<string> => runningOf(debian, "accel-agent");
  const before = await mainPidOf(debian, "accel-agent");
  const right = readFileSync(join(debian.root, settings), "utf8");
  let said = "";
  const installed = await visitedDuring(async () => {
    debian.write(settings, `${right}\nlog_level: loud\n`);
    said = await debian.must("apt-get install -y --allow-downgrades /root/two/*.deb 2>&1");
    debian.write(settings, right);
  });
  expect(installed.wrong).toEqual({});
  expect(said).toContain("log_level must be one of");
  expect(said).toContain("the one before serves on");
  expect(await mainPidOf(debian, "accel-agent")).toBe(before);
  expect(await running()).toBe(`${home}/bin/node`);

  const dist = join(home, "../1.1.0/dist");
  const plant = `mv worker.js right && echo 'throw new Error("planted")' > worker.js`;
  await debian.must(`cd ${dist} && ${plant}`);
  const replaced = await visitedDuring(async () => {
    const { code, err } = await debian.sh("accel-agent replace");
    expect([code, err]).toEqual([1, expect.stringContaining("version 1.2.0 serves again")]);
  });
  expect(replaced.wrong).toEqual({});
  expect(await mainPidOf(debian, "accel-agent")).not.toBe(before);
  expect(await running()).toBe(`${home}/bin/node`);

  await debian.must(`cd ${dist} && mv right worker.js && accel-agent replace`);
  expect(await running()).toBe(join(dist, "../bin/node"));
  expect(await debian.must("systemctl is-active accel-agent")).toBe("active\n");
}
