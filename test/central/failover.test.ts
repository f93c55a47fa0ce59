// A whole central whose PostgreSQL fails over under orders. With an asynchronous standby what was acknowledged is lost, which central finds by itself: another epoch,
// and agents that take its state anew. With a synchronous one all of it is there, and nobody notices.

import { once } from "node:events";
import { afterEach, describe, expect, test } from "vitest";
import { auditCommand } from "../../src/cli/central-audit.ts";
import { centralStatusCommand } from "../../src/cli/central-status.ts";
import { run } from "../cli/command-rig.ts";
import { call, newSite, settingsOf, start, statusOf } from "../support/central-whole.ts";
import { connectAgent } from "../support/fake-agent.ts";
import { freePorts } from "../support/free-ports.ts";
import { PostgresServer, postgresBin } from "../support/postgres-server.ts";
import { Switchboard } from "../support/switchboard.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();
const domain = "www.example.test";
const provedWithinMs = 60_000;

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
}, 60_000);

/** A central at an address of PostgreSQL that can lead elsewhere, with a customer's site and a domain that is linked to it. */
async function startScene() {
  const primary = stack.use(await PostgresServer.start(bin ?? "", { isDurable: true }));
  await primary.run("postgres", "CREATE DATABASE central TEMPLATE template0");
  const address = stack.use(await Switchboard.start(primary.port));
  const stateDir = stack.use(tempDir()).path;
  const [port = 0] = await freePorts(1);
  const yaml = `store:\n  url: postgres://accel@127.0.0.1:${address.port}/central\n  tls: none\n`;
  const central = stack.use(await start(settingsOf(stateDir, yaml, port)));
  const site = await newSite(central.url);
  const linked = { name: domain, deployment_site_id: site.id };
  await call(central.url, "POST", "/domain/", site.token, linked);
  /** "" while nobody answers, or the store is away. */
  const epochOf = async (): Promise<string> => {
    const { epoch } = Object(await statusOf(stateDir).catch(() => undefined));
    return typeof epoch === "string" ? epoch : "";
  };
  return { primary, address, stateDir, central, site, epochOf };
}

type Scene = Awaited<ReturnType<typeof startScene>>;

/** Orders a clear until it is acknowledged, and returns its id. */
async function clear({ central, site }: Scene, path: string): Promise<string> {
  const answer = await until(
    `the clear of ${path}`,
    async () => {
      const asked = await fetch(
        `${central.url}/presentation-api/v1/clear-accelerator-cache/${domain}/?wait=0`,
        {
          method: "POST",
          headers: {
            "content-type": "application/json",
            "idempotency-key": path,
            authorization: `Token ${site.token}`,
          },
          body: JSON.stringify({ url_path_patterns: [`path:${path}`] }),
        },
      ).catch(() => undefined);
      if (asked === undefined) return undefined;
      const body: unknown = await asked.json();
      if (asked.status >= 500) {
        expect([asked.status, Object(body)["title"]]).toEqual([503, "Service Unavailable"]);
        return undefined;
      }
      expect(asked.status).toBeLessThan(300);
      return body;
    },
    provedWithinMs,
  );
  return String(Object(answer)["clear_id"]);
}

async function isThere({ central, site }: Scene, clearId: string): Promise<boolean> {
  const path = `/clear-accelerator-cache/${domain}/${clearId}/`;
  const { status } = await fetch(`${central.url}/presentation-api/v1${path}`, {
    headers: { authorization: `Token ${site.token}` },
  });
  expect([200, 404]).toContain(status);
  return status === 200;
}

const pathsOf = (entries: readonly { readonly body: unknown }[]): string =>
  JSON.stringify(entries.map(({ body }) => body));

/** Asks on a connection of its own all the time, and says what came of each: the status, when to come again, and the words. */
function knockAt(url: string): { readonly end: () => Promise<readonly string[]> } {
  const answers: string[] = [];
  const over = new AbortController();
  const knock = async (): Promise<void> => {
    const headers = { connection: "close" };
    const answer = await fetch(`${url}/presentation-api/v1/openapi.json`, { headers });
    const again = answer.headers.get("retry-after");
    const text = await answer.text();
    const detail = answer.status === 200 ? "" : String(Object(JSON.parse(text))["detail"]);
    answers.push(`${answer.status} ${again} ${detail}`);
  };
  const knocking = (async () => {
    while (!over.signal.aborted)
      await knock().catch((error: unknown) => answers.push(String(Object(error)["cause"])));
  })();
  return {
    end: async () => {
      over.abort();
      await knocking;
      return answers;
    },
  };
}

