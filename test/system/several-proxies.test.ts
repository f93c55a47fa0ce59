// The blocks of docs/operations/cluster.md for haproxy and nginx, as they stand there but for addresses and paths, over TLS in front of two real centrals: channels are upgraded and outlive the
// time limits of requests, orders reach agents at both, and one central that is killed costs no customer an answer.

import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { request } from "node:https";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { failureAnswer } from "../../src/central/api/http/failure-answer.ts";
import { AccelError } from "../../src/core/faults.ts";
import { call } from "../support/central-whole.ts";
import { statesOf } from "../support/clear-states.ts";
import { connectAgent, FakeChannel } from "../support/fake-agent.ts";
import { freePorts } from "../support/free-ports.ts";
import { postgresBin } from "../support/postgres-server.ts";
import { sayingOf, startProxy } from "../support/proxy-program.ts";
import { SeveralCentrals, type OneCentral } from "../support/several-centrals.ts";
import { until } from "../support/until.ts";
import { makeCertificate } from "../support/x509.ts";

const bin = postgresBin();
const page = readFileSync(join(import.meta.dirname, "../../docs/operations/cluster.md"), "utf8");
const blockOf = (language: string): string =>
  new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(page)?.[1] ?? "";
const certificate = makeCertificate({ names: ["127.0.0.1"] });
/** Instead of the 75 and 100 s of a request. */
const requestLimitS = 8;

type Proxy = {
  readonly name: string;
  readonly config: (
    dir: string,
    port: number,
    centrals: readonly Pick<OneCentral, "port">[],
  ) => string;
  readonly command: (dir: string, path: string) => readonly [string, ...string[]];
};

const haproxy: Proxy = {
  name: "haproxy",
  config: (dir, port, centrals) => {
    writeFileSync(join(dir, "central.pem"), certificate.pem + certificate.key, { mode: 0o600 });
    const servers = centrals.map((one, no) => `  server central-${no} 127.0.0.1:${one.port}`);
    const block = blockOf("haproxy")
      .replace("bind :443 ssl crt /etc/haproxy/", `bind 127.0.0.1:${port} ssl crt ${dir}/`)
      .replaceAll(/timeout (client|server) \d+s/g, `timeout $1 ${requestLimitS}s`)
      .replaceAll(/^ {2}server .*\n/gm, "");
    return `${block}${servers.join("\n")}\n`;
  },
  command: (_, path) => ["haproxy", "-db", "-f", path],
};

const nginx: Proxy = {
  name: "nginx",
  config: (dir, port, centrals) => {
    writeFileSync(join(dir, "central.pem"), certificate.pem);
    writeFileSync(join(dir, "central.key"), certificate.key, { mode: 0o600 });
    const [one = "", ...others] = centrals.map(({ port: at }) => `127.0.0.1:${at}`);
    const block = blockOf("nginx")
      .replace("listen 443", `listen 127.0.0.1:${port}`)
      .replaceAll("/etc/nginx/", `${dir}/`)
      .replace("10.0.0.11:8000", one)
      .replace("10.0.0.12:8000", others.join(""));
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (what) => `${what}_temp_path ${dir}/${what};`,
    );
    return `
daemon off;
${userInfo().uid === 0 ? "user root;" : ""}
pid ${dir}/nginx.pid;
error_log stderr;
worker_processes 1;
events { worker_connections 200; }
http { access_log off; ${temporary.join(" ")}
${block} }
`;
  },
  command: (dir, path) => ["nginx", "-p", dir, "-c", path],
};

/** Over TLS, with the proxy's certificate looked at. A path with two slashes before it is none of the customer API. */
async function ask(port: number, method: string, path: string, token: string, body?: object) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number;
    headers: IncomingHttpHeaders;
    body: unknown;
  }>();
  const asked = request(
    {
      host: "127.0.0.1",
      port,
      method,
      path: path.startsWith("//") ? path.slice(1) : `/presentation-api/v1${path}`,
      ca: certificate.pem,
      agent: false,
    },
    (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (piece: string) => (text += piece));
      answer.on("end", () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          body: text.startsWith("{") ? JSON.parse(text) : text,
        }),
      );
    },
  );
  asked.on("error", reject);
  asked.setHeader("authorization", `Token ${token}`);
  asked.setHeader("content-type", "application/json");
  asked.end(body === undefined ? undefined : JSON.stringify(body));
  return promise;
}

