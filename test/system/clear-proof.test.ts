// A clear as customer and operator see it, through the real programs: dry run, proof by instance, the local command, and why a page went.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { browser, Edge } from "../support/edge.ts";
import { startOrigin, type Origin } from "../support/origin.ts";
import { mainFile, node } from "../support/process.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 180_000 }); // Each starts commands as processes.

const stack = new AsyncDisposableStack();
let edge: Edge;
let origin: Origin;

beforeAll(async () => {
  origin = stack.use(await startOrigin());
  edge = stack.use(await Edge.prepare());
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "proof");
  await script.enrol();
  await edge.startAgent();
  for (const { run } of script.steps().slice(0, 2)) await run();
}, 300_000);
afterAll(async () => stack.disposeAsync());

const path = `/clear-accelerator-cache/${domain}/`;

async function cached(page: string): Promise<void> {
  await until(`${page} is cached`, async () => {
    const { headers } = await edge.visit(page, { host: domain, userAgent: browser });
    return String(headers["cache-status"]).includes("hit");
  });
}

async function cli(...args: string[]): Promise<string> {
  const config = ["--config", join(edge.dir, "agent.yaml")];
  const { stdout } = await promisify(execFile)(node, [mainFile, "agent", ...args, ...config]);
  return stdout;
}

type Facts = Record<string, unknown>;
async function why(url: string): Promise<Facts> {
  return JSON.parse(await cli("why", url, "--json")) as Facts;
}

test("a customer sees what a clear would hit, then each instance's proof", async () => {
  await cached("/page/one");
  await cached("/page/two?x=1");
  const patterns = { url_path_patterns: ["path:one", "param:xz3d1"] };
  const dry = await edge.api.post(path, { ...patterns, dry_run: true });
  expect(dry.body).toMatchObject({
    dry_run: true,
    domain,
    deployments: [{ state: "answered", matched: 2, instances: [{ state: "answered" }] }],
  });
  const [answered] = Object(dry.body)["deployments"] as { samples: Facts[] }[];
  const two = answered?.samples.find(({ query }) => query === "x=1");
  expect(two).toMatchObject({ kind: "generated", path: "/page/two", mime: expect.any(String) });
  await cached("/page/one"); // Nothing was cleared.

  const exact = await edge.api.post(path, { url_path_patterns: [two?.["pattern"]] });
  const proof = {
    state: "applied",
    matched: 1,
    removed: 1,
    blocked_in_flight: 0,
    verified: true,
    invisible_ms: expect.any(Number),
    gone_ms: expect.any(Number),
    took_ms: expect.any(Number),
  };
  const { clear_id: id } = exact.body as { clear_id: string };
  await until("the proof is whole", async () => {
    const { body } = await edge.api.get(`${path}${id}/`);
    const [deployment] = Object(body)["deployments"] as Facts[];
    if (deployment?.["verified"] !== true) return false;
    expect(deployment).toMatchObject({ ...proof, instances: [proof] });
    return true;
  });
  await cached("/page/one");
});

test("what was being fetched at a clear is in its proof when the fetch has ended, however long after", async () => {
  const visits = [1, 2].map((no) =>
    edge.visit(`/page/held?no=${no}`, { host: domain, userAgent: browser }),
  );
  await until("the origin is asked", () => origin.held() === 2);
  const given = await edge.api.post(`${path}?wait=30`, { url_path_patterns: ["path:held"] });
  const { clear_id: id } = given.body as { clear_id: string };
  const proof = async (): Promise<Facts> => {
    const { body } = await edge.api.get(`${path}${id}/`);
    const [deployment = {}] = Object(body)["deployments"] as Facts[];
    return deployment;
  };
  await until("the proof is whole", async () => (await proof())["verified"] === true);
  const whole = await proof();
  expect(whole).toMatchObject({ state: "applied", matched: 0, blocked_in_flight: 0 });
  origin.release();
  for (const { status } of await Promise.all(visits)) expect(status).toBe(200);
  await until("both are counted", async () => (await proof())["blocked_in_flight"] === 2);
  const [instance] = whole["instances"] as Facts[];
  const last_seen = expect.any(String);
  const instances = [{ ...instance, blocked_in_flight: 2, last_seen }];
  expect(await proof()).toEqual({ ...whole, blocked_in_flight: 2, instances });
});

test("an operator is told why a page is cached, what did not clear it, and what did", async () => {
  await cached("/page/one");
  await edge.api.post(`${path}?wait=30`, { url_path_patterns: ["path:elsewhere"] });
  expect(await why(`http://${domain}/page/one`)).toMatchObject({
    a_plain_get: { serves: "generated", cache: "hit" },
    cached: [{ path: "/page/one", status: 200, servable: true, is_fresh: true }],
    clears: {
      not_matching: expect.arrayContaining([
        expect.objectContaining({ patterns: ["path:elsewhere"] }),
      ]),
    },
  });
  const dry = JSON.parse(await cli("cache", "clear", domain, "path:one", "--dry-run", "--json"));
  expect(dry).toMatchObject({ matched: 1, samples: [{ path: "/page/one" }] });
  const told = JSON.parse(await cli("cache", "clear", domain, "path:one", "--json"));
  expect(told).toMatchObject({ matched: 1, removed: 1, widened: false, verified: true });
  const clear = { clear_id: told.clear_id, by: expect.stringContaining("on this host") };
  const after = { cached: [], departed: [{ reason: "cleared", clear }] };
  expect(await why(`${domain}/page/one`)).toMatchObject(after);
  const text = await cli("why", `https://${domain}/page/one`);
  expect(text).toContain("cached now: not cached");
  expect(text).toContain(told.clear_id);
  await edge.agent.kill();
  await edge.agent.restart();
  expect(await why(`${domain}/page/one`)).toMatchObject(after);
  expect(edge.agent.said).not.toContain("cache_dropped");
  await cached("/page/one");
});

test("search and check tell what there is; a host that is not served is an error", async () => {
  await cached("/page/three");
  expect(await cli("cache", "search", domain, "path:three", "path:none")).toMatch(/matched +1\n/);
  const found = JSON.parse(await cli("cache", "search", domain, "path:three", "--json"));
  expect(found).toMatchObject({
    samples: [{ path: "/page/three", pattern: "url:z2fpagez2fthree" }],
  });
  expect(await cli("cache", "check")).toContain("ok");
  expect(await cli("cache", "stats")).toMatch(/durable_no +\d/);
  await expect(cli("why", "http://other.example.org/")).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("serves no host"),
  });
});
