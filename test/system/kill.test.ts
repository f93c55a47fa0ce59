// kill -9 of agent and central, each at 20 random moments of the customer's script: it completes, nothing is applied twice, nothing is lost.
// ACCEL_KILLS sets another number of kills per program.

import { expect, test } from "vitest";
import { CustomerScript, domain, walkLogs } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { startOrigin } from "../support/origin.ts";
import { until } from "../support/until.ts";

const killsEach = Number(process.env["ACCEL_KILLS"] ?? 20);
const pauseMsMax = 1_200;

test(`the script completes over ${killsEach} kills of each program`, async () => {
  await using origin = await startOrigin();
  await using edge = await Edge.prepare();
  await edge.startCentral();
  const enrolment = new CustomerScript(edge, origin.url, "kill");
  await enrolment.enrol();
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
  const killers = Promise.all([killer("central"), killer("agent")]).finally(() => done.abort());

  // The script's steps again and again, each POST with its key, until all kills happened: then once more in peace.
  const steps = enrolment.steps();
  const rounds = async (): Promise<number> => {
    let round = 0;
    while (!done.signal.aborted) {
      for (const { run } of steps) {
        await run();
        if (done.signal.aborted) break;
      }
      round++;
    }
    return round;
  };
  const [round] = await Promise.all([rounds(), killers]);
  for (const { name, run } of steps)
    await run().catch((error: unknown) =>
      Promise.reject(new Error(`step ${name} after the kills`, { cause: error })),
    );
  expect(round).toBeGreaterThan(0);
  expect(kills).toEqual({ central: killsEach, agent: killsEach });

  // Nothing twice: one site, one domain, one viewset, the set empty at exactly version 2 (marked once, removed once).
  expect((await edge.api.get("/deployment-site/")).body).toHaveLength(1);
  expect((await edge.api.get("/domain/")).body).toHaveLength(1);
  expect((await edge.api.get(`/active-viewset/${domain}/`)).body).toHaveLength(1);
  expect((await edge.api.get("/list-bad-bots/")).body).toMatchObject([
    { name: "scraper", ip_addresses: [] },
  ]);

  // Nothing lost: a fresh record arrives, none is there twice, and all accounts balance.
  const marker = `/private?after=kills`;
  expect((await edge.visit(marker, { host: domain })).status).toBe(200);
  const rows = await until(
    "the fresh record",
    async () => {
      const all = await walkLogs(edge, enrolment.siteId, domain);
      return all.some(({ uri_path: path }) => path === marker) && all;
    },
    60_000,
  );
  const identities = rows.map((row) => JSON.stringify(row));
  expect(new Set(identities).size).toBe(identities.length);
}, 420_000);
