// Why was this visitor blocked? From the mark at central through the answer's decision id to the words of the command; and monitor mode the whole way.

import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openSqlite } from "../../src/base/sqlite.ts";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge, type Visit } from "../support/edge.ts";
import { mainFile, node } from "../support/process.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 }); // Each starts commands as processes.

type Facts = Readonly<Record<string, unknown>>;

let edge: Edge;
let devloveFile: string;
const address = "203.0.113.9";
let firstId = "";

function run(...args: readonly string[]): { status: number | null; out: string; err: string } {
  const where = ["--state-dir", join(edge.dir, "agent")];
  const { status, stdout, stderr } = spawnSync(node, [mainFile, "agent", ...args, ...where], {
    encoding: "utf8",
  });
  return { status, out: stdout, err: stderr };
}

function facts(...args: readonly string[]): Facts {
  const { status, out, err } = run(...args, "--json");
  expect([status, err]).toEqual([0, ""]);
  return JSON.parse(out) as Facts;
}

const visit = async (userAgent?: string): Promise<Visit> =>
  edge.visit("/", {
    host: domain,
    headers: { "x-forwarded-for": address },
    ...(userAgent !== undefined && { userAgent }),
  });

/** As central stored it: the public API shows eight of its fields. */
function recordOf(userAgent: string, status: number): Facts | undefined {
  const dir = join(edge.dir, "central", "logs");
  for (const file of readdirSync(dir).filter((name) => name.endsWith(".db"))) {
    const db = openSqlite(join(dir, file), { sync: "normal", readonly: true });
    const lines = db.prepare<[], { line: string }>("SELECT line FROM record").all();
    db.close();
    for (const { line } of lines) {
      const record = JSON.parse(line) as Facts;
      if (record["user_agent"] === userAgent && record["response_status"] === status) return record;
    }
  }
  return undefined;
}

function writeDevlove(mode: "enforce" | "monitor"): void {
  writeFileSync(devloveFile, JSON.stringify({ domains: { [domain]: { bots: { mode } } } }));
}

beforeAll(async () => {
  edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, "http://127.0.0.1:9", "why");
  await script.enrol();
  const views = join(edge.dir, "views");
  devloveFile = join(edge.dir, "devlove.json");
  mkdirSync(views);
  writeFileSync(join(views, "index.html"), "hello");
  writeDevlove("enforce");
  edge.changeAgentSettings({ sites: [{ domain, views_dir: views, devlove_file: devloveFile }] });
  await edge.startAgent();
  await script.steps()[0]?.run();
  await until("the site", async () => (await visit()).status === 200);
});

afterAll(async () => {
  await edge[Symbol.asyncDispose]();
});

test("a mark: 403 with an id, and the id tells set, version, name, range, since when", async () => {
  const began = Date.now() - 5_000;
  const mark = { attach_to_bot: "scraper", attach_to_domain: domain };
  expect((await edge.api.post("/mark-as-bad-bot/203.0.113.0_24/", mark)).status).toBe(200);
  const blocked = await until("the block", async () => {
    const answer = await visit();
    return answer.status === 403 && answer;
  });
  firstId = String(blocked.headers["x-accel-decision"]);
  const told = await until("the decision", async () => {
    const { status, out } = run("why", firstId, "--json");
    return status === 0 && (JSON.parse(out) as Facts);
  });
  const set = { host: domain, kind: "bad", version: 1, range: "203.0.113.0/24", version_now: 1 };
  expect(told).toMatchObject({
    decision: firstId,
    host: domain,
    address,
    verdict: "block",
    reason: "bad-set",
    bot: "scraper",
    set,
    now: { verdict: "block", reason: "bad-set" },
  });
  const { since } = told["set"] as { since: string };
  expect(Date.parse(since)).toBeGreaterThan(began);
  expect(Date.parse(since)).toBeLessThan(Date.now() + 1_000);
  expect(run("why", firstId).out).toContain(
    `203.0.113.0/24 is scraper's in the bad set of ${domain}, version 1`,
  );
  expect(facts("why", address)).toMatchObject({
    address,
    hosts: [{ host: domain, verdict: "block", bot: "scraper", set }],
    decisions: { newest: [{ decision: firstId }] },
  });
  expect(facts("bots", "list")).toMatchObject({
    sets: [{ host: domain, kind: "bad", version: 1, count: 1, in_force: 1 }],
    hosts: [{ host: domain, mode: "enforce", unknown_bots: "blocked by default", said_by: null }],
  });
});

test("a claimed name: the default, then the policy of the domain, by its name", async () => {
  const check = (): unknown =>
    facts("bots", "check", "198.51.100.1", "--ua", "curl/8.5.0", "--domain", domain)["hosts"];
  expect(check()).toMatchObject([
    {
      verdict: "block",
      reason: "unreviewed-blocked-by-default",
      bot: "curl",
      policy: { kind: "default" },
    },
  ]);
  const policy = { unknown_bots_can_access: true };
  const body = { per_domain_policy: [{ domain, policy }] };
  expect((await edge.api.post("/bot-access-policy/", body)).status).toBe(200);
  await until("the policy", () => JSON.stringify(check()).includes("unreviewed-allowed"));
  expect(check()).toMatchObject([
    { verdict: "allow", policy: { kind: "domain", domain, changed_at: expect.any(String) } },
  ]);
});

