// Request records as operators see them, over the real programs: read along while they come, the balance by lane, a canary that goes the whole way,
// and the programs' own log whose level changes while they run.

import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { parse, stringify } from "yaml";
import { CustomerScript, domain, walkLogs } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { startOrigin, type Origin } from "../support/origin.ts";
import { mainFile, node, Program } from "../support/process.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 }); // Each starts commands as processes.

let stack: AsyncDisposableStack;
let edge: Edge;
let script: CustomerScript;
let origin: Origin;

beforeAll(async () => {
  stack = new AsyncDisposableStack();
  origin = stack.use(await startOrigin());
  edge = stack.use(await Edge.prepare());
  await edge.startCentral();
  script = new CustomerScript(edge, origin.url, "logs");
  await script.enrol();
  edge.changeAgentSettings({ logs: { canary_interval: "3s" }, log_level: "error" });
  await edge.startAgent();
  for (const { name, run } of script.steps().slice(0, 2)) {
    await run().catch((error: unknown) => {
      throw new Error(name, { cause: error });
    });
  }
});
afterAll(async () => stack.disposeAsync());

const logs = (...args: readonly string[]): Promise<Program> =>
  Program.start(["agent", "logs", ...args, "--state-dir", join(edge.dir, "agent")]);

async function ran(...args: readonly string[]): Promise<string> {
  await using program = await logs(...args);
  expect({ code: await program.exited(), said: program.said }).toMatchObject({ code: 0 });
  return program.said;
}

const linesOf = (text: string): readonly Record<string, unknown>[] =>
  text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line): Record<string, unknown> => JSON.parse(line));

