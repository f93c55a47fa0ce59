// A whole edge for a system test: the real central and the real agent as processes, with settings and state of their own, and plain HTTP towards both.

import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request as httpRequest, type Agent } from "node:http";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { freePorts } from "./free-ports.ts";
import { answers200, Program } from "./process.ts";
import { tempDir } from "./temp-dir.ts";

export type ApiAnswer = {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Headers;
};

/** Central may be on its way up again, on a busy machine. */
const answeredWithinMs = 120_000;

/** The customer API as a customer has it. A call that finds nobody is repeated: with its Idempotency-Key that is harmless. */
export class Api {
  readonly #base: string;
  readonly origin: string;
  token = "";

  constructor(origin: string) {
    this.origin = origin;
    this.#base = `${origin}/presentation-api/v1`;
  }

  async get(path: string): Promise<ApiAnswer> {
    return this.#call("GET", path, undefined, {});
  }

  async post(path: string, body: unknown, key: string = randomUUID()): Promise<ApiAnswer> {
    return this.#call("POST", path, body, { "idempotency-key": key });
  }

  async put(path: string, body: unknown): Promise<ApiAnswer> {
    return this.#call("PUT", path, body, {});
  }

  async delete(path: string): Promise<ApiAnswer> {
    return this.#call("DELETE", path, undefined, {});
  }

