// A key of the agent's settings that nobody knows is a warning from the start on, until a reload meets none.

import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { callControl } from "../../src/base/control-socket.ts";
import { CustomerScript } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 120_000 });

test("the agent warns of keys that nobody knows, until a reload meets none", async () => {
  await using edge = await Edge.prepare();
  await edge.startCentral();
  await new CustomerScript(edge, "http://127.0.0.1:9", "unknown").enrol();
  edge.changeAgentSettings({ accelerater: {} });
  await edge.startAgent();
  const warned = async (): Promise<string> => {
    const socket = join(edge.dir, "agent", "control.sock");
    const answers = callControl(socket, "status", {}, AbortSignal.timeout(10_000));
    return JSON.stringify(await Array.fromAsync(answers));
  };
  expect(await warned()).toMatch(/settings_unknown.*accelerater unknown key/);
  edge.changeAgentSettings({ accelerater: undefined });
  process.kill(edge.agent.pid, "SIGHUP");
  await until("it is mended", async () => !(await warned()).includes("settings_unknown"));
});
