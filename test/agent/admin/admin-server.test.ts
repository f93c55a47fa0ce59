// The operators' listener on a real port: what each route answers, and what it refuses.

import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { request } from "node:http";
import { expect, test } from "vitest";
import {
  startAdminServer,
  type AdminOptions,
  pageOf,
} from "../../../src/agent/admin/admin-server.ts";
import { LastHour } from "../../../src/agent/admin/last-hour.ts";
import { startProcessMetrics } from "../../../src/agent/admin/process-metrics.ts";
import type { AgentStatus } from "../../../src/agent/admin/status.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { createMetrics, Registry } from "../../../src/base/metrics.ts";
import { lintMetrics, prometheusHint, prometheusMissing } from "../../support/prometheus.ts";
import { statusOf } from "./status-of.ts";

const local = { host: "127.0.0.1", port: 0 };

async function start(options: Partial<AdminOptions> = {}) {
  return startAdminServer({
    listen: local,
    nodeExporterUrl: undefined,
    metrics: async () => [],
    oldPages: false,
    status: async () => statusOf({}),
    lastHour: new LastHour(),
    zone: () => "UTC",
    now: () => new Date(1_000),
    log: silentLog(),
    ...options,
  });
}

async function get(port: number, path: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  return `${response.status} ${response.headers.get("content-type") ?? ""} ${await response.text()}`;
}

async function agentMetrics() {
  const registry = new Registry();
  const { accel_agent_requests_total: requests } = createMetrics(
    { accel_agent_requests_total: { kind: "counter", help: "Requests answered." } },
    registry,
  );
  requests.inc(7);
  const health = new Health(() => new Date(0));
  health.raise("spool_full", "warning", "slow", "Look.");
  using own = startProcessMetrics(registry, health, "1.2.3", 5_000);
  own.refresh();
  return registry.getMetricsAsJSON();
}

test("each route answers in its type", async () => {
  await using admin = await start({ metrics: async () => [await agentMetrics()] });
  expect(await get(admin.port, "/healthz")).toBe("200 text/plain; charset=utf-8 alive\n");
  expect(await get(admin.port, "/readyz?verbose")).toBe("200 text/plain; charset=utf-8 ready\n");
  expect(await get(admin.port, "/")).toMatch(/^200 text\/html; charset=utf-8 <!doctype html>/);
  expect(await get(admin.port, "/metrics/deployment")).toMatch(
    /^200 text\/plain; version=0\.0\.4; charset=utf-8 [^]*\naccel_agent_requests_total 7\n/,
  );
  expect(await get(admin.port, "/metrics/node_exporter")).toMatch(/\nnode_time_seconds 1\n/);
});

const processFamilies = [
  "accel_agent_build_info",
  "accel_agent_health_warnings",
  "accel_agent_process_cpu_seconds",
  "accel_agent_process_max_fds",
  "accel_agent_process_open_fds",
  "accel_agent_process_resident_memory_bytes",
  "accel_agent_process_start_time_seconds",
  "accel_agent_thread_loop_delay_seconds",
  "accel_agent_warning",
];

