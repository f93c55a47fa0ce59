// Request logs as a part of central: what its health, readiness and metrics tell of them.

import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call, newSite, settingsOf, start, statusOf } from "../support/central-whole.ts";
import { batchText, connectAgent } from "../support/fake-agent.ts";
import { tempDir } from "../support/temp-dir.ts";

test("while request logs cannot be stored, readiness, health and metrics say so, and it goes on serving", async () => {
  using dir = tempDir();
  await using central = await start(settingsOf(dir.path));
  const { token, name16, secret16 } = await newSite(central.url);
  const agent = await connectAgent(central.agents, name16, secret16);
  const inTheWay = join(dir.path, "logs", `${new Date().toISOString().slice(0, 10)}.db`);
  mkdirSync(inTheWay);
  const lane = {
    "accel-lane": "00000000000000e1/1",
    "accel-first-seq": "1",
    "accel-last-seq": "1",
  };
  const send = async () =>
    agent.call("/request-logs", { method: "POST", headers: lane, body: batchText(1, 1) });
  const page = async (path: string) => {
    const response = await fetch(`${central.url}${path}`);
    return { status: response.status, text: await response.text() };
  };
  expect((await send()).status).toBe(503);
  expect(await page("/readyz")).toMatchObject({
    status: 503,
    text: expect.stringContaining("request logs cannot be stored"),
  });
  expect((await page("/metrics")).text).toContain("accel_central_log_failing 1");
  expect(await statusOf(dir.path)).toMatchObject({ warnings: [{ code: "logs_not_stored" }] });
  expect(await call(central.url, "GET", "/domain/", token)).toEqual([]);
  rmdirSync(inTheWay);
  expect((await send()).status).toBe(200);
  expect((await page("/readyz")).status).toBe(200);
  expect((await page("/metrics")).text).toContain("accel_central_log_failing 0");
  expect(await statusOf(dir.path)).toMatchObject({ warnings: [] });
});
