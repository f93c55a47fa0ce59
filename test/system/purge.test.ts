// A content management system asks one accelerator to clear a page; the other has it cleared by central.

import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { Edge, visit } from "../support/edge.ts";
import { startFurtherAgent, type Site } from "../support/further-agent.ts";
import { until } from "../support/until.ts";

const domain = "www.example.com";

/** Each answer has a number of its own and the tag `node:1`. */
async function startTagged(): Promise<AsyncDisposable & { readonly url: string }> {
  let answers = 0;
  const server = createServer((_request, response) => {
    response.writeHead(200, { "cache-control": "public, max-age=600", "cache-tags": "node:1 x" });
    response.end(String(++answers));
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      await closed.promise;
    },
  };
}

async function activate({ api }: Edge, url: string): Promise<void> {
  const site = { backend: { urls: [url] }, purge: { addresses: ["127.0.0.1"] } };
  const content = JSON.stringify({ domains: { [domain]: site } });
  const made = await api.post(`/${domain}/devlove/first/`, { schema: "devlove/1", content });
  expect(made.status).toBe(201);
  const [version] = (await api.get(`/active-viewset/${domain}/`)).body as readonly { id: number }[];
  const path = `/active-viewset/${domain}/${version?.id}/`;
  await api.put(path, {});
  await until(
    "the activation is proved",
    async () => ((await api.get(path)).body as { activation?: string }).activation === "applied",
    180_000,
  );
}

/** By a socket: node's client knows no BAN either. */
async function send(
  port: number,
  method: string,
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = `${method} /page HTTP/1.1\r\nhost: ${domain}\r\n${fields.join("")}connection: close\r\n\r\n`;
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.setEncoding("latin1").on("data", (said: string) => (answer += said));
  socket.write(text);
  await once(socket, "close");
  return answer;
}

test("a purge at one accelerator reaches the other", { timeout: 400_000 }, async () => {
  await using origin = await startTagged();
  await using edge = await Edge.prepare();
  await edge.startCentral();
  const { api } = edge;
  const trial = await api.post("/trial/", { username: "purge", email: "p@example.com" });
  api.token = (trial.body as { readonly token: string }).token;
  const site = (await api.post("/deployment-site/", { tags: "eu" })).body as Site; // As the specification says.
  await api.post("/domain/", { name: domain, deployment_site_id: site.id });
  edge.writeAgentSettings(site);
  await edge.startAgent();
  await using other = await startFurtherAgent(edge, site, "edge-other");
  await activate(edge, origin.url);
  const ports = [edge.ports.visitors, other.port];
  const read = async (port: number): Promise<string> =>
    (await visit(port, "/page", { host: domain })).body.toString();
  const rows = [
    { method: "PURGE", userAgent: "WordPress/6.4; https://www.example.com", headers: {} },
    { method: "BAN", userAgent: "GuzzleHttp/7", headers: { "cache-tags": "node:1" } },
    { method: "PURGE", userAgent: "GuzzleHttp/7", headers: { xkey: "x" } },
  ];
  for (const { method, userAgent, headers } of rows) {
    const before = await Promise.all(ports.map(read));
    expect(await Promise.all(ports.map(read))).toEqual(before);
    const purged = await send(edge.ports.visitors, method, { ...headers, "user-agent": userAgent });
    expect(purged).toMatch(/^HTTP\/1\.1 200 /);
    expect(purged).toContain('"matched":1');
    expect(await read(edge.ports.visitors)).not.toBe(before[0]);
    await until("the other is told", async () => (await read(other.port)) !== before[1], 60_000);
  }
  const refused = await send(edge.ports.visitors, "BAN", { "cache-tags": "node:.*" });
  expect(refused).toMatch(/^HTTP\/1\.1 400 /);
});
