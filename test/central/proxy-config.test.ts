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
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { startFront } from "../../src/central/front.ts";
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

/** The block, quicker than an operator wants it: it looks ten times a second, and waits for a second. */
function quickHaproxy(port: number, behind: readonly { readonly port: number }[]): string {
  return haproxyConfig(port, behind)
    .replace("check inter 2s", "check inter 100ms")
    .replace(/timeout server \d+s/, "timeout server 1s");
}

test.skipIf(sayingOf("haproxy", "-v") === undefined)(
  "HAProxy says in problem documents that a central broke off, and that one did not answer in time (needs haproxy: apt-get install haproxy)",
  async () => {
    const central = createServer((request, response) => {
      if (request.url?.endsWith("/cut") === true) response.destroy();
      else if (request.url?.endsWith("/late") !== true) response.end();
    });
    central.listen(0, "127.0.0.1");
    await once(central, "listening");
    const { port: behind } = central.address() as AddressInfo;
    const [port = 0] = await freePorts(1);
    try {
      await using _proxy = await startProxy(
        [port],
        () => quickHaproxy(port, [{ port: behind }]),
        (_, path) => ["haproxy", "-db", "-f", path],
      );
      await until("central is up for it", async () => (await statusOf(port, "/")) === 200);
      for (const [path, status, title] of [
        ["cut", 502, "Bad Gateway"],
        ["late", 504, "Gateway Timeout"],
      ] as const) {
        const answer = await fetch(`http://127.0.0.1:${port}/presentation-api/v1/${path}`);
        expect([answer.status, answer.headers.get("content-type")]).toEqual([
          status,
          "application/problem+json",
        ]);
        expect(answer.headers.get("retry-after")).toBe("5");
        expect(await answer.json()).toEqual({
          type: "about:blank",
          title,
          status,
          detail: expect.stringMatching(/; try again, with the same Idempotency-Key$/),
        });
      }
    } finally {
      central.close();
      central.closeAllConnections();
    }
  },
  60_000,
);

test.skipIf(sayingOf("haproxy", "-v") === undefined)(
  "behind HAProxy an order that waits at a central that stops is answered, however often HAProxy has looked meanwhile, and others go elsewhere (needs haproxy: apt-get install haproxy)",
  async () => {
    const stop = new AbortController();
    const come = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    let looks = 0;
    const nobody = (): void => undefined;
    const front = await startFront({
      listen: { host: "127.0.0.1", port: 0 },
      customers: (request, response) => {
        if (request.url?.endsWith("/held") !== true) return response.end("one");
        come.resolve();
        return void held.promise.then(() => response.end("held"));
      },
      mailPages: nobody,
      agents: { handle: nobody, upgrade: nobody },
      registry: new Registry(),
      beforeScrape: async () => undefined,
      version: "0.0.0",
      unreadiness: async () => {
        if (stop.signal.aborted) looks++;
        return stop.signal.aborted ? ["stopping"] : [];
      },
      isLone: () => false,
      warnings: () => [],
      stop: stop.signal,
      isHttps: false,
      log: silentLog(),
      // What is under way, and nothing else, keeps it there.
      endTimes: { drainMs: 0 },
    });
    const other = createServer((_request, response) => response.end("two"));
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port: behind } = other.address() as AddressInfo;
    const [port = 0] = await freePorts(1);
    const textOf = async (path: string): Promise<readonly [number, string]> => {
      const answer = await fetch(`http://127.0.0.1:${port}/presentation-api/v1/${path}`);
      return [answer.status, await answer.text()];
    };
    try {
      await using _proxy = await startProxy(
        [port],
        () =>
          quickHaproxy(port, [{ port: front.port }, { port: behind }]).replace(
            "timeout server 1s",
            "timeout server 60s",
          ),
        (_, path) => ["haproxy", "-db", "-f", path],
      );
      await until("the first is up for it", async () => (await textOf("who"))[1] === "one");
      // The other one answers everything at once, where it is asked.
      const waiting = (async () => {
        for (;;) {
          const answer = await textOf("held");
          if (answer[1] !== "two") return answer;
        }
      })();
      await come.promise;
      stop.abort();
      const over = front[Symbol.asyncDispose]();
      await until("it has looked often", () => looks > 30);
      for (let count = 0; count < 5; count++) expect(await textOf("who")).toEqual([200, "two"]);
      held.resolve();
      expect(await waiting).toEqual([200, "held"]);
      await over;
    } finally {
      held.resolve();
      other.close();
      other.closeAllConnections();
    }
  },
  60_000,
);
