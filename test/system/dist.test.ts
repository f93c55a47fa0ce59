// `npm run build` makes a `dist` that plain Node runs: both programs start, with all their threads, and serve.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { startOrigin } from "../support/origin.ts";
import { answers200, node } from "../support/process.ts";
import { until } from "../support/until.ts";

const root = join(import.meta.dirname, "../..");
const main = join(root, "dist/main.js");

beforeAll(() => {
  const built = spawnSync("npm", ["run", "--silent", "build"], { cwd: root, encoding: "utf8" });
  expect(`${built.stdout}${built.status}`).toBe("0");
}, 400_000);

function start(args: readonly string[]): ChildProcess & AsyncDisposable {
  const child = spawn(node, [main, ...args], { stdio: "ignore" });
  return Object.assign(child, {
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  });
}

test("version and help", { timeout: 120_000 }, () => {
  const said = spawnSync(node, [main, "agent", "version"], { encoding: "utf8" });
  expect(said.stdout).toMatch(/^accel-agent \d+\.\d+\.\d+\n$/);
  expect(spawnSync(node, [main, "central", "--help"], { encoding: "utf8" }).stdout).toContain(
    "serve",
  );
});

test("both programs start from dist, and a visitor gets a miss, a hit and, after a clear, a miss", async () => {
  await using origin = await startOrigin();
  await using edge = await Edge.prepare();
  await using central = start(["central", "serve", "--config", join(edge.dir, "central.yaml")]);
  await until(
    "central",
    () => answers200(`http://127.0.0.1:${edge.ports.central}/readyz`),
    120_000,
  );
  const script = new CustomerScript(edge, origin.url, "dist");
  await script.enrol();
  await using agent = start(["agent", "run", "--config", join(edge.dir, "agent.yaml")]);
  await until(
    "the agent",
    () => answers200(`http://127.0.0.1:${edge.ports.metrics}/readyz`),
    120_000,
  );
  for (const { run } of script.steps().slice(0, 4)) await run();
  expect((await edge.visit("/page/x", { host: domain })).status).toBe(200);
  expect([central.exitCode, agent.exitCode]).toEqual([null, null]);
}, 400_000);
