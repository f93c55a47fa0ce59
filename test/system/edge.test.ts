// The whole edge through public interfaces: a customer's script, Prometheus, the default policy, central away.

import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CustomerScript, domain, walkLogs } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { startOrigin, type Origin } from "../support/origin.ts";
import {
  lintMetrics,
  prometheusHint,
  prometheusMissing,
  startPrometheus,
} from "../support/prometheus.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 120_000 });

/** The agent may be in a backoff of up to a minute when central comes back. */
const backWithinMs = 150_000;
/** Much sooner than the poll, which comes once a minute: told over the channel. */
const toldWithinMs = 20_000;

let edge: Edge;
let origin: Origin;
let script: CustomerScript;

beforeAll(async () => {
  origin = await startOrigin();
  edge = await Edge.prepare();
  await edge.startCentral();
  script = new CustomerScript(edge, origin.url, "edge");
  await script.enrol();
  await edge.startAgent();
}, 300_000);

afterAll(async () => {
  await edge[Symbol.asyncDispose]();
  await origin[Symbol.asyncDispose]();
});

test("a customer's script: site, domain, devlove, activate, hit, clear with receipt, block, unblock, logs, status", async () => {
  for (const { run } of script.steps()) await run();
}, 300_000);

test("a clear's receipt counts what matched and says when it was invisible and when it was gone", async () => {
  for (const path of ["/page/a1", "/page/a2", "/page/b1"]) {
    await until(`a hit for ${path}`, async () =>
      String((await edge.visit(path, { host: domain })).headers["cache-status"]).includes("hit"),
    );
  }
  const { status, body } = await edge.api.post(`/clear-accelerator-cache/${domain}/?wait=30`, {
    url_path_patterns: ["path:a1 OR path:a2"],
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    domain,
    deployments: [{ deployment_site_id: script.siteId, state: "applied", matched: 2 }],
  });
  expect(
    String((await edge.visit("/page/a1", { host: domain })).headers["cache-status"]),
  ).not.toContain("; hit");
  expect(
    String((await edge.visit("/page/b1", { host: domain })).headers["cache-status"]),
  ).toContain("hit");
  const { clear_id: id } = body as { clear_id: string };
  await until("gone", async () => {
    const now = (await edge.api.get(`/clear-accelerator-cache/${domain}/${id}/`)).body as {
      deployments: readonly Record<string, unknown>[];
    };
    return now.deployments[0]?.["removed"] === 2;
  });
});

test("a pattern that cannot be understood is refused and clears nothing", async () => {
  const { status, body } = await edge.api.post(`/clear-accelerator-cache/${domain}/`, {
    url_path_patterns: ["path:b1", "image/png"],
  });
  expect(status).toBe(400);
  expect(JSON.stringify(body)).toContain("/url_path_patterns/1");
  expect(
    String((await edge.visit("/page/b1", { host: domain })).headers["cache-status"]),
  ).toContain("hit");
});

test("marking a range blocks it soon, and the block says why", async () => {
  expect(
    (await edge.visit("/page/x", { host: domain, headers: { "x-forwarded-for": "198.51.100.7" } }))
      .status,
  ).toBe(200);
  const marked = await edge.api.post("/mark-as-bad-bot/198.51.100.0_24/", {
    attach_to_bot: "flood",
    attach_to_domain: domain,
  });
  expect(marked.status).toBe(200);
  const blocked = await until(
    "403",
    async () => {
      const answer = await edge.visit("/page/x", {
        host: domain,
        headers: { "x-forwarded-for": "198.51.100.7" },
      });
      return answer.status === 403 && answer;
    },
    toldWithinMs,
  );
  expect(blocked.headers["x-accel-decision"]).toBeDefined();
  expect((await edge.visit("/page/x", { host: domain })).status).toBe(200);
});