async function agentOf({ central, site }: Scene) {
  return connectAgent(central.agents, site.name16, site.secret16);
}

describe.skipIf(bin === undefined)("a failover", () => {
  test("of an asynchronous standby: what was lost is told, and every agent takes the state anew", async () => {
    const scene = await startScene();
    const { primary, address, stateDir, central, site } = scene;
    const epoch = await scene.epochOf();
    const agent = await agentOf(scene);
    using channel = await agent.channel();
    channel.hello(epoch);
    const kept = await clear(scene, "kept");
    const standby = stack.use(await primary.standby("async"));
    await standby.cutOff();
    const lost = [await clear(scene, "lost1"), await clear(scene, "lost2")];
    await until("the agent has them", () => pathsOf(channel.entries).includes("lost2"));
    const last = channel.entries.at(-1);
    await primary.end("kill");
    // The address is moved before the promotion, which may take its time.
    address.switchTo(standby.port);
    await until("the standby is told as one that takes no writes yet", async () => {
      const told = JSON.stringify(
        await statusOf(stateDir).catch((error: unknown) => String(error)),
      );
      expect(told).not.toMatch(/report it/);
      return told.includes("is a standby");
    });
    const early = await fetch(`${central.url}/presentation-api/v1/domain/`, {
      headers: { authorization: `Token ${site.token}` },
    });
    expect([early.status, early.headers.has("retry-after")]).toEqual([503, true]);
    await standby.promote();

    const raised = await until(
      "another epoch",
      async () => {
        const now = await scene.epochOf();
        return now !== "" && now !== epoch && now;
      },
      provedWithinMs,
    );
    expect((await channel.close()).code).toBe(1001);
    expect(await isThere(scene, kept)).toBe(true);
    for (const id of lost) expect(await isThere(scene, id)).toBe(false);

    // The agent is refused with its token, gets another, and is told to take everything.
    expect((await agent.call("/journal")).status).toBe(401);
    const again = await agentOf(scene);
    using fresh = await again.channel();
    fresh.hello(epoch, last?.seq, last?.chain);
    expect(await fresh.next("welcome")).toMatchObject({ epoch: raised });
    expect(await fresh.next("resync")).toMatchObject({ reason: expect.stringContaining(epoch) });
    const snapshot = (await (await again.call("/snapshot")).json()) as Record<string, unknown>;
    expect(snapshot["epoch"]).toBe(raised);
    fresh.receipt(Number(snapshot["seq"]), "applied", { snapshot: true });
    await clear(scene, "new");
    await until("an order after it", () => pathsOf(fresh.entries).includes("new"));
    expect(pathsOf(fresh.entries)).not.toContain("lost");

    // Operators are told: metrics, status, the audit trail.
    const metrics = await (await fetch(`${central.url}/metrics`)).text();
    expect(metrics).toContain(
      'accel_central_warning{code="store_lost_commits",severity="error"} 1',
    );
    const status = Object(await statusOf(stateDir));
    expect(status["restored"]).toMatchObject({ cause: "failover" });
    const [warning] = status["warnings"] as { code: string; text: string }[];
    expect(warning).toMatchObject({
      code: "store_lost_commits",
      text: expect.stringMatching(
        new RegExp(
          `acknowledged between .* deployment sites ${site.id} \\(\\d+ to ${last?.seq}\\)`,
        ),
      ),
    });
    const said = await run(centralStatusCommand, ["--state-dir", stateDir]);
    expect(said).toMatch(/another PostgreSQL took over: what was changed between/);
    expect(await run(auditCommand, ["--state-dir", stateDir])).toContain("store lost commits");

    // The primary of before comes back, and the address leads there.
    await primary.begin();
    address.switchTo(primary.port);
    address.cut();
    const unreachable = 'accel_central_warning{code="store_unreachable",severity="error"} 1';
    const scraped = async (): Promise<string> => (await fetch(`${central.url}/metrics`)).text();
    const about = async (): Promise<string> => (await fetch(`${central.url}/about/`)).text();
    await until("the former primary is told", async () =>
      (await about()).includes("is a former primary (timeline 1)"),
    );
    expect(await scraped()).toContain(unreachable);
    address.switchTo(standby.port);
    address.cut();
    await until("the warning ends", async () => !(await scraped()).includes(unreachable));
    await clear(scene, "back");
  }, 180_000);

  test("of a synchronous standby under orders: each that was acknowledged is there, and the epoch stays", async () => {
    const scene = await startScene();
    const { primary, address, central } = scene;
    const standby = stack.use(await primary.standby("sync"));
    await primary.run(
      "postgres",
      "ALTER SYSTEM SET synchronous_standby_names = 'sync'",
      "SELECT pg_reload_conf()",
    );
    await until("it is synchronous", async () => {
      const rows = await primary.run("postgres", "SELECT sync_state FROM pg_stat_replication");
      return JSON.stringify(rows).includes('"sync"');
    });
    const epoch = await scene.epochOf();
    const agent = await agentOf(scene);
    using channel = await agent.channel();
    channel.hello(epoch);
    const acknowledged: string[] = [];
    const enough = new AbortController();
    const ordering = Array.from({ length: 3 }, async (_, caller) => {
      for (let no = 0; !enough.signal.aborted; no++)
        acknowledged.push(await clear(scene, `order${caller}x${no}`));
    });
    const more = async (count: number): Promise<void> => {
      const wanted = acknowledged.length + count;
      await until(`${count} orders`, () => acknowledged.length >= wanted, provedWithinMs);
    };
    await more(20);
    await primary.end("kill");
    await standby.promote();
    address.switchTo(standby.port);
    await more(20);
    enough.abort();
    await Promise.all(ordering);
    for (const id of acknowledged) expect(await isThere(scene, id)).toBe(true);
    expect(await scene.epochOf()).toBe(epoch);
    expect(await standby.run("central", "SELECT 1 FROM restores")).toEqual([]);
    // The agent's channel was open all the time, and has them all.
    expect(channel.closed).toBe(undefined);
    await until("all of them", () => channel.entries.length > acknowledged.length);
    expect(await (await fetch(`${central.url}/metrics`)).text()).not.toContain(
      "store_lost_commits",
    );
  }, 180_000);

  test("refuses nobody a connection while central is opened anew: who comes is told to come again", async () => {
    const scene = await startScene();
    const { primary, address, central, epochOf } = scene;
    const before = await epochOf();
    const standby = stack.use(await primary.standby("async"));
    await standby.cutOff();
    await clear(scene, "lost");
    await primary.end("kill");
    await standby.promote();
    const knocks = knockAt(central.url);
    address.switchTo(standby.port);
    await until("another epoch", async () => {
      const now = await epochOf();
      return now !== "" && now !== before;
    });
    await until("it serves", async () => (await fetch(`${central.url}/readyz`)).status === 200);
    const answers = await knocks.end();
    expect(answers.filter((one) => !one.startsWith("200 ") && !one.startsWith("503 "))).toEqual([]);
    // Its own words, from between the two lives.
    expect(answers).toContain(
      "503 2 central is opened anew; try again, with the same Idempotency-Key",
    );
  }, 180_000);

  test("leaves a central that stops as it is told to, also after it was opened anew", async () => {
    const scene = await startScene();
    const { primary, address, central, epochOf } = scene;
    const before = await epochOf();
    const standby = stack.use(await primary.standby("async"));
    await standby.cutOff();
    await clear(scene, "lost");
    await primary.end("kill");
    await standby.promote();
    address.switchTo(standby.port);
    await until("another epoch", async () => {
      const now = await epochOf();
      return now !== "" && now !== before;
    });
    // It stops as it is told to, also after it was opened anew.
    const channel = await (await agentOf(scene)).channel();
    const closed = once(channel.socket, "close");
    await central[Symbol.asyncDispose]();
    await closed;
    expect(channel.closed?.code).toBe(1001);
  }, 180_000);
});
