// Two customers, three deployment sites, four agents, one central, one origin: real programs, each with settings and state of its own.
//
//   ada   www.outside.example   site one: agents a1 and a2; site two: agent a3
//   bob   www.second.example    site three: agent b1

import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { stringify } from "yaml";
import { Api, Edge } from "./edge.ts";
import { freePorts } from "./free-ports.ts";
import { answers200, Program } from "./process.ts";

export type Customer = { readonly name: string; readonly domain: string; readonly api: Api };
export type SiteIdentity = {
  readonly id: number;
  readonly name16: string;
  readonly secret16: string;
};
export type OutsideAgent = {
  readonly name: string;
  readonly customer: Customer;
  readonly site: SiteIdentity;
  readonly port: number;
  readonly metricsPort: number;
  readonly configFile: string;
  readonly program: Program;
};

export const tag = "outside";
const startWithinMs = 180_000;

export class OutsideScene implements AsyncDisposable {
  readonly edge: Edge;
  readonly origin: OutsideOrigin;
  readonly customers: readonly Customer[];
  readonly agents: readonly OutsideAgent[];
  /** What processes that have ended had counted of requests to the origin, by domain. */
  readonly originBefore = new Map<string, number>();
  readonly #stack: AsyncDisposableStack;

  private constructor(
    edge: Edge,
    origin: OutsideOrigin,
    agents: readonly OutsideAgent[],
    stack: AsyncDisposableStack,
  ) {
    this.edge = edge;
    this.origin = origin;
    this.agents = agents;
    this.customers = [...new Set(agents.map(({ customer }) => customer))];
    this.#stack = stack;
  }

  static async start(): Promise<OutsideScene> {
    await using stack = new AsyncDisposableStack();
    const edge = stack.use(await Edge.prepare());
    await edge.startCentral();
    const origin = stack.use(await startOutsideOrigin());
    const base = `http://127.0.0.1:${edge.ports.central}`;
    const ada = await newCustomer(base, "ada", "www.outside.example");
    const bob = await newCustomer(base, "bob", "www.second.example");
    const [one, two, three] = [await newSite(ada), await newSite(ada), await newSite(bob)];
    const plan = [
      { name: "a1", customer: ada, site: one },
      { name: "a2", customer: ada, site: one },
      { name: "a3", customer: ada, site: two },
      { name: "b1", customer: bob, site: three },
    ];
    const agents: OutsideAgent[] = [];
    for (const { name, customer, site } of plan) {
      const agent = await startAgent(edge, name, customer, site);
      stack.use(agent.program);
      agents.push(agent);
    }
    for (const { api, domain } of [ada, bob]) {
      await created(api, "/domain/", { name: domain, link_to_deployment_sites_with_tags: tag });
      const policy = { general_policy: { unknown_bots_can_access: api === ada.api } };
      const { status } = await api.post("/bot-access-policy/", policy);
      if (status !== 200) throw new Error(`bot access policy: ${status}`);
    }
    return new OutsideScene(edge, origin, agents, stack.move());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

async function newCustomer(base: string, name: string, domain: string): Promise<Customer> {
  const api = new Api(base);
  const trial = await api.post("/trial/", { username: name, email: `${name}@example.com` });
  api.token = (trial.body as { readonly token: string }).token;
  return { name, domain, api };
}

async function newSite({ api }: Customer): Promise<SiteIdentity> {
  return (await created(api, "/deployment-site/", { tags: tag })) as SiteIdentity; // What the specification says of this answer.
}

async function created(api: Api, path: string, body: unknown): Promise<unknown> {
  const answer = await api.post(path, body);
  if (answer.status !== 201)
    throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

async function startAgent(
  edge: Edge,
  name: string,
  customer: Customer,
  site: SiteIdentity,
): Promise<OutsideAgent> {
  const dir = join(edge.dir, name);
  mkdirSync(join(dir, "state"), { recursive: true, mode: 0o700 });
  const [port = 0, metricsPort = 0] = await freePorts(2);
  writeFileSync(join(dir, "secret16"), site.secret16, { mode: 0o600 });
  const configFile = join(dir, "agent.yaml");
  writeFileSync(
    configFile,
    stringify({
      central_url: `http://127.0.0.1:${edge.ports.central}`,
      name16: site.name16,
      secret16_file: join(dir, "secret16"),
      state_dir: join(dir, "state"),
      accelerator: { listen: `127.0.0.1:${port}`, workers: 2, trusted_proxies: ["127.0.0.1"] },
      metrics: { listen: `127.0.0.1:${metricsPort}` },
      edge: {
        server_name: `edge-${name}`,
        edge_ip_address: "127.0.0.1",
        at_directory: dir,
        datacenter: {
          datacenter_place: "Here",
          country_code: "DE",
          datacenter_provider_company: "Loopback",
        },
        metrics_advertise: `127.0.0.1:${metricsPort}`,
      },
    }),
  );
  const program = await Program.start(
    ["agent", "run", "--config", configFile],
    () => answers200(`http://127.0.0.1:${metricsPort}/readyz`),
    {},
    startWithinMs,
  );
  return { name, customer, site, port, metricsPort, configFile, program };
}

export type OutsideOrigin = AsyncDisposable & {
  readonly url: string;
  /** Requests that arrived, by Host. */
  readonly asked: ReadonlyMap<string, number>;
  /** From now on each body names this edition. */
  edition: number;
};

/** Answers every path with the edition of its content; `/private/…` is never to be stored, everything else is fresh for an hour. */
async function startOutsideOrigin(): Promise<OutsideOrigin> {
  const asked = new Map<string, number>();
  const origin = { edition: 1 };
  const server = createServer((request, response) => {
    const host = (request.headers.host ?? "").split(":", 1)[0] ?? "";
    asked.set(host, (asked.get(host) ?? 0) + 1);
    const isPrivate = (request.url ?? "").startsWith("/private/");
    response.writeHead(200, {
      "content-type": "text/html; charset=utf-8",
      "cache-control": isPrivate ? "private, no-store" : "public, max-age=3600",
    });
    const text = `edition ${origin.edition} of ${host}${request.url}\n`;
    request.resume().on("end", () => response.end(text.padEnd(2_000, ".")));
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    get edition() {
      return origin.edition;
    },
    set edition(to: number) {
      origin.edition = to;
    },
    async [Symbol.asyncDispose]() {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
