// An agent hands over to a successor under visitors: nobody is refused or cut, each answer has one record, what was under way is answered. What goes wrong on the way
// leaves somebody serving, or nobody with the state directory free: releases that do not start, that crash when they take over; kills of either process at every step.

import { copyFileSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { callControl } from "../../src/base/control-socket.ts";
import { unitLevel, unitLevelVariable } from "../../src/base/unit-level.ts";
import { CustomerScript, domain, walkLogs } from "../support/customer-script.ts";
import { DatagramReader } from "../support/datagrams.ts";
import { Edge } from "../support/edge.ts";
import { mainFile, node, Program } from "../support/process.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 });

let stack: AsyncDisposableStack;
let edge: Edge;
let script: CustomerScript;
let notifySocket = "";
/** The main process of the unit, as it was told to systemd. */
let mainPid = 0;
/** Every process that was seen. */
const pids = new Set<number>();
/** Answers of the origin to /private?slow wait for it. */
let slow = Promise.withResolvers<void>();

beforeAll(async () => {
  stack = new AsyncDisposableStack();
  const origin = createServer((request, response) => {
    const answer = (): void => void response.end("the origin's\n");
    if (request.url?.includes("slow") === true) void slow.promise.then(answer);
    else answer();
  });
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  stack.defer(() => origin.closeAllConnections());
  const address = origin.address();
  const port = typeof address === "object" ? address?.port : 0;
  edge = stack.use(await Edge.prepare());
  notifySocket = `@accel-hand-over-${process.pid}`;
  const systemd = stack.use(await DatagramReader.at(notifySocket));
  void followMain(systemd);
  await edge.startCentral();
  script = new CustomerScript(edge, `http://127.0.0.1:${port}`, "hand-over");
  await script.enrol();
  await start();
  for (const { run } of script.steps().slice(0, 2)) await run();
  stack.defer(end);
});
afterAll(async () => stack.disposeAsync());

async function followMain(systemd: DatagramReader): Promise<void> {
  for (let said = await systemd.next(); said !== ""; said = await systemd.next())
    mainPid = Number(/^MAINPID=(\d+)$/m.exec(said)?.[1] ?? mainPid);
}

async function start(): Promise<void> {
  const unit = `${unitLevelVariable}=${unitLevel}`;
  await edge.startAgent(undefined, ["env", `NOTIFY_SOCKET=${notifySocket}`, unit]);
  mainPid = edge.agent.pid;
  pids.add(mainPid);
}

async function end(): Promise<void> {
  for (const pid of pids) kill(pid);
  await until("all have ended", async () => [...pids].every((pid) => !isAlive(pid)));
  pids.clear();
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** A zombie, whose parent has not heard of its end yet, is none. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function childrenOf(pid: number): readonly string[] {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").trim().split(" ").filter(Boolean),
  );
}

const config = (): string => join(edge.dir, "agent.yaml");

async function* control(command: string, parameters: unknown): AsyncGenerator {
  const path = join(edge.dir, "agent", "control.sock");
  yield* callControl(path, command, parameters, AbortSignal.timeout(120_000));
}

type Facts = { readonly pid: number; readonly returned: string | null };

async function facts(): Promise<Facts> {
  return until(
    "an agent answers operators",
    async () => {
      try {
        for await (const said of control("process", {})) {
          const now = said as Facts;
          pids.add(now.pid);
          return now;
        }
      } catch {
        // Between two of them nobody does.
      }
      return undefined;
    },
    120_000,
  );
}

/** Asks the agent to hand over to a program. Resolves with the steps that it told, and with why it did not. */
async function replace(
  program: string,
  onStep: (step: { readonly step: string; readonly pid: number }) => void = () => undefined,
  more: Readonly<Record<string, unknown>> = {},
): Promise<{ readonly steps: readonly string[]; readonly why: string | undefined }> {
  const steps: string[] = [];
  try {
    const asked = { node, program, version: "next", unit: unitLevel, ...more };
    for await (const raw of control("replace", asked)) {
      const step = raw as { readonly step: string; readonly pid: number; readonly reason?: string };
      if (step.pid !== 0) pids.add(step.pid);
      steps.push(step.step);
      onStep(step);
      if (step.reason !== undefined) return { steps, why: step.reason };
    }
    return { steps, why: undefined };
  } catch (error) {
    return { steps, why: error instanceof Error ? error.message : String(error) };
  }
}

const served = async (path = "/private"): Promise<number> =>
  (await edge.visit(path, { host: domain })).status;

test("a release takes over under visitors: each is answered once and has one record", async () => {
  const before = await facts();
  const { agent } = edge;
  slow = Promise.withResolvers();
  const visited: string[] = ["/private?slow"];
  const statuses = new Set<number>();
  const done = new AbortController();
  const visitors = Array.from({ length: 8 }, async (_, no) => {
    for (let i = 0; !done.signal.aborted; i++) {
      const path = `/private?${no}-${i}`;
      statuses.add(await served(path));
      visited.push(path);
      await sleep(20);
    }
  });
  // Answers come from the one before for a second more.
  let late = Promise.resolve(0);
  const asked = await replace(mainFile, ({ step }) => {
    if (step === "ready") late = served("/private?slow");
  });
  expect(asked).toEqual({ steps: ["started", "ready"], why: undefined });
  await until("it is the main process", async () => mainPid !== before.pid, 120_000);
  // Begun at the one before, answered by it when its successor serves.
  expect(agent.ended).toBe(false);
  // systemd waits for the end of its own children only.
  expect(childrenOf(before.pid)).toEqual([]);
  slow.resolve();
  expect(await late).toBe(200);
  done.abort();
  await Promise.all(visitors);
  expect([...statuses]).toEqual([200]);
  expect(await facts()).toEqual({ pid: mainPid, version: expect.any(String), returned: null });
  await until("the one before has ended", async () => agent.ended, 60_000);
  const rows = await until(
    "every record has come",
    async () => {
      const all = await walkLogs(edge.api, script.siteId, domain);
      const paths = all.map(({ uri_path: path }) => path);
      return visited.every((path) => paths.includes(path)) && paths;
    },
    120_000,
  );
  expect(rows.filter((path) => visited.includes(path)).toSorted()).toEqual(visited.toSorted());
});

test.each([
  ["another unit", { unit: "another" }, /brings another unit/],
  ["no unit", { unit: undefined }, /brings another unit/],
  ["no program", { program: undefined }, /takes node, program and version/],
  ["no Node", { node: "/nowhere" }, /cannot be started/],
])("refused before anything changes: %s", async (_, asked, why) => {
  const before = await facts();
  expect((await replace(mainFile, undefined, asked)).why).toMatch(why);
  expect(await facts()).toEqual(before);
  expect(await served()).toBe(200);
});

test("settings that are not valid, or a release that crashes at its start: the agent serves on, and says why", async () => {
  const before = await facts();
  const right = readFileSync(config(), "utf8");
  writeFileSync(config(), `${right}\nlog_level: loud\n`);
  await using command = await Program.start([
    "agent",
    "replace",
    "--state-dir",
    join(edge.dir, "agent"),
  ]);
  expect(await command.exited()).toBe(1);
  expect(command.said).toMatch(/log_level must be one of/);
  writeFileSync(config(), right);
  const { steps, why } = await replace(bad("crashes-at-start"));
  expect(steps).toEqual(["started", "failed"]);
  expect(why).toMatch(/version next ended with exit status 1/);
  expect(await facts()).toEqual(before);
  expect(await served()).toBe(200);
});

test("the command says who serves", async () => {
  await using command = await Program.start(["agent", "replace", "--config", config(), "--json"]);
  expect({ code: await command.exited(), said: command.said }).toMatchObject({ code: 0 });
  expect(JSON.parse(command.said)).toEqual({ ...(await facts()), pid: mainPid });
});

test("a release that crashes when it takes over: the one before takes its place again, and warns", async () => {
  const before = await facts();
  expect((await replace(bad("crashes-when-it-takes-over"))).why).toBeUndefined();
  const answered = served(); // Waits at the socket until somebody accepts.
  const after = await until("another process", async () => {
    const now = await facts();
    return now.pid !== before.pid && now;
  });
  expect(await answered).toBe(200);
  expect(after.returned).toBe("the successor ended with exit status 7");
  await until("it is the main process", async () => mainPid === after.pid);
  await using status = await Program.start(["agent", "status", "--config", config(), "--json"]);
  await status.exited();
  expect(status.said).toMatch(/"code": "hand_over_failed"/);
});

/** A release by the name of what it does wrong. */
function bad(how: string): string {
  const path = join(edge.dir, `${how}.mjs`);
  copyFileSync(join(import.meta.dirname, "../support/bad-release.mjs"), path);
  return path;
}

/** Whether it has the state. */
function hasTaken(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`).endsWith("/agent/agent.db");
      } catch {
        return false; // Closed meanwhile.
      }
    });
  } catch {
    return false;
  }
}

const moments = ["started", "ready", "taken", "main"] as const;

/** Has the agent hand over, and resolves when it has come so far. */
async function comeTo(moment: (typeof moments)[number]): Promise<{ old: number; next: number }> {
  const { pid: old } = await facts();
  const wanted = moment === "started" ? "started" : "ready";
  const next = await until("a successor", async () => {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    // Where the agent has not heard yet that another one ended, it is asked again.
    void replace(mainFile, ({ step, pid }) => {
      if (step === wanted) resolve(pid);
    }).then(() => resolve(undefined));
    return promise;
  });
  if (moment === "taken") await until("it has the state", () => hasTaken(next), 120_000);
  if (moment === "main") await until("it is the main process", () => mainPid === next, 120_000);
  return { old, next };
}

test.each(moments)("the successor is killed when it is %s", async (moment) => {
  const { old, next } = await comeTo(moment);
  kill(next);
  if (moment === "main") {
    // systemd, whose child it is, starts the unit anew, and ends the one before if that still lives.
    await until("the one before ends", async () => !isAlive(old), 60_000);
    await end();
    await start();
  }
  expect(await served()).toBe(200);
  const now = await facts();
  // Before it has taken anything, nothing has been given up.
  if (moment === "started") expect(now.pid).toBe(old);
  expect(now.pid).not.toBe(next);
  expect(isAlive(now.pid)).toBe(true);
});

test.each(moments)("the agent before is killed when its successor is %s", async (moment) => {
  const { old, next } = await comeTo(moment);
  kill(old);
  if (moment === "main") expect((await facts()).pid).toBe(next);
  else {
    // systemd follows the one before, and starts the unit anew: nobody may be in the way.
    await until("the successor ends", async () => !isAlive(next), 60_000);
    await end();
    await start();
  }
  expect(await served()).toBe(200);
});