test("without a policy curl is blocked, with the reason; with one it is served", async () => {
  const answer = await edge.visit("/page/x", { host: domain, userAgent: "curl/8.14.1" });
  expect(answer.status).toBe(403);
  expect(answer.body.toString()).toMatch(/unreviewed/i);
  const set = await edge.api.post("/bot-access-policy/", {
    per_domain_policy: [{ domain, policy: { unknown_bots_can_access: "True" } }],
  });
  expect(set.status).toBe(200);
  await until(
    "200 for curl",
    async () =>
      (await edge.visit("/page/x", { host: domain, userAgent: "curl/8.14.1" })).status === 200,
  );
});

test("no incoming log is missing and none is there twice", async () => {
  const paths = Array.from({ length: 300 }, (_, i) => `/private?n=${i}`);
  for (const path of paths) expect((await edge.visit(path, { host: domain })).status).toBe(200);
  const rows = await until("all records", async () => {
    const found = (await walkLogs(edge.api, script.siteId, domain)).filter(({ uri_path: path }) =>
      path.startsWith("/private?n="),
    );
    return found.length >= paths.length && found;
  });
  expect(rows.map(({ uri_path: path }) => path).sort()).toEqual([...paths].sort());
});

test.skipIf(prometheusMissing)(
  `a real Prometheus, configured with what metrics-conf returns, has every target up (${prometheusHint})`,
  async () => {
    const { status, body } = await edge.api.get("/metrics-conf/by-deployment-tag/eu/");
    expect(status).toBe(200);
    const { metrics_config: jobs } = body as { metrics_config: readonly { job_name: string }[] };
    expect(jobs.length).toBe(3);
    await using prometheus = await startPrometheus(jobs);
    const targets = await prometheus.targets(3);
    expect(targets.map(({ health, lastError }) => ({ health, lastError }))).toEqual(
      jobs.map(() => ({ health: "up", lastError: "" })),
    );
    for (const path of ["/metrics", "/metrics/deployment"]) {
      const text = await (await fetch(`http://127.0.0.1:${edge.ports.metrics}${path}`)).text();
      expect(text).toContain("accel_agent_");
      expect(lintMetrics(text)).toBe("");
    }
    expect(
      lintMetrics(await (await fetch(`http://127.0.0.1:${edge.ports.central}/metrics`)).text()),
    ).toBe("");
  },
  120_000,
);

test("central away: the agent serves, restarts and serves; what was asked meanwhile is caught up", async () => {
  const cached = await edge.visit("/page/kept", { host: domain });
  expect(cached.status).toBe(200);
  await edge.central.terminate();
  expect((await edge.visit("/page/new", { host: domain })).status).toBe(200);
  expect(await edge.agent.terminate()).toBe(0);
  await edge.agent.restart();
  expect((await edge.visit("/page/kept", { host: domain })).status).toBe(200);
  expect(
    (await edge.visit("/page/x", { host: domain, headers: { "x-forwarded-for": "198.51.100.7" } }))
      .status,
  ).toBe(403);
  await edge.central.restart();
  const removed = await edge.api.post("/remove-ip-from-bad-bot-list/198.51.100.0_24/", {
    remove_from_bot: "flood",
    remove_from_domain: domain,
  });
  expect(removed.status).toBe(200);
  await until(
    "unblocked",
    async () =>
      (
        await edge.visit("/page/x", {
          host: domain,
          headers: { "x-forwarded-for": "198.51.100.7" },
        })
      ).status === 200,
    backWithinMs,
  );
  await until(
    "its records are at central",
    async () =>
      (await walkLogs(edge.api, script.siteId, domain)).some(
        ({ uri_path: path }) => path === "/page/new",
      ),
    backWithinMs,
  );
}, 500_000);

test("a visitor who knocks while the agent starts is refused by the kernel or served, never told to come back", async () => {
  await edge.agent.kill();
  const started = edge.agent.restart();
  const first = await until(
    "the first answer",
    () => edge.visit("/page/x", { host: domain }).catch(() => undefined),
    backWithinMs,
  );
  expect(first.status).toBe(200);
  await started;
}, 400_000);

test("both programs stop cleanly on SIGTERM", async () => {
  expect(await edge.agent.terminate()).toBe(0);
  expect(await edge.central.terminate()).toBe(0);
});
