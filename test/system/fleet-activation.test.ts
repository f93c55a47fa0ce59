// `require: "all"` with a real central and three real agents at two deployments: all have a version or none has it, whoever dies, refuses, or comes late.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Edge, visit } from "../support/edge.ts";
import { startFurtherAgent, type FurtherAgent, type Site } from "../support/further-agent.ts";
import { until } from "../support/until.ts";

const domain = "fleet.example.com";
/** Much more than it takes: machines may be busy with other tests. */
const withinMs = 120_000;

type Version = {
  readonly id: number;
  readonly name: string;
  readonly is_active: boolean;
  readonly activation: string | null;
  readonly fleet?: {
    readonly state: string;
    readonly reason: string | null;
    readonly votes: readonly { readonly vote: string }[];
  };
};

const stack = new AsyncDisposableStack();
let edge: Edge;
let further: readonly FurtherAgent[];
let ports: readonly number[];
/** The address of an origin that answers each request with its name. */
const origins = new Map<string, string>();
/** Everything that visitors were answered since it was emptied, by port. */
const seen: (readonly [port: number, name: string])[] = [];

beforeAll(async () => {
  edge = stack.use(await Edge.prepare());
  await edge.startCentral();
  const { api } = edge;
  const trial = await api.post("/trial/", { username: "fleet", email: "fleet@example.com" });
  api.token = (trial.body as { readonly token: string }).token;
  const sites: Site[] = [];
  for (const tags of ["eu", "us"])
    sites.push((await api.post("/deployment-site/", { tags })).body as Site);
  const [eu, us] = sites;
  if (eu === undefined || us === undefined) throw new Error("no sites");
  await api.post("/domain/", { name: domain, deployment_site_id: eu.id });
  await api.put(`/domain/${domain}/`, { deployment_site_id: us.id });
  edge.writeAgentSettings(eu);
  await edge.startAgent();
  further = [
    stack.use(await startFurtherAgent(edge, eu, "eu-2")),
    stack.use(await startFurtherAgent(edge, us, "us-1")),
  ];
  ports = [edge.ports.visitors, ...further.map(({ port }) => port)];
  for (const name of ["one", "two", "three", "four", "five"]) await publish(name);
  const first = await activate("one", { deadline_s: 120 }, 30);
  expect(first.fleet?.state).toBe("activated");
  await served("one");
  const browsing = new AbortController();
  const visits = Promise.all(ports.map(async (port) => browse(port, browsing.signal)));
  stack.defer(async () => {
    browsing.abort();
    await visits;
  });
});
afterAll(async () => stack.disposeAsync());

