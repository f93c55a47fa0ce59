// Real proxies in front, visitors from several addresses through them: whom each of their headers makes the visitor.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { Agent as TlsAgent, request as httpsRequest } from "node:https";
import { join } from "node:path";
import { userInfo } from "node:os";
import { describe, expect, it } from "vitest";
import { freePorts } from "../../../support/free-ports.ts";
import { sayingOf, startProxy } from "../../../support/proxy-program.ts";
import { until } from "../../../support/until.ts";
import { openEdge, openOrigin, type Edge, type EdgeOptions } from "../edge.ts";

const hasHaproxy = sayingOf("haproxy", "-v") !== undefined;
const hasOpenssl = sayingOf("openssl", "version") !== undefined;
const nginxBuild = sayingOf("nginx", "-V");
const streamModule = "/usr/lib/nginx/modules/ngx_stream_module.so";
const nginxStreams =
  nginxBuild === undefined
    ? undefined
    : /--with-stream(?: |$)/m.test(nginxBuild)
      ? ""
      : existsSync(streamModule)
        ? `load_module ${streamModule};`
        : undefined;
/** Only there is all of 127.0.0.0/8 one's own. */
const hasVisitors = process.platform === "linux";
const visitors = ["127.0.0.2", "127.0.0.3", "127.0.0.2"];

const trusting = async (options: EdgeOptions): Promise<Edge> =>
  openEdge({ site: {}, trusted: ["127.0.0.1"], ...options });

/** Through one kept connection for each visitor; `isTls` without asking for the proxy's name. */
async function visit(
  port: number,
  address: string,
  agents: { readonly plain: Agent; readonly tls: TlsAgent },
  isTls = false,
): Promise<number> {
  const options = {
    host: "127.0.0.1",
    port,
    path: `/from-${address}`,
    localAddress: address,
    headers: { host: "www.example.com", "x-forwarded-for": "6.6.6.6", forwarded: 'for="6.6.6.6' },
  };
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const outgoing = isTls
    ? httpsRequest({ ...options, agent: agents.tls, rejectUnauthorized: false })
    : httpRequest({ ...options, agent: agents.plain });
  outgoing.once("error", reject).once("response", (response) => {
    response.resume().once("end", () => resolve(response.statusCode ?? 0));
  });
  outgoing.end();
  return promise;
}

async function visitAll(port: number, edge: Edge, isTls = false): Promise<void> {
  const agents = {
    plain: new Agent({ keepAlive: true }),
    tls: new TlsAgent({ keepAlive: true }),
  };
  const before = edge.records.filter(isVisit).length;
  for (const address of visitors) await visit(port, address, agents, isTls);
  agents.plain.destroy();
  agents.tls.destroy();
  await until("records", () => edge.records.filter(isVisit).length === before + visitors.length);
  for (const { client_ip, uri_path } of edge.records.filter(isVisit))
    expect(`/from-${client_ip}`).toBe(uri_path);
}

const isVisit = ({ uri_path }: { readonly uri_path: string }): boolean =>
  uri_path.startsWith("/from-");

const haproxyCommand = (_: string, path: string): readonly [string, ...string[]] => [
  "haproxy",
  "-db",
  "-f",
  path,
];

const haproxyHead = (mode: "tcp" | "http"): string => `
defaults
  mode ${mode}
  timeout connect 5s
  timeout client 20s
  timeout server 20s
`;

