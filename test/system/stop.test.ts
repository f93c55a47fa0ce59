// A stop of the unit under visitors who come on new connections. As under systemd another hold of the listening sockets outlives every process of the unit; the test has
// it. Behind a stop nobody accepts again: each visitor is answered, or refused at once and goes to another host. Behind a restart each who comes waits.

import { connect } from "node:net";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { systemCode } from "../../src/core/faults.ts";
import { HeldSockets } from "../support/held-sockets.ts";
import { NewVisitors } from "../support/new-visitors.ts";
import { Program } from "../support/process.ts";
import { childrenOf, isAlive, ReplacedAgent, shellsOf } from "../support/replaced-agent.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 });

let agent: ReplacedAgent;

beforeAll(async () => {
  agent = await ReplacedAgent.open();
});
beforeEach(async () => {
  await agent.end();
  await agent.start();
});
afterAll(async () => agent[Symbol.asyncDispose]());

const visitors = (): NewVisitors =>
  new NewVisitors(async () => agent.served(`/private?${Math.random()}`));
const heldOf = (pid: number): HeldSockets => HeldSockets.of(pid, agent.edge.ports.visitors);

const leaves = "the next start sends the records that are left";

/** Resolves when so many have been served and a few refused. */
async function areRefused(coming: NewVisitors): Promise<void> {
  await until("visitors are refused", async () => (coming.fared["ECONNREFUSED"] ?? 0) > 5, 60_000);
}

/** Whoever waits instead is taken by nobody. */
async function isRefused(): Promise<boolean> {
  const visitor = connect(agent.edge.ports.visitors, "127.0.0.1");
  const fared = await once(visitor, "connect").then(() => "connected", systemCode);
  visitor.destroy();
  return fared === "ECONNREFUSED";
}

async function stopped(): Promise<void> {
  await until("nobody is left", async () => agent.left.length === 0, 60_000);
}

test("a stop: each who comes is answered or refused, to the end and behind it", async () => {
  using _store = heldOf(agent.mainPid);
  const coming = visitors();
  await until("they are served", async () => (coming.fared["200"] ?? 0) > 5);
  agent.job = "stop";
  const stop = agent.stop("all");
  await areRefused(coming);
  await stop;
  await stopped();
  await coming.leave();
  await until("each has fared somehow", () => coming.waiting === 0, 10_000);
  expect(Object.keys(await coming.end()).toSorted()).toEqual(["200", "ECONNREFUSED"]);
  expect(agent.edge.agent.said).toMatch(/"is_started_again":false/);
  expect(agent.edge.agent.said).not.toContain(leaves);
});

test.each(["all", "main"] as const)(
  "a stop that reaches %s behind a hand-over: nobody waits while the agent before answers for long",
  async (reaches) => {
    agent.slow = Promise.withResolvers();
    const late = agent.served(`/private?slow-stop-${reaches}-${Date.now()}`);
    await sleep(200);
    const { old, next } = await agent.comeTo("main");
    using _store = heldOf(next);
    const coming = visitors();
    await until("they are served", async () => (coming.fared["200"] ?? 0) > 5);
    agent.job = "stop";
    const stop = agent.stop(reaches);
    await areRefused(coming);
    // Neither process has ended: what the one before answers is waited for.
    expect([old, next].map(isAlive)).toEqual([true, true]);
    agent.slow.resolve();
    expect(await late).toBe(200);
    await stop;
    await stopped();
    await coming.leave();
    await until("each has fared somehow", () => coming.waiting === 0, 10_000);
    expect(Object.keys(await coming.end()).toSorted()).toEqual(["200", "ECONNREFUSED"]);
    expect(agent.violations).toEqual([]);
  },
);

test("a restart right behind a hand-over: visitors are served for as long as the agent before answers", async () => {
  agent.slow = Promise.withResolvers();
  const late = agent.served(`/private?slow-restart-${Date.now()}`);
  await sleep(200);
  const { old, next } = await agent.comeTo("main");
  using _store = heldOf(next);
  const coming = visitors();
  agent.job = "restart";
  const stop = agent.stop("all");
  // Longer than an agent without anything under way takes to accept nobody any more.
  await sleep(4_000);
  const served = coming.fared["200"] ?? 0;
  await until("visitors are served", () => (coming.fared["200"] ?? 0) > served + 5, 10_000);
  expect([old, next].map(isAlive)).toEqual([true, true]);
  expect(Object.keys(coming.fared)).toEqual(["200"]);
  agent.slow.resolve();
  expect(await late).toBe(200);
  await stop;
  await stopped();
  await coming.leave();
  expect(agent.violations).toEqual([]);
});

test("a stop while a successor takes the state: nobody waits for an agent that does not come", async () => {
  const { next } = await agent.comeTo("taken");
  using _store = heldOf(next);
  agent.job = "stop";
  const stop = agent.stop("main");
  await until("the one before refuses", async () => isRefused(), 60_000);
  await stop;
  await stopped();
  expect(await isRefused()).toBe(true);
});

test("a restart: who comes when nobody accepts waits for the next start, and not for records to be sent", async () => {
  using _store = heldOf(agent.mainPid);
  agent.job = "restart";
  await agent.stop("all");
  await stopped();
  const waiting = connect(agent.edge.ports.visitors, "127.0.0.1");
  await once(waiting, "connect");
  waiting.destroy();
  expect(agent.edge.agent.said).toMatch(/"is_started_again":true/);
  expect(agent.edge.agent.said).toContain(leaves);
});

test("the agent is killed while its successor starts: the command says who serves then", async () => {
  const { pid: old } = await agent.facts();
  await using command = await Program.start(["agent", "replace", "--config", agent.config]);
  const started = await until(
    "a successor is started",
    async () => {
      const shells = shellsOf(old);
      const successors = shells.flatMap(childrenOf);
      return successors.length > 0 && [...shells, ...successors];
    },
    60_000,
  );
  // systemd ends what is left of the unit before it starts it again.
  for (const pid of [old, ...started]) agent.kill(pid);
  await until("all have ended", async () => ![old, ...started].some(isAlive));
  await agent.end();
  await agent.start();
  expect(await command.exited()).toBe(1);
  expect(command.said).toMatch(
    new RegExp(
      `version \\S+ \\(process ${old}\\) did not say how its hand-over ended; it has ended, and version \\S+ serves \\(process ${agent.mainPid}\\)`,
    ),
  );
});
