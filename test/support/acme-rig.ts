// A directory of ACME, the real central and several real agents of one site, each at an address of its own: hosts lead to all
// of them, as in the field.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { stringify } from "yaml";
import { Edge } from "./edge.ts";
import { freePorts } from "./free-ports.ts";
import type { Site } from "./further-agent.ts";
import { Pebble, type PebbleOptions } from "./pebble.ts";
import { answers200, Program } from "./process.ts";
import { until } from "./until.ts";

export type AcmeRigOptions = Omit<PebbleOptions, "httpPort"> & {
  readonly agents: number;
  /** Another main file than the sources, as a build. */
  readonly main?: string;
  /** Whether the directory looks at another port than central, where nobody listens. */
  readonly looksElsewhere?: boolean;
};

export type AcmeAgent = {
  readonly address: string;
  readonly program: Program;
};

export type OrderShown = {
  readonly id: number;
  readonly domain: string;
  readonly names: readonly string[];
  readonly state: string;
  readonly attempts: number;
  readonly error: string | null;
  readonly left_out: readonly { readonly host: string; readonly reason: string }[];
  readonly next_at: string;
  readonly certificate: {
    readonly names: readonly string[];
    readonly fingerprint: string;
    readonly not_after: string;
    readonly renew_at: string;
  } | null;
};

/** Much more than an order takes: machines may be busy with other tests. */
export const issuedWithinMs = 180_000;
export const acmeEmail = "certificates@example.com";

export class AcmeRig implements AsyncDisposable {
  readonly edge: Edge;
  readonly pebble: Pebble;
  readonly site: Site;
  readonly agents: AcmeAgent[] = [];
  readonly httpPort: number;
  readonly tlsPort: number;
  readonly #main: string | undefined;
  readonly #stack: AsyncDisposableStack;

  private constructor(
    parts: Pick<AcmeRig, "edge" | "pebble" | "site" | "httpPort" | "tlsPort">,
    main: string | undefined,
    stack: AsyncDisposableStack,
  ) {
    this.edge = parts.edge;
    this.pebble = parts.pebble;
    this.site = parts.site;
    this.httpPort = parts.httpPort;
    this.tlsPort = parts.tlsPort;
    this.#main = main;
    this.#stack = stack;
  }

  /** Resolves when so many agents serve; no domain is there yet. */
  static async start({
    agents,
    main,
    looksElsewhere = false,
    ...options
  }: AcmeRigOptions): Promise<AcmeRig> {
    await using stack = new AsyncDisposableStack();
    const [httpPort = 0, tlsPort = 0, nobodys = 0] = await freePorts(3);
    const looksAt = looksElsewhere ? nobodys : httpPort;
    const pebble = stack.use(await Pebble.start({ ...options, httpPort: looksAt }));
    const edge = stack.use(await Edge.prepare());
    edge.changeCentralSettings({
      acme: {
        ca_file: pebble.caFile,
        private_addresses: true,
        resolvers: [pebble.dns],
        check_port: httpPort,
      },
    });
    await edge.startCentral(main);
    const trial = await edge.api.post("/trial/", { username: "acme", email: "acme@example.com" });
    edge.api.token = (trial.body as { readonly token: string }).token;
    const site = (await edge.api.post("/deployment-site/", { tags: "eu" })).body as Site;
    const rig = new AcmeRig({ edge, pebble, site, httpPort, tlsPort }, main, stack.move());
    for (let no = 1; no <= agents; no++) await rig.startAgent(no);
    return rig;
  }