test("classes of bots: feed readers come in where libraries and crawlers do not, and it is said why", async () => {
  const setPolicy = async (policy: object): Promise<Facts> => {
    const body = { per_domain_policy: [{ domain, policy }] };
    const { status, body: answer } = await edge.api.post("/bot-access-policy/", body);
    expect(status).toBe(200);
    return answer as Facts;
  };
  const statusOf = async (userAgent: string): Promise<number> =>
    (await edge.visit("/", { host: domain, userAgent })).status;
  const bots = {
    feed: "Miniflux/2.1.3 (https://miniflux.app)",
    library: "curl/8.5.0",
    crawler: "Bytespider",
  };
  const statuses = async (): Promise<readonly number[]> =>
    Promise.all(Object.values(bots).map(statusOf));
  const policy = { unknown_bots_can_access: false, unknown_feeds_can_access: true };
  expect(await setPolicy(policy)).toEqual({ per_domain_policy: [{ domain, policy }] });
  await until("the classes", async () => JSON.stringify(await statuses()) === "[200,403,403]");
  expect(facts("bots", "list")).toMatchObject({
    hosts: [{ unknown_bots: "blocked", classes: { feed: "allowed" } }],
  });
  const check = run("bots", "check", "198.51.100.1", "--ua", bots.feed, "--domain", domain).out;
  expect(check).toContain("which claims to be the bot Miniflux, a feed reader");
  expect(check).toContain(`the policy of ${domain} says that unknown feed readers can access`);
  expect(check).toContain(
    `unknown_feeds_can_access: false beside unknown_bots_can_access: false for ${domain} in per_domain_policy`,
  );
  await setPolicy({ unknown_bots_can_access: true, unknown_libraries_can_access: "False" });
  await until(
    "the other classes",
    async () => JSON.stringify(await statuses()) === "[200,403,200]",
  );
  // Whom the policy before and the policy behind refuse nobody lets in between.
  const before = { unknown_bots_can_access: true, unknown_libraries_can_access: false };
  const behind = { unknown_bots_can_access: false, unknown_feeds_can_access: true };
  for (let change = 0; change < 10; change++) {
    const inForce = new AbortController();
    const seen = new Set<number>();
    const visits = Array.from({ length: 8 }, async () => {
      while (!inForce.signal.aborted) seen.add(await statusOf(bots.library));
    });
    await setPolicy(change % 2 === 0 ? behind : before);
    const wanted = change % 2 === 0 ? 403 : 200;
    await until("the change", async () => (await statusOf(bots.crawler)) === wanted);
    inForce.abort();
    await Promise.all(visits);
    expect([...seen]).toEqual([403]);
  }
  // A class without a value follows again.
  await setPolicy({ unknown_bots_can_access: true, unknown_libraries_can_access: null });
  await until("no class", async () => JSON.stringify(await statuses()) === "[200,200,200]");
});

test("monitor mode lets through: counted, recorded, shown, and a decision all the same", async () => {
  writeDevlove("monitor");
  const passed = await until("monitor mode", async () => {
    const answer = await visit("scraper-in-monitor/1.0");
    return answer.status === 200 && answer;
  });
  expect(passed.headers["x-accel-decision"]).toBeUndefined();
  expect(passed.body.toString()).toBe("hello");
  const decisions = await until("the decision", async () => {
    const { newest } = facts("why", address)["decisions"] as { newest: readonly Facts[] };
    return newest[0]?.["verdict"] === "would-block" && newest;
  });
  expect(decisions[0]).toMatchObject({
    reason: "bad-set",
    bot: "scraper",
    user_agent: "scraper-in-monitor/1.0",
  });
  expect(run("why", address).out).toContain("in enforce mode it is blocked with 403");
  expect(JSON.stringify(facts("status"))).toContain('"mode":"monitor"');
  const metrics = await (
    await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`)
  ).text();
  expect(metrics).toMatch(
    new RegExp(`accel_agent_would_block_total\\{domain="${domain}",reason="bad-set"\\} [1-9]`),
  );
  expect(metrics).toMatch(/\naccel_agent_decisions_total [1-9]/);
  const record = await until("the record at central", () =>
    recordOf("scraper-in-monitor/1.0", 200),
  );
  expect(record).toMatchObject({
    verdict: "would-block bad-set",
    bot: "scraper",
    client_ip: address,
  });
  // What was decided before is told as it was.
  expect(facts("why", firstId)).toMatchObject({
    verdict: "block",
    now: { verdict: "would-block" },
  });
});

test("what is not known fails with 1, what cannot be asked with 2", () => {
  expect(run("why", "0123456789abcdef")).toMatchObject({
    status: 1,
    err: expect.stringContaining("decision 0123456789abcdef is not known"),
  });
  expect(run("why", "203.0.113.0/24").status).toBe(2);
  expect(run("why", address, "--domain", "other.example").status).toBe(1);
});
