// The configurations of nginx and HAProxy that docs/operations/central.md and cluster.md give to operators, in these programs themselves: they pass on what is for
// customers and agents, and nothing that is for the operator.

import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bucketLimits } from "../../src/central/store/objects/bucket.ts";
import { haproxyConfig } from "../support/documented-proxy.ts";
import { freePorts } from "../support/free-ports.ts";
import { sayingOf, startProxy } from "../support/proxy-program.ts";
import { until } from "../support/until.ts";

const passed = [
  "/",
  "/console/app.js",
  "/presentation-api/v1/fleet/",
  "/mail/recover/",
  "/agent-api/v1/journal",
];
const kept = ["/metrics", "/about/", "/healthz", "/readyz", "/else"];

const statusOf = async (port: number | undefined, path: string): Promise<number> =>
  (await fetch(`http://127.0.0.1:${port}${path}`)).status;

async function expectPassed(port: number | undefined): Promise<void> {
  for (const path of passed) expect([path, await statusOf(port, path)]).toEqual([path, 200]);
  for (const path of kept) expect([path, await statusOf(port, path)]).toEqual([path, 404]);
}

const isMissing = spawnSync("nginx", ["-v"]).error !== undefined;
const page = readFileSync(join(import.meta.dirname, "../../docs/operations/central.md"), "utf8");
const [, locations = ""] = /```nginx\n([^]*?)```/.exec(page) ?? [];

test.skipIf(isMissing)(
  "the proxy passes on the console, the API, mails' links and agents, and nothing else (needs nginx: apt-get install nginx)",
  async () => {
    const central = createServer((_request, response) => response.end());
    central.listen(0, "127.0.0.1");
    await once(central, "listening");
    const { port: behind } = central.address() as AddressInfo;
    const ports = await freePorts(1);
    const [port] = ports;
    const config = (dir: string): string => `
daemon off;
${userInfo().uid === 0 ? "user root;" : ""}
pid ${dir}/nginx.pid;
error_log stderr;
worker_processes 1;
events { worker_connections 100; }
http {
  access_log off;
  client_body_temp_path ${dir}/body;
  proxy_temp_path ${dir}/proxy;
  fastcgi_temp_path ${dir}/fastcgi;
  uwsgi_temp_path ${dir}/uwsgi;
  scgi_temp_path ${dir}/scgi;
  server {
    listen 127.0.0.1:${port};
    ${locations.replaceAll("127.0.0.1:8000", `127.0.0.1:${behind}`)}
  }
}
`;
    try {
      await using _proxy = await startProxy(ports, config, (dir, path) => [
        "nginx",
        "-p",
        dir,
        "-c",
        path,
      ]);
      await expectPassed(port);
    } finally {
      central.close();
      central.closeAllConnections();
    }
  },
  60_000,
);

test.skipIf(sayingOf("haproxy", "-v") === undefined)(
  "so does HAProxy before several centrals, and it waits longer than central for a silent bucket (needs haproxy: apt-get install haproxy)",
  async () => {
    const central = createServer((_request, response) => response.end());
    central.listen(0, "127.0.0.1");
    await once(central, "listening");
    const { port: behind } = central.address() as AddressInfo;
    const [port = 0] = await freePorts(1);
    const config = haproxyConfig(port, [{ port: behind }]);
    const [, seconds] = /timeout server (\d+)s/.exec(config) ?? [];
    const { silentMs, idleMs } = bucketLimits;
    expect(Number(seconds) * 1_000).toBeGreaterThan(silentMs + idleMs);
    try {
      await using _proxy = await startProxy(
        [port],
        () => config,
        (_, path) => ["haproxy", "-db", "-f", path],
      );
      await until("central is up for it", async () => (await statusOf(port, "/")) === 200);
      await expectPassed(port);
    } finally {
      central.close();
      central.closeAllConnections();
    }
  },
  60_000,
);