  /** Starts another agent of the site; `no` is the last part of its address. */
  async startAgent(no: number): Promise<AcmeAgent> {
    const { edge, site } = this;
    const dir = join(edge.dir, `agent-${no}`);
    const address = `127.0.1.${no}`;
    const [metrics = 0] = await freePorts(1);
    mkdirSync(join(dir, "state"), { recursive: true, mode: 0o700 });
    writeFileSync(join(dir, "secret16"), site.secret16, { mode: 0o600 });
    const settings = {
      central_url: edge.api.origin,
      name16: site.name16,
      secret16_file: join(dir, "secret16"),
      state_dir: join(dir, "state"),
      accelerator: {
        listen: `${address}:${this.httpPort}`,
        tls_listen: `${address}:${this.tlsPort}`,
        workers: 1,
      },
      metrics: { listen: `127.0.0.1:${metrics}` },
    };
    writeFileSync(join(dir, "agent.yaml"), stringify(settings));
    const program = this.#stack.use(
      await Program.start(
        ["agent", "run", "--config", join(dir, "agent.yaml")],
        async () => answers200(`http://127.0.0.1:${metrics}/readyz`),
        {},
        undefined,
        this.#main,
      ),
    );
    const agent = { address, program };
    this.agents.push(agent);
    return agent;
  }

  /** Makes a domain that leads to all agents. */
  async addDomain(name: string, subDomains: readonly string[] = []): Promise<void> {
    const { api } = this.edge;
    const made = await api.post("/domain/", { name, deployment_site_id: this.site.id });
    if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    await this.leads(name);
    for (const sub of subDomains) {
      const added = await api.put(`/domain/${name}/`, {
        sub_domain: { name: sub, share_views_and_views_dir_with_main_domain: true },
      });
      if (added.status >= 300) throw new Error(JSON.stringify(added.body));
      await this.leads(sub);
    }
  }

  async leads(host: string): Promise<void> {
    await this.pebble.leads(host, ...this.agents.map(({ address }) => address));
  }

  /** Activates a devlove that orders certificates; `more` is said of the main domain besides. */
  async orderFor(
    name: string,
    more: Readonly<Record<string, unknown>> = {},
    version = "first",
  ): Promise<void> {
    const { api } = this.edge;
    const acme = { email: acmeEmail, directory: this.pebble.directory };
    const { tls = {}, ...rest } = more;
    const site = { ...rest, tls: { acme, ...(tls as object) } };
    const content = JSON.stringify({ domains: { [name]: site } });
    const made = await api.post(`/${name}/devlove/${version}/`, { schema: "devlove/1", content });
    if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    const versions = (await api.get(`/active-viewset/${name}/`)).body as readonly { id: number }[];
    const done = await api.put(`/active-viewset/${name}/${versions.at(-1)?.id}/`, {});
    if (done.status >= 300) throw new Error(JSON.stringify(done.body));
  }

  async orders(): Promise<readonly OrderShown[]> {
    const { status, body } = await this.edge.api.get("/certificate-orders/?limit=1000");
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body as readonly OrderShown[];
  }

  async orderOf(domain: string): Promise<OrderShown | undefined> {
    return (await this.orders()).find((one) => one.domain === domain);
  }

  /** Resolves with the order when it has come so far. */
  async untilOrder(
    domain: string,
    what: string,
    isSo: (order: OrderShown) => boolean,
    withinMs = issuedWithinMs,
  ): Promise<OrderShown> {
    let last: OrderShown | undefined;
    await until(
      `${what}: ${domain}`,
      async () => {
        last = await this.orderOf(domain);
        return last !== undefined && isSo(last);
      },
      withinMs,
    ).catch((error: unknown) => {
      throw new Error(
        `${String(error)}\n${JSON.stringify(last)}\n${this.edge.central.said.slice(-3_000)}\n${this.pebble.said.slice(-3_000)}`,
      );
    });
    if (last === undefined) throw new Error(`no order of ${domain}`);
    return last;
  }

  async untilIssued(domain: string): Promise<OrderShown> {
    return this.untilOrder(domain, "issued", ({ state }) => state === "issued");
  }

  /** Resolves when every agent serves the certificate of the order in a handshake that verifies. */
  async untilServed(host: string, fingerprint: string): Promise<void> {
    const ca = await this.pebble.root();
    for (const { address } of this.agents)
      await until(
        `${host} is served at ${address}`,
        async () => (await handshake(address, this.tlsPort, host, ca)) === fingerprint,
        issuedWithinMs,
      );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** The SHA-256 of the certificate that is served, in hex, or why there is none. */
export async function handshake(
  address: string,
  port: number,
  servername: string,
  ca: string,
): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect({ host: address, port, servername, ca, timeout: 20_000 }, () => {
    const { fingerprint256 = "" } = socket.getPeerX509Certificate() ?? {};
    resolve(fingerprint256.replaceAll(":", "").toLowerCase());
  });
  socket.once("timeout", () => socket.destroy(new Error("no handshake in time")));
  socket.once("error", (error) => resolve(`failed: ${error.message}`));
  return promise.finally(() => socket.destroy());
}
