// PostgreSQL fails over to an asynchronous standby that lacks a clear and a mark, through the real programs. The host was away meanwhile, so that its place in the journal
// fits the shortened one exactly: without another epoch it would go on serving what was cleared.

import { join } from "node:path";
import { expect, test } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { browser, Edge } from "../support/edge.ts";
import { startOrigin } from "../support/origin.ts";
import { PostgresServer, postgresBin } from "../support/postgres-server.ts";
import { Program } from "../support/process.ts";
import { Switchboard } from "../support/switchboard.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();
const provedWithinMs = 180_000;
const page = "/page/one?x=1";

async function addressesOf(edge: Edge): Promise<readonly string[]> {
  const { status, body } = await edge.api.get("/list-bad-bots/");
  if (status !== 200) return [];
  const bots = body as readonly { readonly ip_addresses: readonly string[] }[];
  return bots.flatMap(({ ip_addresses: addresses }) => addresses).toSorted();
}

async function countOnHost(edge: Edge): Promise<number> {
  const stateDir = join(edge.dir, "agent");
  await using command = await Program.start([
    "agent",
    "bots",
    "list",
    "--json",
    "--state-dir",
    stateDir,
  ]);
  await command.exited();
  const { sets } = JSON.parse(command.said) as {
    readonly sets: readonly { readonly kind: string; readonly count: number }[];
  };
  return sets.find(({ kind }) => kind === "bad")?.count ?? 0;
}

test.skipIf(bin === undefined)(
  "what was lost is noticed, and a host that was away serves nothing that was cleared",
  { timeout: 600_000 },
  async () => {
    await using stack = new AsyncDisposableStack();
    const origin = stack.use(await startOrigin());
    const primary = stack.use(await PostgresServer.start(bin ?? "", { isDurable: true }));
    await primary.run(
      "postgres",
      "CREATE ROLE central LOGIN",
      "CREATE DATABASE central OWNER central TEMPLATE template0",
    );
    const address = stack.use(await Switchboard.start(primary.port));
    const edge = stack.use(await Edge.prepare());
    edge.changeCentralSettings({
      store: { url: `postgres://central@127.0.0.1:${address.port}/central`, tls: "none" },
    });
    await edge.startCentral();
    const script = new CustomerScript(edge, origin.url, "failover");
    await script.enrol();
    await edge.startAgent();
    for (const { name, run } of script.steps())
      if (["domain", "activate", "hit"].includes(name)) await run();
    const mark = async (ip: string): Promise<void> => {
      const body = { attach_to_bot: "marked", attach_to_domain: domain };
      await until(
        `the mark of ${ip}`,
        async () => (await edge.api.post(`/mark-as-bad-bot/${ip}/`, body, ip)).status === 200,
        provedWithinMs,
      );
    };
    const visit = async () => edge.visit(page, { host: domain, userAgent: browser });
    await mark("198.51.100.1");
    await until("the host has it", async () => (await countOnHost(edge)) === 1, provedWithinMs);
    const cached = await visit();
    expect(String(cached.headers["cache-status"])).toContain("hit");
    await edge.agent.kill();

    const standby = stack.use(await primary.standby("async"));
    await standby.cutOff();
    const asked = await edge.api.post(`/clear-accelerator-cache/${domain}/?wait=0`, {
      url_path_patterns: ["path:page"],
    });
    expect([200, 202]).toContain(asked.status);
    await mark("198.51.100.2");
    await primary.end("kill");
    await standby.promote();
    address.switchTo(standby.port);

    const metrics = async (): Promise<string> =>
      fetch(`${edge.api.origin}/metrics`).then(
        async (answer) => answer.text(),
        () => "",
      );
    await until(
      "the warning",
      async () => (await metrics()).includes('code="store_lost_commits"'),
      provedWithinMs,
    );
    expect(edge.central.said).toMatch(/the store lost changes that were acknowledged between/);
    expect(await addressesOf(edge)).toEqual(["198.51.100.1"]);
    await mark("198.51.100.3");

    await edge.agent.restart();
    await until(
      "the host is as central",
      async () => (await countOnHost(edge)) === 2,
      provedWithinMs,
    );
    const after = await visit();
    expect(after.status).toBe(200);
    expect(after.body.toString()).not.toBe(cached.body.toString());
    expect(await addressesOf(edge)).toEqual(["198.51.100.1", "198.51.100.3"]);
    const proved = await edge.api.post(`/clear-accelerator-cache/${domain}/?wait=30`, {
      url_path_patterns: ["path:page"],
    });
    expect(proved.body).toMatchObject({ deployments: [{ state: "applied" }] });
    expect(await edge.central.terminate()).toBe(0);
  },
);
