// Central with its store on PostgreSQL, through the real programs: a customer's whole script with two hosts, and then PostgreSQL restarts, crashes and is killed, and
// central is killed, while orders go on. What was acknowledged is there, once, at central and on both hosts.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { CustomerScript, domain, walkLogs } from "../support/customer-script.ts";
import { browser, Edge, visit, type ApiAnswer } from "../support/edge.ts";
import { freePorts } from "../support/free-ports.ts";
import { startMailServer, type MailServer } from "../support/mail-server.ts";
import { startOrigin } from "../support/origin.ts";
import { PostgresServer, postgresBin } from "../support/postgres-server.ts";
import { answers200, mainFile, node, Program } from "../support/process.ts";
import { until } from "../support/until.ts";
import { makeCertificate } from "../support/x509.ts";

const bin = postgresBin();
const password = "not-to-be-seen-anywhere";
/** Orders before, during and after each fault. */
const ordersAround = 6;
const provedWithinMs = 180_000;

/** With TLS and a password, as over a network; each commit is on its disk. */
async function startServer(): Promise<{ server: PostgresServer; ca: string }> {
  const authority = makeCertificate({ subject: "An authority", isAuthority: true });
  const own = makeCertificate({ subject: "db", names: ["127.0.0.1"], issuer: authority });
  const server = await PostgresServer.start(bin ?? "", {
    isDurable: true,
    settings: ["ssl=on"],
    files: {
      "server.crt": own.pem,
      "server.key": own.key,
      "pg_hba.conf": "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n",
    },
  });
  await server.run(
    "postgres",
    `CREATE ROLE central LOGIN PASSWORD '${password}'`,
    "CREATE DATABASE central OWNER central TEMPLATE template0",
  );
  return { server, ca: authority.pem };
}

function settingsOfStore(edge: Edge, server: PostgresServer, ca: string, mails: MailServer): void {
  const at = (name: string): string => join(edge.dir, name);
  writeFileSync(at("store.password"), `${password}\n`, { mode: 0o600 });
  writeFileSync(at("store-ca.pem"), ca);
  edge.changeCentralSettings({
    store: {
      url: `postgres://central@127.0.0.1:${server.port}/central`,
      password_file: at("store.password"),
      ca_file: at("store-ca.pem"),
    },
    mail: {
      server: `smtp://127.0.0.1:${mails.port}`,
      starttls: "never",
      from: "accel@c.example",
    },
  });
}

type Joined = AsyncDisposable & { readonly port: number; readonly stateDir: string };

/** A second host joins a site by a code. */
async function joinHost(edge: Edge, code: string): Promise<Joined> {
  const dir = join(edge.dir, "joined");
  const stateDir = join(dir, "state");
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const [port = 0, metrics = 0] = await freePorts(2);
  const config = join(dir, "agent.yaml");
  writeFileSync(
    config,
    stringify({
      state_dir: stateDir,
      accelerator: { listen: `127.0.0.1:${port}`, workers: 1, trusted_proxies: ["127.0.0.1"] },
      metrics: { listen: `127.0.0.1:${metrics}` },
    }),
  );
  const args = ["agent", "join", "--config", config, "--central", edge.api.origin];
  const command = spawn(node, [mainFile, ...args], { stdio: ["pipe", "pipe", "pipe"] });
  let said = "";
  for (const stream of [command.stdout, command.stderr])
    stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  command.stdin.end(`${code}\n`);
  const [exit] = await once(command, "close");
  expect([exit, said]).toEqual([0, expect.stringContaining("joined at")]);
  const program = await Program.start(["agent", "run", "--config", config], async () =>
    answers200(`http://127.0.0.1:${metrics}/readyz`),
  );
  return { port, stateDir, [Symbol.asyncDispose]: async () => program[Symbol.asyncDispose]() };
}

/** A customer that marks one address after the other, and repeats what was not acknowledged under its key. */
class Orders {
  readonly acknowledged: string[] = [];
  readonly refused: ApiAnswer[] = [];
  readonly #edge: Edge;
  readonly #ending = new AbortController();
  readonly #running: Promise<void>;

  constructor(edge: Edge) {
    this.#edge = edge;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    for (let no = 1; !this.#ending.signal.aborted; no++) {
      const address = `198.51.${Math.floor(no / 250)}.${(no % 250) + 1}`;
      const body = { attach_to_bot: "orders", attach_to_domain: domain };
      for (;;) {
        const answer = await this.#edge.api.post(`/mark-as-bad-bot/${address}/`, body, address);
        if (answer.status === 200) break;
        this.refused.push(answer);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      this.acknowledged.push(address);
    }
  }

  /** Resolves when so many more were acknowledged. */
  async more(count: number): Promise<void> {
    const wanted = this.acknowledged.length + count;
    await until(`${wanted} orders`, () => this.acknowledged.length >= wanted, provedWithinMs);
  }

  async end(): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }
}

const metricsOf = async (edge: Edge): Promise<string> =>
  (await fetch(`${edge.api.origin}/metrics`)).text();
const warns = async (edge: Edge): Promise<boolean> =>
  (await metricsOf(edge)).includes('code="store_unreachable"');