  async #call(
    method: string,
    path: string,
    body: unknown,
    headers: Record<string, string>,
  ): Promise<ApiAnswer> {
    const end = performance.now() + answeredWithinMs;
    for (;;) {
      try {
        const response = await fetch(`${this.#base}${path}`, {
          method,
          headers: {
            ...(this.token === "" ? {} : { authorization: `Token ${this.token}` }),
            "content-type": "application/json",
            ...headers,
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          signal: AbortSignal.timeout(60_000),
        });
        const text = await response.text();
        return {
          status: response.status,
          body: text === "" ? undefined : JSON.parse(text),
          headers: response.headers,
        };
      } catch (error) {
        if (performance.now() >= end) throw new Error(`${method} ${path}`, { cause: error });
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }
}

export type Visit = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
};
export type VisitOptions = {
  readonly method?: string;
  readonly host?: string;
  readonly userAgent?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Whose connections are kept; unsaid: each request has one of its own. */
  readonly agent?: Agent | undefined;
  /** The address that is asked; 127.0.0.1 if unsaid. */
  readonly at?: string;
};

export const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/** Without a byte. */
const visitWithinMs = 60_000;

/** One request of a visitor, by node:http so that Host and User-Agent are ours to choose. */
export async function visit(
  port: number,
  path: string,
  options: VisitOptions = {},
): Promise<Visit> {
  const { promise, resolve, reject } = Promise.withResolvers<Visit>();
  const userAgent = "userAgent" in options ? options.userAgent : browser;
  const outgoing = httpRequest(
    {
      host: options.at ?? "127.0.0.1",
      port,
      path,
      method: options.method ?? "GET",
      headers: {
        ...(options.host === undefined ? {} : { host: options.host }),
        ...(userAgent === undefined ? {} : { "user-agent": userAgent }),
        ...options.headers,
      },
      timeout: visitWithinMs,
      agent: options.agent ?? false,
    },
    (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
        }),
      );
      response.on("error", reject);
    },
  );
  outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer within ${visitWithinMs} ms`)));
  outgoing.on("error", reject);
  outgoing.end(options.body);
  return promise;
}

export type EdgePorts = {
  readonly central: number;
  readonly visitors: number;
  readonly metrics: number;
};

/** Much more than a start takes: machines may be busy with other tests. */
const startWithinMs = 180_000;

export class Edge implements AsyncDisposable {
  readonly ports: EdgePorts;
  readonly api: Api;
  readonly dir: string;
  readonly #temp = tempDir();
  #central: Program | undefined;
  #agent: Program | undefined;

  /** The address of everything. */
  readonly #host: string;
  /** As it stands before a port. */
  readonly #at: string;

  private constructor(ports: EdgePorts, host: string) {
    this.ports = ports;
    this.#host = host;
    this.#at = host.includes(":") ? `[${host}]` : host;
    this.dir = this.#temp.path;
    this.api = new Api(`http://${this.#at}:${ports.central}`);
  }

  /** Writes central's settings; starts nothing. `host`: the address at which everything listens. */
  static async prepare({ host = "127.0.0.1" } = {}): Promise<Edge> {
    const [central = 0, visitors = 0, metrics = 0] = await freePorts(3);
    const edge = new Edge({ central, visitors, metrics }, host);
    writeFileSync(
      join(edge.dir, "central.yaml"),
      stringify({
        listen: `${edge.#at}:${central}`,
        base_url: `http://${edge.#at}:${central}`,
        state_dir: join(edge.dir, "central"),
        log_level: "info",
      }),
    );
    return edge;
  }

  /** What the customer API gave for the deployment site; `more` are further settings. */
  writeAgentSettings(
    site: { readonly name16: string; readonly secret16: string },
    more: Readonly<Record<string, unknown>> = {},
  ): void {
    const { central, visitors, metrics } = this.ports;
    mkdirSync(join(this.dir, "agent"), { recursive: true, mode: 0o700 });
    writeFileSync(join(this.dir, "secret16"), site.secret16, { mode: 0o600 });
    const settings = {
      central_url: `http://${this.#at}:${central}`,
      name16: site.name16,
      secret16_file: join(this.dir, "secret16"),
      state_dir: join(this.dir, "agent"),
      accelerator: {
        listen: `${this.#at}:${visitors}`,
        workers: 2,
        trusted_proxies: [this.#host],
      },
      metrics: { listen: `${this.#at}:${metrics}` },
      edge: {
        server_name: "edge-test",
        edge_ip_address: this.#host,
        at_directory: this.dir,
        datacenter: {
          datacenter_place: "Here",
          country_code: "DE",
          datacenter_provider_company: "Loopback",
        },
        metrics_advertise: `${this.#at}:${metrics}`,
      },
      ...more,
    };
    writeFileSync(join(this.dir, "agent.yaml"), stringify(settings));
  }

  /** Adds to what `writeAgentSettings` wrote; for the next start. */
  changeAgentSettings(more: Readonly<Record<string, unknown>>): void {
    this.#changeSettings("agent.yaml", more);
  }

  /** Adds to what `prepare` wrote; for the next start. */
  changeCentralSettings(more: Readonly<Record<string, unknown>>): void {
    this.#changeSettings("central.yaml", more);
  }

  #changeSettings(file: string, more: Readonly<Record<string, unknown>>): void {
    const path = join(this.dir, file);
    const settings = parse(readFileSync(path, "utf8")) as Record<string, unknown>;
    writeFileSync(path, stringify({ ...settings, ...more }));
  }

  get central(): Program {
    if (this.#central === undefined) throw new Error("central was not started");
    return this.#central;
  }

  get agent(): Program {
    if (this.#agent === undefined) throw new Error("the agent was not started");
    return this.#agent;
  }

  /** `main`: another one than the sources, as a build; `prefix`: a command that runs it in its own place. */
  async startCentral(main?: string, prefix?: readonly string[]): Promise<void> {
    this.#central = await Program.start(
      ["central", "serve", "--config", join(this.dir, "central.yaml")],
      () => answers200(`http://${this.#at}:${this.ports.central}/readyz`),
      {},
      startWithinMs,
      main,
      prefix,
    );
  }

  /** `main` and `prefix` as there. */
  async startAgent(main?: string, prefix?: readonly string[]): Promise<void> {
    this.#agent = await Program.start(
      ["agent", "run", "--config", join(this.dir, "agent.yaml")],
      () => answers200(`http://${this.#at}:${this.ports.metrics}/readyz`),
      {},
      startWithinMs,
      main,
      prefix,
    );
  }

  visit(path: string, options: VisitOptions = {}): Promise<Visit> {
    return visit(this.ports.visitors, path, { at: this.#host, ...options });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.[Symbol.asyncDispose]();
    await this.#central?.[Symbol.asyncDispose]();
    this.#temp[Symbol.dispose]();
  }
}
