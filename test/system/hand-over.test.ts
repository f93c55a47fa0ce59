// An agent hands over to a successor under visitors: nobody is refused or cut, each answer has one record, what was under way is answered. What goes wrong on the way
// leaves somebody serving, or nobody with the state directory free: releases that do not start, that crash when they take over; kills of either process at every step.

import { Agent } from "node:http";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { domain, walkLogs } from "../support/customer-script.ts";
import { mainFile, Program } from "../support/process.ts";
import {
  childrenOf,
  isAlive,
  shellsOf,
  moments,
  parentOf,
  ReplacedAgent,
} from "../support/replaced-agent.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 });

let agent: ReplacedAgent;

beforeAll(async () => {
  agent = await ReplacedAgent.open();
});
afterAll(async () => agent[Symbol.asyncDispose]());

/** Resolves when central has one record of the path. */
async function hasOneRecord(path: string): Promise<void> {
  const isThere = async (): Promise<boolean> => {
    const rows = await walkLogs(agent.edge.api, agent.script.siteId, domain);
    return rows.filter((row) => row.uri_path === path).length === 1;
  };
  await until("its record", isThere, 60_000);
}

test("a release takes over under visitors: each is answered once and has one record", async () => {
  const before = await agent.facts();
  const first = agent.edge.agent;
  agent.slow = Promise.withResolvers();
  const visited: string[] = ["/private?slow"];
  const statuses = new Set<number>();
  const done = new AbortController();
  const visitors = Array.from({ length: 8 }, async (_, no) => {
    for (let i = 0; !done.signal.aborted; i++) {
      const path = `/private?${no}-${i}`;
      statuses.add(await agent.served(path));
      visited.push(path);
      await sleep(20);
    }
  });
  // Answers come from the one before for a second more.
  let late = Promise.resolve(0);
  const asked = await agent.replace(mainFile, ({ step }) => {
    if (step === "ready") late = agent.served("/private?slow");
  });
  expect(asked).toEqual({ steps: ["started", "ready"], why: undefined });
  await until("it is the main process", async () => agent.mainPid !== before.pid, 120_000);
  // Begun at the one before, answered by it when its successor serves.
  expect(first.ended).toBe(false);
  // systemd waits for the end of its own children only.
  expect([before.pid, ...childrenOf(before.pid)]).not.toContain(parentOf(agent.mainPid));
  agent.slow.resolve();
  expect(await late).toBe(200);
  done.abort();
  await Promise.all(visitors);
  expect([...statuses]).toEqual([200]);
  expect(await agent.facts()).toEqual({
    pid: agent.mainPid,
    version: expect.any(String),
    returned: null,
  });
  await until("the one before has ended", async () => first.ended, 60_000);
  const rows = await until(
    "every record has come",
    async () => {
      const all = await walkLogs(agent.edge.api, agent.script.siteId, domain);
      const paths = all.map(({ uri_path: path }) => path);
      return visited.every((path) => paths.includes(path)) && paths;
    },
    120_000,
  );
  expect(rows.filter((path) => visited.includes(path)).toSorted()).toEqual(visited.toSorted());
});

test("bots that come during a hand-over are counted once each, those that ask the one before when it has handed over as well", async () => {
  let visits = 0;
  const visit = async (connection?: Agent): Promise<void> => {
    const asked = { host: domain, userAgent: "curl/8.14.1", agent: connection };
    expect((await agent.edge.visit("/", asked)).status).toBe(403);
    visits++;
  };
  const done = new AbortController();
  const visitors = Array.from({ length: 4 }, async () => {
    while (!done.signal.aborted) {
      await visit();
      await sleep(20);
    }
  });
  const connections = Array.from({ length: 20 }, () => new Agent({ keepAlive: true }));
  await Promise.all(connections.map(visit));
  const { old } = await agent.comeTo("taken");
  await Promise.all(connections.map(visit));
  await until("the one before has ended", async () => !isAlive(old), 120_000);
  done.abort();
  await Promise.all(visitors);
  for (const connection of connections) connection.destroy();
  const counted = async (): Promise<number> => {
    const { body } = await agent.edge.api.get("/unreviewed-bots/");
    const [listed] = body as readonly { bots: readonly { name: string; requests: number }[] }[];
    return listed?.bots.find(({ name }) => name === "curl")?.requests ?? 0;
  };
  await until("all are told", async () => (await counted()) >= visits, 120_000);
  expect(await counted()).toBe(visits);
});

