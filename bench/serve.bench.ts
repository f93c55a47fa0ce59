// Serving through the whole pipeline (client address, verdict, route, file or cache, record) against a bare node:http server with the same bytes.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { browser, Edge } from "../test/support/edge.ts";
import { CustomerScript, domain } from "../test/support/customer-script.ts";
import { startOrigin } from "../test/support/origin.ts";
import { until } from "../test/support/until.ts";
import { measure, show } from "./load.ts";

const bytes = Buffer.alloc(4_096, "x");

async function startBare(): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-length": bytes.length });
    response.end(bytes);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo; // A TCP server that listens has one.
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

export async function run(say: (line: string) => void): Promise<void> {
  await using origin = await startOrigin();
  await using edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "bench");
  await script.enrol();
  const views = join(edge.dir, "views");
  mkdirSync(views);
  writeFileSync(join(views, "file.txt"), bytes);
  const devlove = join(edge.dir, "devlove.json");
  writeFileSync(
    devlove,
    JSON.stringify({ domains: { [domain]: { backend: { urls: [origin.url] } } } }),
  );
  edge.changeAgentSettings({ sites: [{ domain, views_dir: views, devlove_file: devlove }] });
  await edge.startAgent();
  await script.steps()[0]?.run();
  await until(
    "the site",
    async () => (await edge.visit("/file.txt", { host: domain })).status === 200,
  );
  await edge.visit("/page/hit", { host: domain });

  await using bare = await startBare();
  const url = `http://127.0.0.1:${edge.ports.visitors}`;
  const headers = { host: domain, "user-agent": browser };
  const limit = await measure(bare.url, "/");
  say(show("bare node:http, one thread", limit, limit));
  say(
    show(
      "file of the host's directory, 4 KiB",
      await measure(url, "/file.txt", { headers }),
      limit,
    ),
  );
  say(show("cached origin response", await measure(url, "/page/hit", { headers }), limit));
  say(show("passed through to the origin", await measure(url, "/private", { headers }), limit));
}