test.skipIf(sayingOf("haproxy", "-v") === undefined)(
  "where no central is there haproxy answers as a central whose store is away",
  { timeout: 60_000 },
  async () => {
    const [port = 0, ...closed] = await freePorts(3);
    await using _ = await startProxy(
      [port],
      (dir) =>
        haproxy.config(
          dir,
          port,
          closed.map((at) => ({ port: at })),
        ),
      haproxy.command,
    );
    const away = failureAnswer(new AccelError("STORE_UNREACHABLE", "away"), "r1", "POST");
    const { request_id: _id, ...document } = away.problem;
    const isTold = async (): Promise<void> => {
      const { status, headers, body } = await ask(port, "POST", "/trial/", "", {});
      expect([status, headers["retry-after"], headers["content-type"]]).toEqual([
        503,
        away.headers?.["retry-after"],
        "application/problem+json",
      ]);
      expect(body).toEqual({
        ...document,
        detail: document.detail.replace("central's store cannot", "no central can"),
      });
    };
    // While haproxy takes them for there, and afterwards.
    await isTold();
    await until("it has looked", async () => {
      const beganMs = performance.now();
      await isTold();
      return performance.now() - beganMs < 500;
    });
  },
);

describe.skipIf(bin === undefined)("behind a proxy as documented", { timeout: 300_000 }, () => {
  const opened = new AsyncDisposableStack();
  let several: SeveralCentrals;
  beforeAll(async () => {
    several = opened.use(await SeveralCentrals.start(bin ?? "", 2));
  }, 300_000);
  afterAll(async () => opened.disposeAsync(), 120_000);

  for (const proxy of [haproxy, nginx])
    test.skipIf(sayingOf(proxy.name, "-v") === undefined)(proxy.name, async () => behind(proxy));

  async function behind(proxy: Proxy): Promise<void> {
    const { name } = proxy;
    await using stack = new AsyncDisposableStack();
    const [port = 0] = await freePorts(1);
    stack.use(
      await startProxy([port], (dir) => proxy.config(dir, port, several.all), proxy.command),
    );
    const [one] = several.all;
    if (one === undefined) throw new Error("two were started");
    const { token: made } = await call(one.url, "POST", "/trial/", undefined, { username: name });
    const token = String(made);
    for (const path of ["/metrics", "/about/", "/healthz", "/readyz"])
      expect([path, (await ask(port, "GET", `/${path}`, "")).status]).toEqual([path, 404]);
    expect((await ask(port, "GET", "//", "")).status).toBe(200);
    const site = await call(one.url, "POST", "/deployment-site/", token, { tags: "all" });
    const domain = `www.${name}.example`;
    const linked = { name: domain, link_to_deployment_sites_with_tags: "all" };
    expect((await ask(port, "POST", "/domain/", token, linked)).status).toBe(201);

    const agent = await connectAgent(
      `${one.url}/agent-api/v1`,
      String(site["name16"]),
      String(site["secret16"]),
    );
    const [row] = await several.run("SELECT epoch FROM store");
    const epoch = String(Object(row)["epoch"]);
    const open = async (instance: string): Promise<FakeChannel> => {
      const socket = new WebSocket(`wss://127.0.0.1:${port}/agent-api/v1/channel`, {
        ca: certificate.pem,
        headers: { authorization: `Bearer ${agent.token.access_token}` },
      });
      const channel = new FakeChannel(socket);
      await once(socket, "open");
      stack.defer(() => channel[Symbol.dispose]());
      channel.hello(epoch, 0, undefined, instance, instance);
      await channel.next("welcome");
      // Whatever comes is applied, and told once.
      const told = new Set<number>();
      const tell = (): void => {
        for (const { seq } of channel.entries.filter((one) => !told.has(one.seq))) {
          told.add(seq);
          channel.receipt(seq, "applied", { matched: 1 });
        }
      };
      socket.on("message", tell);
      tell();
      return channel;
    };
    const channels = [await open("instance-1"), await open("instance-2")];
    await until("each central holds one", async () => {
      const held = await several.run(
        `SELECT DISTINCT central FROM channels WHERE deployment_site_id = ${Number(site["id"])}`,
      );
      return held.length === 2;
    });

    const beganMs = performance.now();
    await until(
      "longer than a request may take",
      () => performance.now() - beganMs > 1_500 * requestLimitS,
    );
    expect(channels.map(({ closed }) => closed)).toEqual([undefined, undefined]);
    const clear = async (): Promise<{ readonly status: number; readonly body: unknown }> =>
      ask(port, "POST", `/clear-accelerator-cache/${domain}/?wait=1`, token, {
        url_path_patterns: ["path:a"],
      });
    const first = await clear();
    expect([first.status, statesOf(first.body)]).toEqual([200, ["applied", "applied"]]);

    await one.program.kill();
    const statuses: number[] = [];
    for (let no = 0; no < 6; no++) {
      statuses.push((await clear()).status);
      statuses.push((await ask(port, "GET", "/fleet/", token)).status);
    }
    expect(statuses).toEqual(statuses.map(() => 200));
    await until("the channel at the killed one is gone", () =>
      channels.some(({ closed }) => closed !== undefined),
    );
    const gone = channels[0]?.closed === undefined ? "instance-2" : "instance-1";
    await open(gone);
    await until("both prove", async () => {
      const states = statesOf((await clear()).body);
      return states.length === 2 && states.every((state) => state === "applied");
    });
    await one.program.restart();
  }
});