test("each family is on one page: what runs here, or what it does for the deployment", async () => {
  await using admin = await start({ metrics: async () => [await agentMetrics()] });
  const families = async (path: string) =>
    (await get(admin.port, path)).match(/(?<=^# TYPE )\S+/gm)?.sort();
  expect(await families("/metrics")).toEqual(processFamilies);
  expect(await families("/metrics/deployment")).toEqual(["accel_agent_requests_total"]);
});

test("with metrics.old_pages they are where the release before had them", async () => {
  await using admin = await start({
    metrics: async () => [await agentMetrics()],
    oldPages: true,
  });
  const families = async (path: string) =>
    (await get(admin.port, path)).match(/(?<=^# TYPE )\S+/gm)?.sort();
  expect(await families("/metrics")).toEqual(
    [...processFamilies, "accel_agent_requests_total"].sort(),
  );
  expect(await families("/metrics/deployment")).toEqual([
    "accel_agent_health_warnings",
    "accel_agent_requests_total",
  ]);
});

test.each([
  ["accel_agent_workers", "edge"],
  ["accel_agent_worker_replacements_total", "edge"],
  ["accel_agent_open_connections", "edge"],
  ["accel_agent_refused_connections_total", "edge"],
  ["accel_agent_http2_connections_cut_total", "edge"],
  ["accel_agent_http2_withheld_total", "edge"],
  ["accel_agent_proxy_header_refused_total", "edge"],
  ["accel_agent_tls_handshakes_total", "edge"],
  ["accel_agent_cache_entries", "deployment"],
  ["accel_agent_origin_requests_total", "deployment"],
  ["accel_agent_link_connected", "deployment"],
  ["accel_agent_journal_applied_seq", "deployment"],
  ["accel_agent_sets_behind", "deployment"],
  ["accel_agent_viewset_standing", "deployment"],
  ["accel_agent_certificates", "deployment"],
  ["accel_agent_log_spool_bytes", "deployment"],
])("%s is told by the %s page", (family, page) => {
  expect(pageOf(family)).toBe(page);
});

test.skipIf(prometheusMissing)(
  `the agent's own families are clean for promtool (${prometheusHint})`,
  async () => {
    await using admin = await start({ metrics: async () => [await agentMetrics()] });
    const exposition = await (await fetch(`http://127.0.0.1:${admin.port}/metrics`)).text();
    expect(exposition).toContain('accel_agent_build_info{version="1.2.3"} 1');
    expect(exposition).toContain('accel_agent_health_warnings{severity="warning"} 1');
    expect(lintMetrics(exposition)).toBe("");
  },
);

test("what is not there, and what may not be done", async () => {
  await using admin = await start();
  expect(await get(admin.port, "/nothing")).toBe(
    "404 text/plain; charset=utf-8 nothing at /nothing; see /\n",
  );
  expect(await get(admin.port, "/constructor")).toMatch(/^404 /);
  for (const method of ["POST", "PUT", "DELETE"]) {
    const response = await fetch(`http://127.0.0.1:${admin.port}/metrics`, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  }
});

test("HEAD has the headers of GET and no body", async () => {
  await using admin = await start();
  const [head, full] = await Promise.all(
    ["HEAD", "GET"].map(async (method) => fetch(`http://127.0.0.1:${admin.port}/`, { method })),
  );
  expect(head?.status).toBe(200);
  expect(head?.headers.get("content-length")).toBe(full?.headers.get("content-length"));
  expect(head?.headers.get("cache-control")).toBe("no-store");
  expect(await head?.text()).toBe("");
});

test("a browser loads nothing for an answer, but its own sheet for the page; no other page frames it", async () => {
  await using admin = await start();
  for (const path of ["/", "/metrics", "/healthz", "/nothing"]) {
    const { headers } = await fetch(`http://127.0.0.1:${admin.port}${path}`);
    const policy = headers.get("content-security-policy")?.split("; ") ?? [];
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy.some((one) => one.startsWith("style-src 'sha256-"))).toBe(path === "/");
    expect(policy.join(" ")).not.toMatch(/unsafe|https?:|script-src|\*/);
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  }
});

test("the page loads itself again only for the query that asks for it", async () => {
  await using admin = await start();
  for (const [query, reloads] of [
    ["", false],
    ["?reload=15", true],
    ["?reload=1", false],
    ["?x&reload=15", false],
  ] as const)
    expect((await get(admin.port, `/${query}`)).includes("http-equiv")).toBe(reloads);
});

test("not ready says what is missing, errors only", async () => {
  const warning = (
    code: string,
    severity: "warning" | "error",
  ): AgentStatus["warnings"][number] => ({
    code,
    severity,
    text: `${code} happened`,
    since: "",
    not_before: "",
    hint: "",
  });
  const warnings = [warning("spool_full", "warning"), warning("index_broken", "error")];
  await using admin = await start({ status: async () => statusOf({ ready: false, warnings }) });
  expect(await get(admin.port, "/readyz")).toBe(
    "503 text/plain; charset=utf-8 not ready\nindex_broken: index_broken happened\n",
  );
  expect(await get(admin.port, "/healthz")).toMatch(/^200 /);
});

test("a part that fails is a 500 that tells nothing of it", async () => {
  await using admin = await start({
    status: async () => Promise.reject(new Error("secret detail")),
  });
  expect(await get(admin.port, "/")).toBe(
    "500 text/plain; charset=utf-8 failed; the log says why\n",
  );
  expect(await get(admin.port, "/healthz")).toMatch(/^200 /);
});

async function exporter(
  handler: RequestListener,
): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // Listening on TCP just above.
  return {
    url: `http://127.0.0.1:${port}/metrics`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("a node_exporter is passed through; its failure is a 502 with the reason", async () => {
  let status = 200;
  let nodeExporterUrl: string;
  {
    await using real = await exporter((_, response) =>
      response.writeHead(status).end("node_load1 5\n"),
    );
    nodeExporterUrl = real.url;
    await using admin = await start({ nodeExporterUrl });
    expect(await get(admin.port, "/metrics/node_exporter")).toMatch(
      /^200 text\/plain; version=0\.0\.4.* node_load1 5\n$/,
    );
    status = 503;
    expect(await get(admin.port, "/metrics/node_exporter")).toBe(
      `502 text/plain; charset=utf-8 ${real.url} answered 503\n`,
    );
  }
  await using admin = await start({ nodeExporterUrl });
  expect(await get(admin.port, "/metrics/node_exporter")).toMatch(
    /^502 .*cannot be reached: .*ECONNREFUSED/,
  );
});

test("a malformed target is not a defect", async () => {
  await using admin = await start();
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  request({ host: "127.0.0.1", port: admin.port, path: "//[/?%", agent: false }, (response) => {
    response.resume();
    resolve(response.statusCode);
  }).end();
  expect(await promise).toBe(404);
});

test("a taken port is an error that names it", async () => {
  await using admin = await start();
  await expect(start({ listen: { host: "127.0.0.1", port: admin.port } })).rejects.toMatchObject({
    code: "PORT_TAKEN",
  });
});
