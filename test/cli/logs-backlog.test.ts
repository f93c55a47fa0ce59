// `accel-agent logs backlog`: the balance and each lane, for a person and as JSON.

import { expect, test } from "vitest";
import { controlRoutes } from "../../src/agent/admin/control-routes.ts";
import { logsCommand } from "../../src/cli/agent-logs.ts";
import { agentStatusCommand } from "../../src/cli/agent-status.ts";
import { statusOf } from "../agent/admin/status-of.ts";
import { fakePorts, run, withAgent } from "./command-rig.ts";

test("logs backlog prints the balance and each lane with what central said last", async () => {
  await withAgent(async (where) => {
    const printed = await run(logsCommand, ["backlog", ...where]);
    expect(printed).toContain("accepted     10");
    expect(printed).toContain(
      "0000000000000001/1 live  5 spooled, 0 in memory, 4 committed, 1 dropped; 4096 bytes, oldest 90 s, in flight; 503: away",
    );
  });
});

test.each([
  [{ spooled: 0, answer: "committed" }, "idle"],
  [{ spooled: 0, answer: null }, "idle"],
  [{ spooled: 0, answer: "503: away" }, "503: away"],
  [{ spooled: 3, answer: null }, "nothing sent"],
  [{ spooled: 3, answer: "committed" }, "committed"],
  [{ spooled: 0, in_memory: 1, answer: null }, "nothing sent"],
  [{ spooled: 0, in_flight: true, answer: "committed" }, "committed"],
])("a lane that has %o to send says %j", async (more, said) => {
  const none = { spooled: 0, in_memory: 0, committed: 4, dropped: 0, bytes: 0, oldest_s: 0 };
  const lane = { lane: "1/1", live: true, in_flight: false, ...none, ...more };
  const logs = { accepted: 4, dropped: {}, lanes: [lane] };
  const routes = controlRoutes({ ...fakePorts([]), logsBacklog: async () => logs });
  await withAgent(async (where) => {
    expect(await run(logsCommand, ["backlog", ...where])).toMatch(new RegExp(`; ${said}\\n$`));
  }, routes);
});

test("a count that is a bound says so in words, and stays a number in JSON", async () => {
  const lane = {
    lane: "0000000000000001/1",
    live: false,
    spooled: 0,
    in_memory: 0,
    committed: 4,
    dropped: 1,
    unproven: 299,
    bytes: 0,
    oldest_s: 0,
    in_flight: false,
    answer: null,
  };
  const sums = { accepted: 5, dropped: { sampled: 1 }, unproven: 14_241 };
  const logs = { ...sums, lanes: [lane] };
  const parts = { spool: { ...sums, lanes: {} } };
  const status = async () => ({ ...statusOf({}), parts });
  const routes = controlRoutes({ ...fakePorts([]), status, logsBacklog: async () => logs });
  await withAgent(async (where) => {
    const backlog = await run(logsCommand, ["backlog", ...where]);
    expect(backlog).toMatch(/unproven +at most 14,241 more lost\n/);
    expect(backlog).toContain(
      "4 committed, 1 dropped, at most 299 more lost; 0 bytes, oldest 0 s; idle\n",
    );
    expect(await run(agentStatusCommand, where)).toMatch(/unproven: at most 14,241 more lost\n/);
    expect(JSON.parse(await run(logsCommand, ["backlog", "--json", ...where]))).toEqual(logs);
  }, routes);
});
