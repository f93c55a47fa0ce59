// `npm start` is stopped: whoever gets the signal, nothing of it stays.

import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { freePortBase } from "../support/demo.ts";
import { NpmStart } from "../support/demo-processes.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const dir = tempDir();
const state = join(dir.path, "state");
afterAll(() => dir[Symbol.dispose]());

const portBase = async (): Promise<readonly string[]> => [
  "--port-base",
  String(await freePortBase()),
];

test.each([
  ["SIGTERM", "npm"],
  ["SIGINT", "group"],
  ["SIGTERM", "demo"],
] as const)(
  "by %s to %s: when it has ended nothing is left, and it ended well",
  async (signal, to) => {
    await using demo = new NpmStart(state, await portBase());
    await demo.ready();
    expect(demo.processes("central\0serve")).toHaveLength(1);
    expect(demo.processes("agent\0run")).toHaveLength(1);
    demo.signal(signal, to);
    expect(await demo.ended()).toEqual({ code: 0, signal: null });
    expect(demo.processes()).toEqual([]);
    expect(demo.hasPlaces).toBe(false);
    expect(demo.said).not.toContain("Error");
  },
  400_000,
);

test("npm is killed: the demo notices, and stops", async () => {
  await using demo = new NpmStart(state, await portBase());
  await demo.ready();
  demo.signal("SIGKILL", "npm");
  await until("nothing is left", () => demo.processes().length === 0);
  expect(demo.hasPlaces).toBe(false);
}, 400_000);

test("stopped while it starts, it says nothing of what that broke off", async () => {
  await using demo = new NpmStart(join(dir.path, "another"), await portBase());
  await demo.says("starting central");
  demo.signal("SIGTERM", "npm");
  expect(await demo.ended()).toEqual({ code: 0, signal: null });
  expect(demo.processes()).toEqual([]);
  expect(demo.said).not.toContain("accel-agent:");
}, 400_000);
