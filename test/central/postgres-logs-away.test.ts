// Central whole with request logs in PostgreSQL: what it answers while that is away, what is there when it is back, and how
// files of before go on.

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { centralCheckCommand } from "../../src/central/main.ts";
import { run } from "../cli/command-rig.ts";
import { call, newSite, settingsOf, start, statusOf } from "../support/central-whole.ts";
import { batchText, connectAgent, type FakeAgent } from "../support/fake-agent.ts";
import { judgeLogsAt } from "../support/log-engine-kill.ts";
import { postgresBin, PostgresServer } from "../support/postgres-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();
const domain = "www.example.test";
const perBatch = 20;

/** An agent that ships one batch after the other, and sends again what was not taken. */
class Shipper implements AsyncDisposable {
  readonly #agent: FakeAgent;
  readonly #lane: number;
  readonly #ending = new AbortController();
  readonly #running: Promise<void>;
  committed = 0;
  refused = 0;
  readonly waits = new Set<string | null>();

  constructor(agent: FakeAgent, lane: number) {
    this.#agent = agent;
    this.#lane = lane;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const [first, last] = [this.committed + 1, this.committed + perBatch];
      const answer = await ship(this.#agent, first, last, this.#lane);
      if (answer.status === 200) this.committed = last;
      else {
        this.refused++;
        this.waits.add(`${answer.status} ${answer.headers.get("retry-after")}`);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }
}

async function ship(agent: FakeAgent, first: number, last: number, lane = 1): Promise<Response> {
  return agent.call("/request-logs", {
    method: "POST",
    headers: {
      "accel-lane": `00000000000000e1/${lane}`,
      "accel-first-seq": String(first),
      "accel-last-seq": String(last),
    },
    body: batchText(first, last),
  });
}

async function page(url: string, token?: string) {
  const headers = token === undefined ? {} : { authorization: `Token ${token}` };
  const response = await fetch(url, { headers });
  const text = await response.text();
  const [retryAfter, link] = ["retry-after", "link"].map((name) => response.headers.get(name));
  return { status: response.status, text, retryAfter, link };
}

describe.skipIf(bin === undefined)("request logs in PostgreSQL", () => {
  const opened = new AsyncDisposableStack();
  let server: PostgresServer;
  beforeAll(async () => {
    server = opened.use(await PostgresServer.start(bin ?? "", { isDurable: true }));
  }, 120_000);
  afterAll(async () => opened.disposeAsync(), 60_000);

  /** The settings that name a new database. */
  async function yamlOf(name: string): Promise<string> {
    await server.run("postgres", `CREATE DATABASE ${name} TEMPLATE template0`);
    const { host, port } = server.place(name);
    return `request_logs:\n  url: postgres://accel@localhost:${port}/${name}?host=${host}\n`;
  }

  test("away under load, then back: central is ready and steers, searches say so, and the balance is exact", async () => {
    using dir = tempDir();
    await using central = await start(settingsOf(dir.path, await yamlOf("away")));
    const { token, name16, secret16 } = await newSite(central.url);
    await call(central.url, "POST", "/domain/", token, { name: domain });
    const agent = await connectAgent(central.agents, name16, secret16);
    const shippers = [1, 2].map((lane) => new Shipper(agent, lane));
    const all = (what: (one: Shipper) => number): number =>
      shippers.reduce((sum, one) => sum + what(one), 0);
    try {
      await until("batches are taken", () => all(({ committed }) => committed) > 10 * perBatch);
      await server.end("immediate");
      await until("batches are refused", () => all(({ refused }) => refused) > 10);
      expect((await page(`${central.url}/readyz`)).status).toBe(200);
      expect((await page(`${central.url}/metrics`)).text).toContain("accel_central_log_failing 1");
      expect(await statusOf(dir.path)).toMatchObject({
        // A fold that was under way warns as well.
        warnings: expect.arrayContaining([
          expect.objectContaining({ code: "logs_unreachable", severity: "error" }),
        ]),
        logs: { failing: expect.stringContaining("does not answer") },
      });
      await call(central.url, "POST", "/deployment-site/", token, { tags: "" });
      for (const path of [`/requests/${domain}/`, `/analytics/${domain}/`]) {
        const asked = await page(`${central.url}/presentation-api/v1${path}`, token);
        expect(asked).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^\d+$/) });
        expect(JSON.parse(asked.text)).toMatchObject({ status: 503 });
      }
      const before = all(({ committed }) => committed);
      await server.begin();
      await until(
        "batches are taken again",
        () => all(({ committed }) => committed) > before + 200,
      );
      await until("the warning is over", async () => {
        const { warnings } = Object(await statusOf(dir.path));
        return Array.isArray(warnings) && warnings.length === 0;
      });
    } finally {
      for (const shipper of shippers) await shipper[Symbol.asyncDispose]();
    }
    for (const { waits } of shippers)
      expect([...waits].filter((wait) => !/^503 (?:2|10)$/.test(String(wait)))).toEqual([]);
    const marks = await judgeLogsAt(server, "away");
    expect([...marks.values()]).toEqual(shippers.map(({ committed }) => committed));
  }, 240_000);