test.each([
  ["another unit", { unit: "another" }, /brings another unit/],
  ["no unit", { unit: undefined }, /brings another unit/],
  ["no program", { program: undefined }, /takes node, program and version/],
  ["no Node", { node: "/nowhere" }, /cannot be started/],
])("refused before anything changes: %s", async (_, asked, why) => {
  const before = await agent.facts();
  expect((await agent.replace(mainFile, undefined, asked)).why).toMatch(why);
  expect(await agent.facts()).toEqual(before);
  expect(await agent.served()).toBe(200);
});

test("settings that are not valid, or a release that crashes at its start: the agent serves on, and says why", async () => {
  const before = await agent.facts();
  const right = readFileSync(agent.config, "utf8");
  writeFileSync(agent.config, `${right}\nlog_level: loud\n`);
  await using command = await Program.start(["agent", "replace", "--state-dir", agent.stateDir]);
  expect(await command.exited()).toBe(1);
  expect(command.said).toMatch(/log_level must be one of/);
  writeFileSync(agent.config, right);
  const { steps, why } = await agent.replace(bad("crashes-at-start"));
  expect(steps).toEqual(["started", "failed"]);
  expect(why).toMatch(/version next ended with exit status 1/);
  expect(await agent.facts()).toEqual(before);
  expect(await agent.served()).toBe(200);
});

test("the command says who serves", async () => {
  await using command = await Program.start([
    "agent",
    "replace",
    "--config",
    agent.config,
    "--json",
  ]);
  expect({ code: await command.exited(), said: command.said }).toMatchObject({ code: 0 });
  expect(JSON.parse(command.said)).toEqual({ ...(await agent.facts()), pid: agent.mainPid });
});

test("a release that crashes when it takes over: the one before takes its place again, and warns", async () => {
  const before = await agent.facts();
  expect((await agent.replace(bad("crashes-when-it-takes-over"))).why).toBeUndefined();
  const answered = agent.served(); // Waits at the socket until somebody accepts.
  const after = await until("another process", async () => {
    const now = await agent.facts();
    return now.pid !== before.pid && now;
  });
  expect(await answered).toBe(200);
  expect(after.returned).toBe("the successor ended with exit status 7");
  await until("it is the main process", async () => agent.mainPid === after.pid);
  await using status = await Program.start(["agent", "status", "--config", agent.config, "--json"]);
  await status.exited();
  expect(status.said).toMatch(/"code": "hand_over_failed"/);
});

/** A release by the name of what it does wrong. */
function bad(how: string): string {
  const path = join(agent.edge.dir, `${how}.mjs`);
  copyFileSync(join(import.meta.dirname, "../support/bad-release.mjs"), path);
  return path;
}

test.each(moments)("the successor is killed when it is %s", async (moment) => {
  const { old, now } = await agent.killSuccessor(moment);
  expect(agent.violations).toEqual([]);
  // Before it has taken anything, nothing has been given up.
  if (moment === "started") expect(now.pid).toBe(old);
});

test.each(moments)("the agent before is killed when its successor is %s", async (moment) => {
  const { next, now } = await agent.killPredecessor(moment);
  expect(agent.violations).toEqual([]);
  if (moment === "main") expect(now.pid).toBe(next);
});

test("a release that says anything takes nobody with it", async () => {
  const before = await agent.facts();
  expect((await agent.replace(bad("says-anything"))).why).toBeUndefined();
  const after = await until("another process", async () => {
    const now = await agent.facts();
    return now.pid !== before.pid && now;
  });
  expect(after.returned).toBe("the successor ended with exit status 0");
  expect(await agent.served()).toBe(200);
  expect(agent.violations).toEqual([]);
});

test("a release that closes its channel is given up at once, and ended", async () => {
  const before = await agent.facts();
  const { why } = await agent.replace(bad("closes-its-channel"));
  expect(why).toBe("version next closed its channel");
  expect(await agent.facts()).toEqual(before);
  await until("it has ended", async () => agent.left.every((pid) => pid === before.pid), 30_000);
});

