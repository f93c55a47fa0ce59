// A backup taken under load, the store lost, the backup restored: the real agent takes it anew, serves nothing that was cleared meanwhile, and the sums of
// request logs come out, with what is lost told. And an older store put back by hand.

import { cpSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { callControl } from "../../src/base/control-socket.ts";
import { openSqlite } from "../../src/base/sqlite.ts";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { parseSums } from "../support/log-oracle-balance.ts";
import { startOrigin } from "../support/origin.ts";
import { Program } from "../support/process.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 600_000 });

const marksUnderLoad = 40;
/** Some 400 bytes each: several segments of the smallest spool, which the agent lets go when they are acknowledged. */
const visitsBehind = 2_000;
const visitsAtOnce = 20;

/** The agent may be in a backoff of up to a minute when central comes back. */
const backWithinMs = 150_000;

type Status = {
  readonly epoch: string;
  readonly restored: { readonly when_restored: string } | null;
  readonly deployment_sites: readonly {
    readonly live: boolean;
    readonly journal_head: number;
    readonly applied_seq: number;
  }[];
};

async function statusOf(edge: Edge): Promise<Status> {
  const signal = AbortSignal.timeout(60_000);
  const path = join(edge.dir, "central", "control.sock");
  for await (const answer of callControl(path, "status", {}, signal)) return answer as Status; // What parts.ts makes.
  throw new Error("no answer");
}

const inStep = async (edge: Edge): Promise<Status> =>
  until(
    "the agent is in step",
    async () => {
      const status = await statusOf(edge);
      const [site] = status.deployment_sites;
      return site?.live === true && site.applied_seq === site.journal_head && status;
    },
    backWithinMs,
  );

async function run(...args: readonly string[]): Promise<string> {
  await using program = await Program.start(["central", ...args]);
  expect({ code: await program.exited(), said: program.said }).toMatchObject({ code: 0 });
  return program.said;
}

async function bodyOf(edge: Edge, path: string): Promise<{ body: string; how: string }> {
  const { status, body, headers } = await edge.visit(path, { host: domain });
  expect(status).toBe(200);
  return { body: body.toString(), how: String(headers["cache-status"]) };
}

/** Until it comes from the cache. */
async function hit(edge: Edge, path: string): Promise<string> {
  return until("a hit", async () => {
    const { body, how } = await bodyOf(edge, path);
    return how.includes("; hit") && body;
  });
}

async function clear(edge: Edge, pattern: string, wait = 30): Promise<string> {
  const { status, body } = await edge.api.post(`/clear-accelerator-cache/${domain}/?wait=${wait}`, {
    url_path_patterns: [pattern],
  });
  expect(status).toBe(200);
  const { deployments } = body as { deployments: readonly { state: string }[] };
  return deployments[0]?.state ?? "";
}

async function from(edge: Edge, address: string): Promise<number> {
  const headers = { "x-forwarded-for": address };
  return (await edge.visit("/page/two", { host: domain, headers })).status;
}

async function mark(edge: Edge, range: string): Promise<void> {
  const { status } = await edge.api.post(`/mark-as-bad-bot/${range}/`, {
    attach_to_bot: "scraper",
    attach_to_domain: domain,
  });
  expect(status).toBe(200);
}

async function start(edge: Edge, originUrl: string, seed: string): Promise<CustomerScript> {
  await edge.startCentral();
  const script = new CustomerScript(edge, originUrl, seed);
  await script.enrol();
  edge.changeAgentSettings({ spool: { max: "4MiB" } });
  await edge.startAgent();
  for (const { run: step } of script.steps().slice(0, 3)) await step();
  return script;
}

const agentSums = async (edge: Edge) =>
  parseSums(
    await (await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`)).text(),
  );

/** What the days of logs hold: records, canaries among them, and numbers told as lost, by reason. */
function stored(edge: Edge): { records: number; gaps: Map<string, number>; marks: number } {
  const directory = join(edge.dir, "central", "logs");
  const total = { records: 0, gaps: new Map<string, number>(), marks: 0 };
  const days = readdirSync(directory).filter((name) => /^[\d-]{10}\.db$/.test(name));
  for (const day of days) {
    const db = openSqlite(join(directory, day), { sync: "normal", readonly: true });
    const one = (sql: string): number => db.prepare<[], number>(sql).pluck().get() ?? 0;
    total.records += one("SELECT count(*) FROM record");
    // The newest day has the marks of all lanes.
    if (day === days.sort().at(-1)) total.marks = one("SELECT sum(mark) FROM lane");
    const gaps = db.prepare<[], { reason: string; lost: number }>(
      "SELECT reason, sum(to_seq - from_seq + 1) AS lost FROM gap GROUP BY reason",
    );
    for (const { reason, lost } of gaps.all())
      total.gaps.set(reason, (total.gaps.get(reason) ?? 0) + lost);
    db.close();
  }
  return total;
}

test("a backup under load, restored into an empty directory", async () => {
  await using origin = await startOrigin();
  await using edge = await Edge.prepare();
  await start(edge, origin.url, "backup");
  const config = join(edge.dir, "central.yaml");
  const backup = join(edge.dir, "backup");
  const epochBefore = (await statusOf(edge)).epoch;

  // Visits, clears and marks go on while it is taken.
  const done = new AbortController();
  const visiting = (async () => {
    while (!done.signal.aborted) await bodyOf(edge, `/page/load?no=${Math.random()}`);
  })();
  const changing = (async () => {
    for (let no = 1; no <= marksUnderLoad || !done.signal.aborted; no++) {
      if (no <= 250) await mark(edge, `203.0.113.${no}`);
      await clear(edge, 'path:"page load"');
    }
  })();
  expect(await run("backup", backup, "--with-key", "--config", config)).toContain("THE KEY IS IN");
  done.abort();
  await Promise.all([visiting, changing]);

  // After it: what the backup does not know.
  const first = await hit(edge, "/page/one?x=1");
  expect(await clear(edge, 'path:"page one"')).toBe("applied");
  const second = await hit(edge, "/page/one?x=1");
  expect(second).not.toBe(first);
  await mark(edge, "198.51.100.7");
  for (let no = 0; no < visitsBehind; no += visitsAtOnce)
    await Promise.all(
      Array.from({ length: visitsAtOnce }, (_, at) => bodyOf(edge, `/page/after?no=${no + at}`)),
    );
  await until("all is acknowledged", async () => {
    const sums = await agentSums(edge);
    return sums !== undefined && sums.spooled === 0 && sums.inMemory === 0;
  });
  // A clear that the agent never hears of.
  process.kill(edge.agent.pid, "SIGSTOP");
  expect(await clear(edge, 'path:"page one"', 0)).toBe("pending");
  await edge.central.kill();
  renameSync(join(edge.dir, "central"), join(edge.dir, "lost"));
  await run("restore", backup, "--config", config);
  await edge.central.restart();
  process.kill(edge.agent.pid, "SIGCONT");
  const status = await inStep(edge);
  expect(status.epoch).not.toBe(epochBefore);
  expect(status.restored).not.toBeNull();
  // Neither what was cleared before nor what was cleared in vain: the origin is asked for it.
  const third = await bodyOf(edge, "/page/one?x=1");
  expect([first, second]).not.toContain(third.body);
  expect(third.how).not.toContain("; hit");
  // Marks of before the backup are in force, the one behind it is not.
  expect(await from(edge, "203.0.113.1")).toBe(403);
  expect(await from(edge, "198.51.100.7")).toBe(200);
  // And everything works: a change, a clear with its receipt.
  await mark(edge, "198.51.100.8");
  await until("it is in force", async () => (await from(edge, "198.51.100.8")) === 403);
  expect(await clear(edge, 'path:"page"')).toBe("applied");

  // Every number that the agent gave out is at central: as a record, or told as lost.
  const { committed, gaps } = await until(
    "the sums agree",
    async () => {
      const sums = await agentSums(edge);
      if (sums === undefined || sums.spooled > 0 || sums.inMemory > 0) return false;
      const { records, ...told } = stored(edge);
      const lost = [...told.gaps.values()].reduce((sum, one) => sum + one, 0);
      return records + lost === told.marks && { ...told, committed: sums.committed };
    },
    backWithinMs,
  );
  expect([...gaps.keys()]).toEqual(["lost_in_restore"]);
  expect(gaps.get("lost_in_restore")).toBeGreaterThan(0);
  expect(gaps.get("lost_in_restore")).toBeLessThan(committed);
});

test("an older central.db put back by hand is noticed by the chain", async () => {
  await using origin = await startOrigin();
  await using edge = await Edge.prepare();
  await start(edge, origin.url, "copied");
  const state = join(edge.dir, "central");
  await mark(edge, "203.0.113.1");
  await until("it is in force", async () => (await from(edge, "203.0.113.1")) === 403);
  await edge.central.terminate();
  const copy = join(edge.dir, "copy");
  mkdirSync(copy);
  cpSync(join(state, "central.db"), join(copy, "central.db"));
  await edge.central.restart();
  const epochBefore = (await inStep(edge)).epoch;
  const before = await hit(edge, "/page/one?x=1");
  await mark(edge, "203.0.113.2");
  await mark(edge, "203.0.113.3");
  await until("they are in force", async () => (await from(edge, "203.0.113.3")) === 403);
  const { deployment_sites: sites } = await statusOf(edge);
  await edge.central.terminate();
  for (const name of readdirSync(state))
    if (name.startsWith("central.db")) rmSync(join(state, name));
  cpSync(join(copy, "central.db"), join(state, "central.db"));
  // As far as the agent is, by another way: only the digests differ.
  await edge.agent.kill();
  await edge.central.restart();
  for (
    let no = 4;
    (await statusOf(edge)).deployment_sites[0]?.journal_head !== sites[0]?.journal_head;
    no++
  )
    await mark(edge, `203.0.113.${no}`);
  await edge.agent.restart();
  const after = await inStep(edge);
  expect(after.epoch).toBe(epochBefore);
  expect(edge.agent.said).toContain("the chain digest at");
  expect((await bodyOf(edge, "/page/one?x=1")).body).not.toBe(before);
  expect(await from(edge, "203.0.113.2")).toBe(200);
  expect(await from(edge, "203.0.113.4")).toBe(403);
});
