// A nearly idle agent that is killed, over the real programs: what it says that it may have lost, here and at central.

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { CustomerScript, domain, walkLogs } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { startOrigin } from "../support/origin.ts";
import { Program } from "../support/process.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 300_000 });

/** A lane rests after a second without a record; a busy host has several for it. */
const restMs = 5_000;

type ToldLane = { readonly accepted: number; readonly live: boolean };
const lanesOf = (facts: Record<string, unknown>): readonly ToldLane[] =>
  facts["lanes"] as readonly ToldLane[]; // Of LogFacts.

test("one request, a rest, kill -9: at most 16 records of the one worker that served, none of the others", async () => {
  await using origin = await startOrigin();
  await using edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "crash");
  await script.enrol();
  edge.changeAgentSettings({
    logs: { canary_interval: "0s" },
    accelerator: { listen: `127.0.0.1:${edge.ports.visitors}`, workers: 4 },
  });
  await edge.startAgent();
  for (const { run } of script.steps().slice(0, 2)) await run();
  const backlog = async (): Promise<Record<string, unknown>> => {
    const dir = join(edge.dir, "agent");
    const asked = ["agent", "logs", "backlog", "--json", "--state-dir", dir];
    await using program = await Program.start(asked);
    expect({ code: await program.exited(), said: program.said }).toMatchObject({ code: 0 });
    return JSON.parse(program.said);
  };
  const before = await until("what the steps asked to be committed", async () => {
    const facts = await backlog();
    return facts["shipping"] === "idle" && facts["in_memory"] === 0 && facts;
  });
  const used = lanesOf(before).filter(({ accepted }) => accepted > 0).length;
  await edge.visit("/only", { host: domain });
  await until("its record", async () =>
    JSON.stringify(await walkLogs(edge.api, script.siteId, domain)).includes('"/only"'),
  );
  const accepted = Number(before["accepted"]) + 1;
  expect(await backlog()).toMatchObject({ accepted, committed: accepted, unproven: 0 });
  await sleep(restMs);
  await edge.agent.kill();
  await edge.startAgent();
  const after = await until("the gaps to be told", async () => {
    const facts = await backlog();
    return facts["shipping"] === "idle" && lanesOf(facts).every(({ live }) => live) && facts;
  });
  expect(after).toMatchObject({ accepted, committed: accepted, dropped: {} });
  const unproven = Number(after["unproven"]);
  expect(unproven).toBeGreaterThan(0);
  expect(unproven % 16).toBe(0);
  expect(unproven).toBeLessThanOrEqual(16 * (used + 1));
  expect(edge.agent.said).toContain(`"records_at_least":0,"records_at_most":${unproven}`);
  const text = await (await fetch(`http://127.0.0.1:${edge.ports.central}/metrics`)).text();
  expect(text).toContain(`accel_central_log_unproven_total ${unproven}`);
  expect(text).toContain('accel_central_log_gaps_total{reason="crash"} 0');
  expect(text).not.toMatch(/accel_central_log_gaps_total\{.*\} [1-9]/);
});