async function metrics(): Promise<string> {
  return (await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`)).text();
}

test("logs tail shows what was asked for, then what comes, for a person and for a program", async () => {
  await edge.visit("/tail?no=1", { host: domain });
  await edge.visit("/elsewhere", { host: "nobody.example.org" });
  const paths = async (...args: readonly string[]): Promise<readonly unknown[]> =>
    linesOf(await ran("tail", "--json", ...args)).map((record) => record["uri_path"]);
  await until("both", async () => {
    const shown = await paths("--lines", "100");
    return shown.includes("/tail?no=1") && shown.includes("/elsewhere");
  });
  expect(await paths("--domain", domain)).not.toContain("/elsewhere");
  expect(await paths("--status", "421")).toEqual(["/elsewhere"]);
  expect(await ran("tail", "--status", "421")).toMatch(
    /^\S+Z 421 none .* GET nobody\.example\.org\/elsewhere 127\.0\.0\.1 /,
  );

  await using following = await logs("tail", "--follow", "--json", "--lines", "1");
  await until("it follows", () => linesOf(following.said).length > 0);
  for (let no = 2; no <= 20; no++) await edge.visit(`/tail?no=${no}`, { host: domain });
  await until("all that came", () => linesOf(following.said).length === 20);
  // Each worker's records come in its order, and those of two workers as they come.
  const followed = linesOf(following.said).map((record) => record["uri_path"]);
  const asked = Array.from({ length: 19 }, (_, no) => `/tail?no=${no + 2}`);
  expect(followed).toEqual(expect.arrayContaining(asked));
  expect(await following.terminate()).toBe(0);
});

test("whoever stops reading ends it without a word", async () => {
  const dir = join(edge.dir, "agent");
  const tail = [mainFile, "agent", "logs", "tail", "--follow", "--lines", "0", "--state-dir", dir];
  const shell = spawn("sh", ["-c", `"$0" "$@" | head -n 1`, node, ...tail], { stdio: "pipe" });
  let said = "";
  for (const stream of [shell.stdout, shell.stderr])
    stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  let isClosed = false;
  shell.once("close", () => (isClosed = true)); // All that it said is there, too.
  await until("the shell ended", async () => {
    await edge.visit("/leaves", { host: domain });
    return isClosed;
  });
  expect(said).toMatch(/^\S+Z 404 .* GET www\.example\.com\/leaves .*\n$/);
});

test("every lane balances, at the metrics and in the backlog, while records come", async () => {
  for (let no = 0; no < 50; no++) await edge.visit(`/balance?no=${no}`, { host: domain });
  const backlog = await until("everything committed", async () => {
    const facts = JSON.parse(await ran("backlog", "--json")) as Record<string, unknown>;
    // The next canary may be on its way.
    const { committed = 0, shipping } = facts;
    return Number(committed) >= 50 && shipping === "idle" && facts;
  });
  const { accepted, committed, spooled, in_memory: inMemory, dropped, lanes } = backlog;
  expect({ accepted, dropped }).toEqual({
    accepted: Number(committed) + Number(spooled) + Number(inMemory),
    dropped: {},
  });
  expect(lanes).toEqual(
    expect.arrayContaining([expect.objectContaining({ live: true, answer: "committed" })]),
  );
  const text = await metrics();
  const series = [
    ...text.matchAll(/^accel_agent_log_lane_records\{lane="([^"]+)",state="([a-z_]+)"\} (\d+)$/gm),
  ];
  const byLane = Map.groupBy(series, ([, lane]) => lane);
  expect(byLane.size).toBe(3); // Two workers and the canary.
  for (const states of byLane.values()) {
    const count = Object.fromEntries(states.map(([, , state, value]) => [state, Number(value)]));
    const sum = ["committed", "spooled", "in_memory", "dropped"].map((state) => count[state] ?? 0);
    expect(sum.reduce((all, each) => all + each, 0)).toBe(count["accepted"]);
  }
});

test("the canary goes the whole way, its age is known here, and no customer sees it", async () => {
  const age = (text: string): number =>
    Number(/^accel_agent_log_canary_age_seconds (\S+)$/m.exec(text)?.[1] ?? Infinity);
  await until("one that arrived", async () => /round_trip_seconds (?!0$)/m.test(await metrics()));
  await until("one of the last moments", async () => age(await metrics()) < 9);
  const rows = await walkLogs(edge.api, script.siteId, domain);
  expect(JSON.stringify(rows)).not.toContain("canary");
});

/** They were started at a level that hides it. */
async function workersSpeak(): Promise<void> {
  await origin[Symbol.asyncDispose]();
  const spoke = /"level":"warn".*"worker":\d.*"msg":"origin gave no answer"/;
  const isSpoken = async (): Promise<boolean> => {
    await edge.visit("/private", { host: domain });
    return spoke.test(edge.agent.said);
  };
  await until("a worker's warning", isSpoken);
}

test.each(["agent", "central"] as const)(
  "%s: one JSON line an event; SIGHUP applies what can change, a wrong file changes nothing",
  async (name) => {
    const program = edge[name];
    const path = join(edge.dir, `${name}.yaml`);
    const hup = (level: string, changes: object = {}): void => {
      const settings = parse(readFileSync(path, "utf8")) as Record<string, unknown>;
      writeFileSync(path, stringify({ ...settings, ...changes, log_level: level }));
      process.kill(program.pid, "SIGHUP");
    };
    const said = (what: RegExp): Promise<unknown> =>
      until(String(what), () => what.test(program.said));
    hup("debug");
    await said(/"log_level":"debug",.*"msg":"settings reloaded"/);
    if (name === "agent") {
      await workersSpeak();
      const { accelerator } = parse(readFileSync(path, "utf8")) as { accelerator: object };
      hup("debug", { accelerator: { ...accelerator, lane: false } });
      await said(/"accelerator.lane":false,"msg":"settings reloaded"/);
      expect((await edge.visit("/private", { host: domain })).status).toBe(502);
    }
    hup("deafening");
    await said(/"level":"error".*"msg":"settings were not reloaded; the old ones stay in force"/);
    hup("error");
    // Nothing is said at that level, but whoever answers twice afterwards has taken the signal before.
    const { metrics: agentPort, central: centralPort } = edge.ports;
    const url = `http://127.0.0.1:${name === "agent" ? agentPort : centralPort}/readyz`;
    for (let asked = 0; asked < 2; asked++) await (await fetch(url)).text();
    process.kill(program.pid, "SIGTERM");
    expect(await program.exited()).toBe(0);
    const lines = program.said.split("\n").filter((line) => line !== "");
    for (const line of lines)
      expect(JSON.parse(line)).toMatchObject({
        level: expect.stringMatching(/^(trace|debug|info|warn|error|fatal)$/),
        time: expect.stringMatching(/Z$/),
        msg: expect.any(String),
      });
    expect(program.said).not.toContain('"msg":"stopping"');
  },
);