/** A version whose pages come from an origin of its own. */
async function publish(name: string, backend?: string): Promise<void> {
  const server = createServer((_, response) => {
    response.writeHead(200, { "cache-control": "no-store" }).end(name);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = backend ?? `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  origins.set(name, url);
  const content = JSON.stringify({ domains: { [domain]: { backend: { urls: [url] } } } });
  const made = await edge.api.post(`/${domain}/devlove/${name}/`, { schema: "devlove/1", content });
  expect(made.status).toBe(201);
}

async function version(name: string): Promise<Version> {
  const all = (await edge.api.get(`/active-viewset/${domain}/`)).body as readonly Version[];
  const found = all.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no version ${name}`);
  return found;
}

async function activate(name: string, more: object = {}, waitS = 0): Promise<Version> {
  const { id } = await version(name);
  const path = `/active-viewset/${domain}/${id}/?wait=${waitS}`;
  const { status, body } = await edge.api.put(path, { require: "all", ...more });
  expect([status, status === 200 ? "" : body]).toEqual([200, ""]);
  return body as Version;
}

async function ended(name: string): Promise<NonNullable<Version["fleet"]>> {
  const state = async () => (await version(name)).fleet;
  await until(
    `${name} is decided on`,
    async () => (await state())?.state !== "preparing",
    withinMs,
  );
  const fleet = await state();
  if (fleet === undefined) throw new Error(`${name} was not asked for`);
  return fleet;
}

async function answer(port: number): Promise<string> {
  const { status, body } = await visit(port, "/", { host: domain });
  return status === 200 ? body.toString() : `status ${status}`;
}

/** Resolves when all agents serve it. */
async function served(name: string): Promise<void> {
  await until(
    `all serve ${name}`,
    async () => (await Promise.all(ports.map(answer))).every((body) => body === name),
    withinMs,
  );
}

async function browse(port: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // An agent that a test stops answers nobody.
    const name = await answer(port).catch(() => undefined);
    if (name !== undefined) seen.push([port, name]);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("all have it: decided when the last one is ready", async () => {
  const began = performance.now();
  const { fleet, is_active: isActive } = await activate("two", {}, 30);
  const decidedMs = performance.now() - began;
  expect({ fleet, isActive }).toMatchObject({
    fleet: { state: "activated", votes: [{ vote: "yes" }, { vote: "yes" }, { vote: "yes" }] },
    isActive: true,
  });
  await served("two");
  process.stderr.write(
    `fleet: decided and proved by three agents in ${Math.round(decidedMs)} ms\n`,
  );
  expect((await version("two")).activation).toBe("applied");
});

test("one refuses it: nothing changes anywhere, and the reason is told", async () => {
  seen.length = 0;
  // Only that agent listens there itself, so to it alone this origin is a circle.
  await publish("circle", `http://127.0.0.1:${further[1]?.port}`);
  const { fleet, is_active: isActive } = await activate("circle", {}, 30);
  expect(isActive).toBe(false);
  expect(fleet).toMatchObject({ state: "aborted", reason: expect.stringContaining("refuses it") });
  expect(await version("two")).toMatchObject({ is_active: true, activation: "applied" });
  expect([...new Set(seen.map(([, name]) => name))]).toEqual(["two"]);
});

test("one is silent: the deadline gives it up, nothing changes, and nobody goes on waiting", async () => {
  seen.length = 0;
  const { pid } = further[0]?.program ?? { pid: 0 };
  process.kill(pid, "SIGSTOP");
  try {
    await activate("three", { deadline_s: 5 });
    const fleet = await ended("three");
    expect(fleet).toMatchObject({ state: "aborted", reason: expect.stringContaining("deadline") });
  } finally {
    process.kill(pid, "SIGCONT");
  }
  expect(new Set(seen.map(([, name]) => name))).toEqual(new Set(["two"]));
  await until(
    "it is in touch again",
    async () => (await answer(ports[1] ?? 0)) === "two",
    withinMs,
  );
});

test("one that was away for the decision follows by the journal before it serves anything else", async () => {
  const away = further[1];
  await away?.program.kill();
  // An instance whose channel central still takes for open is asked, and cannot answer.
  await until(
    "its channel is closed",
    async () => (await activateAgain("three"))?.state === "activated",
    withinMs,
  );
  expect(await version("three")).toMatchObject({ is_active: true });
  await away?.program.restart();
  await served("three");
  // It serves it a moment before central has its receipt.
  await until(
    "it is proved",
    async () => (await version("three")).activation === "applied",
    withinMs,
  );
});

/** Asks again where the one before was given up. */
async function activateAgain(name: string): Promise<Version["fleet"]> {
  const { fleet } = await activate(name, { deadline_s: 5 }, 10);
  return fleet;
}

test("one is killed after its vote, central before its decision: both come back, and it is decided", async () => {
  const { pid } = further[0]?.program ?? { pid: 0 };
  process.kill(pid, "SIGSTOP"); // So that the decision waits for it.
  await activate("four", { deadline_s: 300 });
  await until(
    "two have voted",
    async () =>
      ((await version("four")).fleet?.votes ?? []).filter(({ vote }) => vote === "yes").length ===
      2,
    withinMs,
  );
  await further[1]?.program.kill();
  await edge.central.kill();
  await edge.central.restart();
  await further[1]?.program.restart();
  process.kill(pid, "SIGCONT");
  expect(await ended("four")).toMatchObject({ state: "activated" });
  await served("four");
});

test("no visitor met a version that was never decided, and each agent's versions go forward", () => {
  const order = ["one", "two", "three", "four"];
  for (const port of ports) {
    const names = seen.filter(([at]) => at === port).map(([, name]) => name);
    expect(names.filter((name) => !order.includes(name) && !name.startsWith("status"))).toEqual([]);
    const places = names.map((name) => order.indexOf(name)).filter((place) => place >= 0);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  }
});
