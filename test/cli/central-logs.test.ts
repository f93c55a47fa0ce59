// `accel-central logs losses`, against a whole central to which an agent told gaps.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { centralLogsCommand } from "../../src/cli/central-logs.ts";
import { call, newSite, settingsOf, start } from "../support/central-whole.ts";
import { batchText, connectAgent, type FakeAgent } from "../support/fake-agent.ts";
import { tempDir } from "../support/temp-dir.ts";
import { run } from "./command-rig.ts";

let stateDir: string;
let site: Awaited<ReturnType<typeof newSite>>;
let agent: FakeAgent;
let url: string;
const stack = new AsyncDisposableStack();
beforeAll(async () => {
  stateDir = stack.use(tempDir()).path;
  ({ url } = stack.use(await start(settingsOf(stateDir))));
  site = await newSite(url);
  agent = await connectAgent(`${url}/agent-api/v1`, site.name16, site.secret16);
});
afterAll(async () => stack.disposeAsync());

const say = async (...args: readonly string[]): Promise<string> =>
  run(centralLogsCommand, ["losses", ...args, "--state-dir", stateDir]);

const gap = (from_seq: number, to_seq: number, reason: string, more = {}) =>
  `${JSON.stringify({ gap: { from_seq, to_seq, reason, ...more } })}\n`;

async function send(lane: string, first: number, last: number, body: string): Promise<void> {
  const headers = {
    "accel-lane": lane,
    "accel-first-seq": String(first),
    "accel-last-seq": String(last),
  };
  const answer = await agent.call("/request-logs", { method: "POST", headers, body });
  expect(await answer.json()).toEqual({ committed_through: last });
}

test("what agents told as lost is summed by day, site and reason, and counted by reason", async () => {
  expect(await say()).toBe("no request records have arrived yet\n");
  await send("00000000000000e1/1", 1, 2, batchText(1, 2));
  expect(await say()).toMatch(/^no losses, \d{4}-\d\d-\d\d\n$/);
  const crash = gap(8, 23, "crash", { at_least: 2, at_most: 16 });
  await send("00000000000000e1/1", 3, 23, gap(3, 7, "disk_full") + crash);
  await send("00000000000000e1/2", 1, 4, gap(1, 3, "disk_full") + gap(4, 4, "of tomorrow"));
  const lines = (await say()).split("\n");
  expect(lines[0]).toMatch(
    /^day +deployment site id +name16 +reason +at least +at most +first told +last told$/,
  );
  const facts = lines.slice(1, -1).map((line) => line.split(/ {2,}/).slice(1, 6));
  const id = String(site.id);
  expect(facts).toEqual([
    [id, site.name16, "crash", "2", "16"],
    [id, site.name16, "disk_full", "8", "8"],
    [id, site.name16, "of tomorrow", "1", "1"],
  ]);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toContain('accel_central_log_gaps_total{reason="crash"} 2');
  expect(metrics).toContain('accel_central_log_gaps_total{reason="disk_full"} 8');
  expect(metrics).toContain('accel_central_log_gaps_total{reason="other"} 1');
  expect(metrics).toContain('accel_central_log_gaps_total{reason="behind"} 0');
  expect(metrics).toContain("accel_central_log_unproven_total 14");
});

test("one site's losses can be asked for, and of so many days; a file that is broken is named", async () => {
  const made = await call(url, "POST", "/deployment-site/", site.token, { tags: "" });
  const other = Number(made["id"]);
  expect(await say("--site", String(other))).toMatch(/^no losses, /);
  expect(await say("--site", String(site.id))).toContain("disk_full");
  writeFileSync(join(stateDir, "logs", "2020-01-15.db"), "this is no database".repeat(500));
  mkdirSync(join(stateDir, "logs", "elsewhere"));
  expect(await say()).toMatch(/2020-01-15: the file cannot be read\n$/);
  expect(await say("--days", "1")).not.toContain("2020");
  const answer: unknown = JSON.parse(await say("--json", "--site", String(other)));
  expect(answer).toMatchObject({ losses: [], unreadable: ["2020-01-15"] });
});

test("what is wrong with the command is said", async () => {
  await expect(say("--site", "4711")).rejects.toThrow("there is no deployment site 4711");
  await expect(say("--site", "www.example.com")).rejects.toThrow("--site takes a number");
  await expect(say("--days", "0")).rejects.toThrow("--days takes a number, not 0");
  await expect(say("--days", "20000")).rejects.toThrow("/days");
  const tail = async (): Promise<string> =>
    run(centralLogsCommand, ["tail", "--state-dir", stateDir]);
  await expect(tail()).rejects.toThrow("logs tail: only losses");
});
