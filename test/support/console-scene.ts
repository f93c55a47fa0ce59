// What the console is shown with: a real central, three agents of one site on hosts of their own names, an origin, and a browser. What the agents recorded is read
// from them, not from central.

import { execFile, execFileSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium, type Browser } from "playwright-core";
import type { RequestRecord } from "../../src/wire/request-log.ts";
import { Edge, visit, type Visit, type VisitOptions } from "./edge.ts";
import { startFurtherAgent, type Site } from "./further-agent.ts";
import { mainFile, node } from "./process.ts";
import { until } from "./until.ts";

export const consoleDomain = "shop.example.com";

const installed = ["chromium", "chromium-browser", "google-chrome"].flatMap((name) => {
  try {
    return [execFileSync("which", [name], { encoding: "utf8" }).trim()];
  } catch {
    return [];
  }
});
/** Where the browser is. Undefined where there is none. */
export const [browserPath] = installed;

export async function openBrowser(): Promise<Browser> {
  if (browserPath === undefined) throw new Error("there is no browser here");
  return chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
}

/** Pages have a version each; `/error` fails, `/missing` is not there, `/slow` takes its time. */
export async function startShop(greeting: string) {
  const versions = new Map<string, number>();
  const server = createServer(({ url = "/" }, response) => {
    const answer = (status: number, headers: Readonly<Record<string, string>>): void => {
      response.writeHead(status, { "content-type": "text/html", ...headers });
      response.end(`<!doctype html><title>${greeting}</title>${url} ${versions.get(url) ?? 0}`);
    };
    if (url.startsWith("/error")) return answer(500, { "cache-control": "no-store" });
    if (url.startsWith("/missing")) return answer(404, { "cache-control": "no-store" });
    if (url.startsWith("/slow"))
      return void setTimeout(() => answer(200, { "cache-control": "no-store" }), 80);
    return answer(200, { "cache-control": "public, max-age=3600", "cache-tag": "shop" });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  return {
    url: `http://127.0.0.1:${port}`,
    change: (path: string) => void versions.set(path, (versions.get(path) ?? 0) + 1),
    [Symbol.asyncDispose]: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}

export type Shop = Awaited<ReturnType<typeof startShop>>;

export type Host = { readonly name: string; readonly port: number; readonly config: string };

export class ConsoleScene implements AsyncDisposable {
  readonly edge: Edge;
  readonly shop: Shop;
  readonly hosts: readonly Host[];
  readonly #stack: AsyncDisposableStack;

  private constructor(edge: Edge, shop: Shop, hosts: readonly Host[], stack: AsyncDisposableStack) {
    this.edge = edge;
    this.shop = shop;
    this.hosts = hosts;
    this.#stack = stack;
  }

  static async start(): Promise<ConsoleScene> {
    await using stack = new AsyncDisposableStack();
    const shop = stack.use(await startShop("first"));
    const edge = stack.use(await Edge.prepare());
    await edge.startCentral();
    const site = await enrol(edge);
    edge.writeAgentSettings(site);
    await edge.startAgent();
    const hosts = [
      { name: "edge-test", port: edge.ports.visitors, config: join(edge.dir, "agent.yaml") },
    ];
    for (const name of ["edge-two", "edge-three"]) {
      const { port, dir } = stack.use(await startFurtherAgent(edge, site, name));
      hosts.push({ name, port, config: join(dir, "agent.yaml") });
    }
    await activateShop(edge, shop.url);
    return new ConsoleScene(edge, shop, hosts, stack.move());
  }

  async visit(host: Host, path: string, options: VisitOptions = {}): Promise<Visit> {
    return visit(host.port, path, { host: consoleDomain, ...options });
  }

  /** What an agent recorded of the requests to it, the oldest first. */
  async records({ config }: Host): Promise<readonly RequestRecord[]> {
    const args = [
      mainFile,
      "agent",
      "logs",
      "tail",
      "--json",
      "--lines",
      "10000",
      "--config",
      config,
    ];
    const { stdout } = await promisify(execFile)(node, args, { maxBuffer: 2 ** 26 });
    return stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as RequestRecord);
  }

  async everyRecord(): Promise<readonly RequestRecord[]> {
    return (await Promise.all(this.hosts.map(async (host) => this.records(host)))).flat();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

async function enrol({ api }: Edge): Promise<Site> {
  const trial = await api.post("/trial/", { username: "keeper", email: "keeper@example.com" });
  api.token = (trial.body as { readonly token: string }).token;
  const site = (await api.post("/deployment-site/", { tags: "eu" })).body as Site; // As the specification says.
  await api.post("/domain/", { name: consoleDomain, deployment_site_id: site.id });
  return site;
}

async function activateShop({ api }: Edge, originUrl: string): Promise<void> {
  const content = devloveOf(originUrl);
  const path = `/${consoleDomain}/devlove/first/`;
  const made = await api.post(path, { schema: "devlove/1", content });
  if (made.status !== 201) throw new Error(JSON.stringify(made.body));
  const versions = `/active-viewset/${consoleDomain}/`;
  const [version] = (await api.get(versions)).body as readonly { id: number }[];
  await api.put(`${versions}${version?.id}/`, {});
  await until("the site is served", async () => {
    const { body } = await api.get(versions);
    return (body as readonly { activation: unknown }[])[0]?.activation === "applied";
  });
}

export function devloveOf(originUrl: string): string {
  return JSON.stringify({ domains: { [consoleDomain]: { backend: { urls: [originUrl] } } } });
}