/** What holds while PostgreSQL is away: central is ready, customers are told to come again, hosts serve. */
async function expectAway(edge: Edge, ports: readonly number[]): Promise<void> {
  await until("the warning", async () => warns(edge));
  expect((await fetch(`${edge.api.origin}/readyz`)).status).toBe(200);
  const { status, body, headers } = await edge.api.get("/domain/");
  expect({ status, body }).toMatchObject({
    status: 503,
    body: { status: 503, title: "Service Unavailable", request_id: expect.any(String) },
  });
  expect(headers.get("content-type")).toBe("application/problem+json");
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  for (const port of ports) {
    const answer = await visit(port, "/page/one?x=1", { host: domain, userAgent: browser });
    expect(answer.status).toBe(200);
  }
}

async function setOf(stateDir: string): Promise<unknown> {
  const args = ["agent", "bots", "list", "--json", "--state-dir", stateDir];
  await using command = await Program.start(args);
  await command.exited();
  return JSON.parse(command.said);
}

test.skipIf(bin === undefined)(
  "orders go on over restarts, a crash and kills of PostgreSQL, and over a kill of central",
  { timeout: 900_000 },
  async () => {
    await using stack = new AsyncDisposableStack();
    const origin = stack.use(await startOrigin());
    const mails = stack.use(await startMailServer());
    const { server, ca } = await startServer();
    stack.use(server);
    const edge = stack.use(await Edge.prepare());
    settingsOfStore(edge, server, ca, mails);
    await edge.startCentral();
    const script = new CustomerScript(edge, origin.url, "postgres");
    await script.enrol();
    await edge.startAgent();
    const made = await edge.api.post(`/deployment-site/${script.siteId}/enrolment/`, { uses: 1 });
    const joined = stack.use(await joinHost(edge, String(Object(made.body)["code"])));
    for (const { name, run } of script.steps())
      await run().catch((error: unknown) => {
        throw new Error(`step ${name}\n${edge.central.said.slice(-4_000)}`, { cause: error });
      });

    const pid = edge.central.pid;
    const orders = new Orders(edge);
    const recover = async (): Promise<void> => {
      const user = { username: "user-postgres-u", email: "user@example.com" };
      await until("the recovery is taken", async () => {
        const { status } = await edge.api.post("/tokens/start-recovery/", user);
        return status === 200;
      });
    };
    const ports = [edge.ports.visitors, joined.port];
    for (const mode of ["fast", "immediate", "kill"] as const) {
      await orders.more(ordersAround);
      await recover();
      await server.end(mode);
      await expectAway(edge, ports);
      await server.begin();
      await orders.more(ordersAround);
      await until("the warning is over", async () => !(await warns(edge)));
    }
    expect([edge.central.ended, edge.central.pid]).toEqual([false, pid]);
    await edge.central.kill();
    await edge.central.restart();
    await orders.more(ordersAround);
    await orders.end();

    // Nothing was lost, and so the store is still the same one.
    expect(await server.run("central", "SELECT 1 FROM restores")).toEqual([]);
    // Nobody was answered anything but "done" and "not now".
    expect(orders.refused.length).toBeGreaterThan(0);
    for (const { status, headers } of orders.refused)
      expect([status, headers.get("retry-after")]).toEqual([503, "5"]);
    const { body: bots } = await edge.api.get("/list-bad-bots/");
    const listed = (bots as { name: string; ip_addresses: string[] }[]).find(
      ({ name }) => name === "orders",
    );
    expect(listed?.ip_addresses.toSorted()).toEqual(orders.acknowledged.toSorted());
    for (const stateDir of [join(edge.dir, "agent"), joined.stateDir])
      await until(
        `all orders in ${stateDir}`,
        async () => {
          const { sets } = (await setOf(stateDir)) as { sets: { kind: string; count: number }[] };
          return sets.some(
            ({ kind, count }) => kind === "bad" && count === orders.acknowledged.length,
          );
        },
        provedWithinMs,
      );

    // A clear is proved by both hosts, and records that were made meanwhile come in, each once.
    const { body } = await edge.api.post(`/clear-accelerator-cache/${domain}/?wait=30`, {
      url_path_patterns: ["path:page"],
    });
    const { clear_id: id } = body as { clear_id: string };
    await until(
      "both have cleared",
      async () => {
        const { body: now } = await edge.api.get(`/clear-accelerator-cache/${domain}/${id}/`);
        const [deployment] = (now as { deployments: { state: string; instances: unknown[] }[] })
          .deployments;
        return deployment?.state === "applied" && deployment.instances.length === 2;
      },
      provedWithinMs,
    );
    expect((await edge.visit("/private?after=all", { host: domain })).status).toBe(200);
    const rows = await until(
      "the fresh record",
      async () => {
        const all = await walkLogs(edge.api, script.siteId, domain);
        return all.some(({ uri_path: path }) => path === "/private?after=all") && all;
      },
      provedWithinMs,
    );
    const identities = rows.map((row) => JSON.stringify(row));
    expect(new Set(identities).size).toBe(identities.length);

    // Each mail once, also those that were written while PostgreSQL went.
    await until("all mails", () => mails.received.length >= 3, provedWithinMs);
    const ids = mails.received.map(({ mail }) => mail.messageId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(edge.central.said).not.toContain(password);
    expect(await metricsOf(edge)).toMatch(/^accel_central_store_connections_lost_total /m);
    expect(await edge.central.terminate()).toBe(0);
  },
);