test.each(["started", "taken"] as const)(
  "what stands between the two is killed when the successor is %s: it takes over all the same",
  async (moment) => {
    const { old, next } = await agent.comeTo(moment);
    const shells = shellsOf(old);
    // It may have ended by itself where the successor serves already.
    if (moment === "started") expect(shells).toHaveLength(1);
    for (const pid of shells) agent.kill(pid);
    await until("it is the main process", async () => agent.mainPid === next, 120_000);
    expect((await agent.facts()).pid).toBe(next);
    expect(await agent.served()).toBe(200);
    expect(agent.violations).toEqual([]);
    await until("the one before has ended", async () => !isAlive(old), 60_000);
  },
);

test("a successor that dies when it serves: the agent before ends at once, whomever it answers, for systemd to start the unit anew", async () => {
  const { pid: old } = await agent.facts();
  agent.slow = Promise.withResolvers();
  const cut = agent.served("/private?slow").catch(() => "cut");
  await sleep(200);
  expect((await agent.replace(bad("dies-when-it-serves"))).why).toBeUndefined();
  // The drain grace is longer.
  await until("it ends", async () => !isAlive(old), 8_000);
  expect(await cut).toBe("cut");
  agent.slow.resolve();
  await agent.end();
  await agent.start();
  expect(await agent.served()).toBe(200);
  expect(agent.violations).toEqual([]);
});

test("a second hand-over waits for what the agent before still answers: each has its record", async () => {
  const path = `/private?slow-${Date.now()}`;
  agent.slow = Promise.withResolvers();
  const late = agent.served(path);
  await sleep(200);
  const { pid: first } = await agent.facts();
  expect((await agent.replace()).why).toBeUndefined();
  await until("another one serves", async () => agent.mainPid !== first, 120_000);
  const second = agent.mainPid;
  expect((await agent.facts()).pid).toBe(second);
  const again = agent.replace();
  await sleep(1_000);
  expect(isAlive(first)).toBe(true);
  agent.slow.resolve();
  expect(await late).toBe(200);
  expect((await again).why).toBeUndefined();
  await until("a third one serves", async () => agent.mainPid !== second, 120_000);
  await hasOneRecord(path);
  expect(agent.violations).toEqual([]);
});

test("what the agent before still changes at the origin is stored no longer by its successor, before the visitor is told", async () => {
  const path = `/kept-${Date.now()}`;
  const cacheStatus = async (): Promise<unknown> =>
    (await agent.edge.visit(path, { host: domain })).headers["cache-status"];
  const isStored = async (): Promise<boolean> => String(await cacheStatus()).includes("; hit");
  await until("it is stored", isStored);
  agent.slow = Promise.withResolvers();
  const change = agent.edge.visit(path, { host: domain, method: "POST", body: "another" });
  await sleep(200);
  const { old } = await agent.comeTo("main");
  await until("it is stored there", isStored);
  agent.slow.resolve();
  expect((await change).status).toBe(200);
  expect(await cacheStatus()).toContain("fwd=uri-miss");
  await until("the one before has ended", async () => !isAlive(old), 60_000);
  expect(agent.violations).toEqual([]);
});

test.each(["main", "all"] as const)(
  "a stop that reaches %s, while the agent before still answers: what it answers has its record",
  async (reaches) => {
    const path = `/private?slow-${reaches}-${Date.now()}`;
    agent.slow = Promise.withResolvers();
    const late = agent.served(path);
    await sleep(200);
    await agent.comeTo("main");
    const stopped = agent.stop(reaches);
    // A stop with nothing under way takes less.
    await sleep(5_000);
    agent.slow.resolve();
    expect(await late).toBe(200);
    await stopped;
    await until("nobody is left", async () => agent.left.length === 0, 30_000);
    await agent.end();
    await agent.start();
    await hasOneRecord(path);
    expect(agent.violations).toEqual([]);
  },
);

test.each([
  ["started", "main"],
  ["ready", "main"],
  ["taken", "main"],
  ["started", "all"],
  ["ready", "all"],
  ["taken", "all"],
  ["main", "all"],
] as const)(
  "a stop when the successor is %s reaches %s: nobody is left, and the state is free",
  async (moment, reaches) => {
    await agent.comeTo(moment);
    await agent.stop(reaches);
    await until("nobody is left", async () => agent.left.length === 0, 30_000);
    await agent.end();
    await agent.start();
    expect(await agent.served()).toBe(200);
    expect(agent.violations).toEqual([]);
  },
);
