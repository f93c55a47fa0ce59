// kill -9 of agent and central, each at 10 random moments (ACCEL_KILLS: another number) of the customer's script: it completes, nothing is applied twice, nothing is lost.
// ACCEL_KILLS sets another number of kills per program.

import { join } from "node:path";
import { expect, test } from "vitest";
import { CustomerScript, domain, walkLogs } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { startOrigin } from "../support/origin.ts";
import { Program } from "../support/process.ts";
import { until } from "../support/until.ts";

const killsEach = Number(process.env["ACCEL_KILLS"] ?? 10);
const pauseMsMax = 3_000;

async function runRound(script: CustomerScript): Promise<void> {
  script.round++;
  for (const { name, run } of script.steps()) {
    await run().catch((error: unknown) => {
      throw new Error(`step ${name} of round ${script.round}`, { cause: error });
    });
  }
}

test(`the script completes over ${killsEach} kills of each program`, async () => {
  await using origin = await startOrigin();
  await using edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "kill");
  await script.enrol();
  await edge.startAgent();

  const done = new AbortController();
  const kills = { central: 0, agent: 0 };
  const killer = async (name: "central" | "agent"): Promise<void> => {
    while (kills[name] < killsEach) {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * pauseMsMax));
      await edge[name].kill();
      kills[name]++;
      await edge[name].restart();
    }
  };
  script.killsByNow = () => (done.signal.aborted ? undefined : kills.central + kills.agent);
  const killers = Promise.all([killer("central"), killer("agent")]).finally(() => done.abort());

  // Round after round until all kills happened, each change under a key of its own; the last round in peace.
  while (!done.signal.aborted) await runRound(script);
  await killers;
  await runRound(script);
  expect(kills).toEqual({ central: killsEach, agent: killsEach });

  // Nothing twice, nothing lost: one site, one domain, one viewset; the set is empty, at exactly as many versions as changes were asked for.
  expect((await edge.api.get("/deployment-site/")).body).toHaveLength(1);
  expect((await edge.api.get("/domain/")).body).toHaveLength(1);
  expect((await edge.api.get(`/active-viewset/${domain}/`)).body).toHaveLength(1);
  expect((await edge.api.get("/list-bad-bots/")).body).toMatchObject([
    { name: "scraper", ip_addresses: [] },
  ]);

  await using bots = await Program.start([
    "agent",
    "bots",
    "list",
    "--json",
    "--state-dir",
    join(edge.dir, "agent"),
  ]);
  await bots.exited();
  expect(JSON.parse(bots.said)).toMatchObject({
    sets: [{ kind: "bad", count: 0, version: script.setChanges.size }],
  });

  // A fresh record arrives, and none is there twice.
  const marker = `/private?after=kills`;
  expect((await edge.visit(marker, { host: domain })).status).toBe(200);
  const rows = await until(
    "the fresh record",
    async () => {
      const all = await walkLogs(edge.api, script.siteId, domain);
      return all.some(({ uri_path: path }) => path === marker) && all;
    },
    150_000,
  );
  const identities = rows.map((row) => JSON.stringify(row));
  expect(new Set(identities).size).toBe(identities.length);
}, 1_200_000);