describe.skipIf(!hasHaproxy || !hasVisitors)("HAProxy", () => {
  it.each(["send-proxy", "send-proxy-v2"])("in TCP mode, %s", async (option) => {
    await using edge = await trusting({ proxyProtocol: "required" });
    const ports = await freePorts(1);
    const config = `${haproxyHead("tcp")}
listen edge
  bind 127.0.0.1:${ports[0]}
  server edge 127.0.0.1:${edge.port} ${option}
`;
    await using _proxy = await startProxy(ports, () => config, haproxyCommand);
    await visitAll(ports[0] ?? 0, edge);
  });

  it("in HTTP mode shares no connection among visitors, and checks health", async () => {
    await using edge = await trusting({ proxyProtocol: "required" });
    const ports = await freePorts(1);
    const config = `${haproxyHead("http")}
listen edge
  bind 127.0.0.1:${ports[0]}
  option httpchk
  http-check send meth GET uri /health hdr Host www.example.com
  http-check expect status 404
  http-reuse always
  server edge 127.0.0.1:${edge.port} send-proxy-v2 check inter 50ms
`;
    await using _proxy = await startProxy(ports, () => config, haproxyCommand);
    await until("a check", () => edge.records.some(({ uri_path }) => uri_path === "/health"));
    await visitAll(ports[0] ?? 0, edge);
    const checks = edge.records.filter(({ uri_path }) => uri_path === "/health");
    expect(new Set(checks.map(({ client_ip }) => client_ip))).toEqual(new Set(["127.0.0.1"]));
  });

  it("with X-Forwarded-For", async () => {
    await using edge = await trusting({});
    const ports = await freePorts(1);
    const config = `${haproxyHead("http")}
listen edge
  bind 127.0.0.1:${ports[0]}
  option forwardfor
  server edge 127.0.0.1:${edge.port}
`;
    await using _proxy = await startProxy(ports, () => config, haproxyCommand);
    await visitAll(ports[0] ?? 0, edge);
  });

  it.skipIf(!hasOpenssl)("that ends TLS says so", async () => {
    const schemes: unknown[] = [];
    await using origin = await openOrigin(({ headers }, response) => {
      schemes.push(headers["x-forwarded-proto"]);
      response.end();
    });
    const backend = { urls: [origin.url] };
    await using edge = await openEdge({
      site: { backend },
      trusted: ["127.0.0.1"],
      proxyProtocol: "required",
    });
    const ports = await freePorts(2);
    const config = (dir: string): string => `${haproxyHead("tcp")}
listen plain
  bind 127.0.0.1:${ports[0]}
  server edge 127.0.0.1:${edge.port} send-proxy-v2-ssl
listen tls
  bind 127.0.0.1:${ports[1]} ssl crt ${certificate(dir)}
  server edge 127.0.0.1:${edge.port} send-proxy-v2-ssl
`;
    await using _proxy = await startProxy(ports, config, haproxyCommand);
    await visitAll(ports[0] ?? 0, edge);
    await visitAll(ports[1] ?? 0, edge, true);
    expect(schemes).toEqual(["http", "http", "http", "https", "https", "https"]);
  });
});

/** Key and certificate in one file, as HAProxy wants them. */
function certificate(dir: string): string {
  const [key, cert, both] = ["key.pem", "cert.pem", "both.pem"].map((name) => join(dir, name));
  if (key === undefined || cert === undefined || both === undefined) throw new Error("three paths");
  const asked = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
  const command = [...asked.split(" "), "-subj", "/CN=www.example.com", "-keyout", key];
  execFileSync("openssl", [...command, "-out", cert], { stdio: "ignore" });
  writeFileSync(both, readFileSync(cert, "utf8") + readFileSync(key, "utf8"));
  return both;
}

const nginxCommand = (dir: string, path: string): readonly [string, ...string[]] => [
  "nginx",
  "-p",
  dir,
  "-c",
  path,
];

const nginxHead = (dir: string): string => `
daemon off;
${userInfo().uid === 0 ? "user root;" : ""}
pid ${dir}/nginx.pid;
error_log stderr;
worker_processes 1;
events { worker_connections 100; }
`;

describe.skipIf(nginxBuild === undefined || !hasVisitors)("nginx", () => {
  it.each(["x-forwarded-for", "forwarded"] as const)("with %s", async (forwardedHeader) => {
    await using edge = await trusting({ forwardedHeader });
    const ports = await freePorts(1);
    const temps = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    const config = (dir: string): string => `${nginxHead(dir)}
http {
  access_log off;
  ${temps.map((name) => `${name}_temp_path ${dir}/${name};`).join("\n  ")}
  server {
    listen 127.0.0.1:${ports[0]};
    location / {
      proxy_pass http://127.0.0.1:${edge.port};
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header Forwarded "$http_forwarded, for=$remote_addr;proto=$scheme";
    }
  }
}
`;
    await using _proxy = await startProxy(ports, config, nginxCommand);
    await visitAll(ports[0] ?? 0, edge);
  });

  it.skipIf(nginxStreams === undefined)("with the PROXY protocol", async () => {
    await using edge = await trusting({ proxyProtocol: "required" });
    const ports = await freePorts(1);
    const config = (dir: string): string => `${nginxStreams ?? ""}
${nginxHead(dir)}
stream {
  server {
    listen 127.0.0.1:${ports[0]};
    proxy_pass 127.0.0.1:${edge.port};
    proxy_protocol on;
  }
}
`;
    await using _proxy = await startProxy(ports, config, nginxCommand);
    await visitAll(ports[0] ?? 0, edge);
  });
});
