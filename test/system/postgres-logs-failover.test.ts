// The database of request logs fails over to an asynchronous standby that lacks the last batches, through the real programs. What a host still has is sent again, though central had
// acknowledged it; what the host had forgotten is told as a gap, of exactly so many records; and everything is there once.

import { join } from "node:path";
import { expect, test } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { judgeLogsAt } from "../support/log-engine-kill.ts";
import { isDrained, parseSums, type Sums } from "../support/log-oracle-balance.ts";
import { startOrigin } from "../support/origin.ts";
import { PostgresServer, postgresBin } from "../support/postgres-server.ts";
import { Program } from "../support/process.ts";
import { Switchboard } from "../support/switchboard.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();
const provedWithinMs = 180_000;
const visitsEach = 40;
/** With a query of 4 KB each: more than a segment (512 KiB with this spool) and the one that is open. */
const visitsLost = 800;
const query = `?${"q".repeat(4_000)}`;

async function sumsOf({ ports }: Edge): Promise<Sums | undefined> {
  return parseSums(
    await (await fetch(`http://127.0.0.1:${ports.metrics}/metrics/deployment`)).text(),
  );
}

async function marksAt(server: PostgresServer): Promise<number> {
  const [row] = await server.run(
    "logs",
    "SELECT coalesce(sum(mark), 0)::float8 AS marks FROM lane",
  );
  return Number(Object(row)["marks"]);
}

async function lossesOf(edge: Edge): Promise<readonly Record<string, unknown>[]> {
  const stateDir = join(edge.dir, "central");
  const args = ["central", "logs", "losses", "--json", "--state-dir", stateDir];
  await using command = await Program.start(args);
  if ((await command.exited()) !== 0) return [];
  const { losses } = Object(JSON.parse(command.said));
  return Array.isArray(losses) ? losses : [];
}

test.skipIf(bin === undefined)(
  "what a failover of the request logs' database lost is told as lost_in_failover, exactly",
  { timeout: 600_000 },
  async () => {
    await using stack = new AsyncDisposableStack();
    const origin = stack.use(await startOrigin());
    const primary = stack.use(await PostgresServer.start(bin ?? "", { isDurable: true }));
    await primary.run(
      "postgres",
      "CREATE ROLE central LOGIN",
      "CREATE DATABASE logs OWNER central TEMPLATE template0",
    );
    const address = stack.use(await Switchboard.start(primary.port));
    const edge = stack.use(await Edge.prepare());
    edge.changeCentralSettings({
      request_logs: { url: `postgres://central@127.0.0.1:${address.port}/logs`, tls: "none" },
    });
    await edge.startCentral();
    const script = new CustomerScript(edge, origin.url, "logs-failover");
    await script.enrol();
    edge.changeAgentSettings({ logs: { canary_interval: "0s" }, spool: { max: "16MiB" } });
    await edge.startAgent();
    for (const { name, run } of script.steps().slice(0, 2))
      await run().catch((error: unknown) => {
        throw new Error(name, { cause: error });
      });
    const visit = async (times = visitsEach): Promise<void> => {
      for (let no = 0; no < times; no++) await edge.visit(`/page/same${query}`, { host: domain });
    };
    /** Resolves when so many were accepted at least, and all of them are at central. */
    const committed = async (least: number): Promise<Sums> =>
      until(
        "all is committed",
        async () => {
          const sums = await sumsOf(edge);
          return sums !== undefined && sums.accepted >= least && isDrained(sums) && sums;
        },
        provedWithinMs,
      );

    await visit();
    const first = await committed(visitsEach);
    const standby = stack.use(await primary.standby("async"));
    await standby.cutOff();
    await visit(visitsLost);
    const before = await committed(first.accepted + visitsLost);
    const [had, has] = [await marksAt(primary), await marksAt(standby)];
    expect(before.committed).toBe(had);
    expect(had - has).toBe(visitsLost);

    await primary.end("kill");
    await standby.promote();
    address.switchTo(standby.port);
    address.cut();
    const told = await until(
      "the loss is told",
      async () => {
        await visit();
        const losses = await lossesOf(edge);
        return losses.length > 0 && losses;
      },
      provedWithinMs,
    );
    expect(told.map(({ reason }) => reason)).toEqual(told.map(() => "lost_in_failover"));
    const sumOf = (name: string): number => told.reduce((all, one) => all + Number(one[name]), 0);
    const lost = sumOf("at_least");
    expect(sumOf("at_most")).toBe(lost);
    expect(lost).toBeLessThan(visitsLost); // The last of it the host still had.

    // For the host nothing is lost, and all that it has sent since is there once.
    const after = await committed(before.accepted + visitsEach);
    expect({ committed: after.committed, dropped: after.dropped }).toEqual({
      committed: after.accepted,
      dropped: 0,
    });
    await judgeLogsAt(standby, "logs");
    expect(await marksAt(standby)).toBe(after.accepted);
    const [row] = await standby.run("logs", "SELECT count(*)::float8 AS records FROM record");
    expect(Object(row)["records"]).toBe(after.accepted - lost);
    const { body } = await edge.api.get(`/analytics/${domain}/?step=day`);
    expect(Object(Object(body)["totals"])["missing"]).toEqual({ at_least: lost, at_most: lost });
  },
);
