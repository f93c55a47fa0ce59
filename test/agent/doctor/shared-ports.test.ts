// Ports that another agent of this host has in its settings, or listens on.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Finding } from "../../../src/agent/doctor/finding.ts";
import { answering } from "./agent-seen.ts";
import {
  examinedHost,
  newHostScene,
  openHostRoom,
  type HostRoom,
  type HostScene,
} from "./host-scene.ts";

const stack = new AsyncDisposableStack();
let room: HostRoom;
let scene: HostScene;

beforeAll(async () => {
  room = stack.use(await openHostRoom());
});
afterAll(async () => stack.disposeAsync());
beforeEach(async () => {
  scene = await newHostScene(room);
});

const isOwnHint = "Each agent of a host needs ports of its own: choose another one here or there.";

/** What is not good about ports. */
const told = async (): Promise<readonly Finding[]> =>
  (await examinedHost(room, scene)).filter(
    ({ check, state }) => check === "ports" && state !== "ok",
  );

/** Writes settings of another agent of the host. */
function writeOther(ports: object): string {
  const path = join(mkdtempSync(join(room.dir, "other-")), "agent.yaml");
  const { name16 } = room.site;
  writeFileSync(path, JSON.stringify({ central_url: scene.central, name16, ...ports }));
  return path;
}

test("ports that another agent of this host has, too, whether it runs or not", async () => {
  const [listen] = scene.ports;
  const other = writeOther({
    accelerator: { listen: "127.0.0.1:1" },
    metrics: { listen: `0.0.0.0:${listen}` },
  });
  scene.others = [other];
  const text = `accelerator.listen 127.0.0.1:${listen} is metrics.listen of ${other} too`;
  expect(await told()).toEqual([{ check: "ports", state: "failed", text, hint: isOwnHint }]);
});

/** Starts what looks like the agent of these settings and listens on the first port of the scene. */
async function listenAs(config: string): Promise<Disposable> {
  const child = spawn(process.execPath, [
    "-e",
    `require("node:http").createServer().listen(${scene.ports[0]}, "127.0.0.1", () => console.log("up")); // accel-agent`,
    "run",
    "--config",
    config,
  ]);
  await once(child.stdout, "data");
  for (const path of [
    "/proc/net/tcp",
    "/proc/net/tcp6",
    `/proc/${child.pid}/cmdline`,
    `/proc/${child.pid}/comm`,
  ])
    scene.files[path] = readFileSync(path, "utf8");
  return { [Symbol.dispose]: () => void child.kill() };
}

test("a port that another agent listens on is no port of this one, though this one runs", async () => {
  using _other = await listenAs("/etc/accel-agent/b/agent.yaml");
  scene.agent = answering;
  expect(await told()).toContainEqual({
    check: "ports",
    state: "failed",
    text: expect.stringMatching(
      / is taken by the agent of \/etc\/accel-agent\/b\/agent\.yaml \(pid/,
    ),
    hint: isOwnHint,
  });
});

test("a port that another agent has in its settings, and listens on, is told of once, and nobody is to stop what serves", async () => {
  const [listen] = scene.ports;
  const other = writeOther({ accelerator: { listen: `127.0.0.1:${listen}` } });
  scene.others = [other];
  const text = `accelerator.listen 127.0.0.1:${listen} is accelerator.listen of ${other} too`;
  const shared = { check: "ports", state: "failed", text, hint: isOwnHint };
  {
    using _other = await listenAs(other);
    expect(await told()).toEqual([shared]);
  }
  // Somebody else has it while that agent does not run.
  using _stranger = await listenAs("/elsewhere/agent.yaml");
  expect(await told()).toEqual([
    shared,
    expect.objectContaining({ text: expect.stringContaining("/elsewhere/agent.yaml (pid ") }),
  ]);
});