  test("a central starts while the database is away, and takes batches when it is there", async () => {
    using dir = tempDir();
    const yaml = await yamlOf("late");
    await server.end();
    await using central = await start(settingsOf(dir.path, yaml));
    const { name16, secret16 } = await newSite(central.url);
    const agent = await connectAgent(central.agents, name16, secret16);
    await until("it is told", async () => {
      const { warnings } = Object(await statusOf(dir.path));
      return Object(Array.from(warnings)[0])["code"] === "logs_unreachable";
    });
    expect((await page(`${central.url}/readyz`)).status).toBe(200);
    expect((await ship(agent, 1, 5)).status).toBe(503);
    await server.begin();
    await until("it is taken", async () => (await ship(agent, 1, 5)).status === 200);
  }, 240_000);

  test("files of before are read on, their marks hold, and nobody writes them any more", async () => {
    using dir = tempDir();
    const yaml = await yamlOf("goes_on");
    let site: Awaited<ReturnType<typeof newSite>>;
    {
      await using central = await start(settingsOf(dir.path));
      site = await newSite(central.url);
      await call(central.url, "POST", "/domain/", site.token, { name: domain });
      const agent = await connectAgent(central.agents, site.name16, site.secret16);
      expect((await ship(agent, 1, 30)).status).toBe(200);
    }
    {
      await using central = await start(settingsOf(dir.path, yaml));
      const agent = await connectAgent(central.agents, site.name16, site.secret16);
      const again = await ship(agent, 21, 30);
      expect([again.status, await again.json()]).toEqual([200, { committed_through: 30 }]);
      expect((await ship(agent, 31, 50)).status).toBe(200);
      const paths: string[] = [];
      const first = `/presentation-api/v1/requests/${domain}/?limit=7`;
      for (let next: string | undefined = first; next !== undefined;) {
        const found = await page(`${central.url}${next}`, site.token);
        for (const one of Array.from(Object(JSON.parse(found.text))["requests"]))
          paths.push(String(Object(one)["path"]));
        next = /<([^>]+)>; rel="next"/.exec(found.link ?? "")?.[1];
      }
      expect(paths).toEqual(Array.from({ length: 50 }, (_, at) => `/${50 - at}`));
      expect(existsSync(join(dir.path, "logs", "in-database"))).toBe(true);
    }
    await expect(start(settingsOf(dir.path))).rejects.toMatchObject({ code: "LOGS_MOVED" });
  }, 240_000);

  test("check asks the server, and writes nothing", async () => {
    using dir = tempDir();
    const config = join(dir.path, "central.yaml");
    const check = async (): Promise<string> => run(centralCheckCommand, ["--config", config]);
    writeFileSync(config, `state_dir: ${dir.path}/state\n${await yamlOf("checked")}`);
    expect(await check()).toMatch(/\/checked: PostgreSQL \d+[^\n]* can hold request logs\n/);
    const tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'";
    expect(await server.run("checked", tables)).toEqual([]);
    await server.run("postgres", "ALTER DATABASE checked SET synchronous_commit = off");
    await expect(check()).rejects.toMatchObject({ code: "LOGS_UNSUITED" });
    await server.run("postgres", "ALTER DATABASE checked RESET synchronous_commit");
    await server.run(
      "checked",
      "CREATE TABLE log_schema (version integer)",
      "INSERT INTO log_schema VALUES (99)",
    );
    await expect(check()).rejects.toMatchObject({ code: "DATABASE_NEWER" });
  }, 120_000);
});
