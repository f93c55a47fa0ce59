// Marks and removals that wait: answered when the agents that are connected have proved them; without the list where a summary is asked for.

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";
import { receipt, seen } from "./receipts.ts";

let api: Api;
let token: string;
let name: string;
let sites: readonly [number, number];
let no = 0;
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  api.clock = new Date(api.clock.getTime() + 3_600_000);
  token = await api.trial(`marker${++no}`);
  name = `m${no}.example.com`;
  const made = async (): Promise<number> => {
    const site = await api.call("POST", "/deployment-site/", { token, body: { tags: "all" } });
    return Number(member(site.body, "id"));
  };
  sites = [await made(), await made()];
  const body = { name, link_to_deployment_sites_with_tags: "all" };
  await api.call("POST", "/domain/", { token, body });
});

type Given = { query?: string; range?: string; key?: string; set?: "bad" | "vip"; host?: string };
async function mark({
  query = "",
  range = "192.0.2.7",
  key,
  set = "bad",
  host = name,
}: Given = {}) {
  return api.call("POST", `/mark-as-${set}-bot/${range}/${query}`, {
    token,
    body: { attach_to_bot: "Scraper", attach_to_domain: host },
    ...(key !== undefined && { headers: { "idempotency-key": key } }),
  });
}
async function remove(query = "", range = "192.0.2.7"): Promise<Reply> {
  const body = { remove_from_bot: "Scraper", remove_from_domain: name };
  return api.call("POST", `/remove-ip-from-bad-bot-list/${range}/${query}`, { token, body });
}

const deploymentsOf = (reply: Reply): unknown => Object(reply.body)["deployments"];
const record = { id: expect.any(Number), name: "Scraper", ip_addresses: ["192.0.2.7"] };

/** The place of the last entry about sets in the journal of a site, when there are `count`. */
async function entryOf(siteId: number, count = 1): Promise<number> {
  return until("the entry", async () => {
    const entries = await api.journal(siteId);
    const own = entries.flatMap(({ kind }, at) => (kind === "bots.changed" ? [at + 1] : []));
    return own.length >= count && own.at(-1);
  });
}

test("without wait the answer is what the specification says", async () => {
  expect((await mark()).body).toEqual({ ...record, domain: name });
  expect((await remove()).body).toEqual({ ...record, domain: name, ip_addresses: [] });
});

test("with wait it comes when every connected agent has proved it", async () => {
  const [first, second] = sites;
  api.live.add(first);
  await seen(api, second, "far-away");
  const asked = mark({ query: "?wait=30" });
  const seq = await entryOf(first);
  await receipt(api, { siteId: first, seq, phase: "applied", tookMs: 4 });
  const last_seen = api.clock.toISOString();
  const proof = { state: "applied", took_ms: 4 };
  const waiting = { state: "pending", took_ms: null, last_seen };
  expect((await asked).body).toEqual({
    ...record,
    domain: name,
    deployments: [
      {
        deployment_site_id: first,
        ...proof,
        instances: [{ instance_id: "instance-1", ...proof, last_seen }],
      },
      {
        deployment_site_id: second,
        ...waiting,
        instances: [{ instance_id: "far-away", ...waiting }],
      },
    ],
  });
});

test("nobody waits for an instance without a link beside one that is connected", async () => {
  const [first] = sites;
  api.live.add(first);
  api.away.add("stopped");
  await seen(api, first, "stopped");
  const started = performance.now();
  const asked = mark({ query: "?wait=30" });
  const seq = await entryOf(first);
  await receipt(api, { siteId: first, seq, phase: "applied" });
  expect(deploymentsOf(await asked)).toMatchObject([
    {
      state: "pending",
      instances: [
        { instance_id: "instance-1", state: "applied" },
        { instance_id: "stopped", state: "pending" },
      ],
    },
    { state: "absent" },
  ]);
  expect(performance.now() - started).toBeLessThan(15_000); // It was to wait for 30 s.
  api.live.clear();
  api.away.clear();
});

test("nobody is waited for who is not connected; 0 waits for nobody", async () => {
  const absent = sites.map((id) => ({
    deployment_site_id: id,
    state: "absent",
    took_ms: null,
    instances: [],
  }));
  const started = performance.now();
  expect(deploymentsOf(await mark({ query: "?wait=30" }))).toEqual(absent);
  for (const id of sites) api.live.add(id);
  expect(deploymentsOf(await mark({ query: "?wait=0", range: "192.0.2.8" }))).toEqual(absent);
  expect(performance.now() - started).toBeLessThan(15_000); // It was to wait for 30 s.
});

test("an agent that refuses is told with its reason, and is not waited for", async () => {
  const [first] = sites;
  api.live.add(first);
  const asked = mark({ query: "?wait=30" });
  const detail = { reason: "the set would shrink beyond reason" };
  await receipt(api, { siteId: first, seq: await entryOf(first), phase: "refused", detail });
  expect(deploymentsOf(await asked)).toMatchObject([
    { state: "failed", error: detail.reason, took_ms: null },
    { state: "absent" },
  ]);
});

test("a later change of the set proves the earlier, whichever of the entries is receipted", async () => {
  const [first] = sites;
  await seen(api, first);
  api.live.add(first);
  const asked = mark({ query: "?wait=30" });
  await entryOf(first);
  const later = mark({ query: "?wait=30", range: "192.0.2.8" });
  const seq = await entryOf(first, 2);
  await receipt(api, { siteId: first, seq, phase: "applied" });
  for (const reply of [await asked, await later])
    expect(deploymentsOf(reply)).toMatchObject([{ state: "applied" }, { state: "absent" }]);

  // The same the other way round: the newest is not told yet when the one before is.
  const before = api.receipts.asked;
  const again = mark({ query: "?wait=30", range: "192.0.2.9" });
  const third = await entryOf(first, 3);
  // Whoever waits for the second time has read what there is.
  await until("it is waited for", () => api.receipts.asked > before);
  api.receipts.stored();
  await until("it was looked at", () => api.receipts.asked > before + 1);
  const newest = mark({ query: "?wait=1", range: "192.0.2.10" });
  await entryOf(first, 4);
  await receipt(api, { siteId: first, seq: third, phase: "applied" });
  expect(deploymentsOf(await again)).toMatchObject([{ state: "applied" }, { state: "absent" }]);
  expect(deploymentsOf(await newest)).toMatchObject([{ state: "pending" }, { state: "absent" }]);
});

test("a snapshot proves what it holds, unless the agent kept its own set", async () => {
  const [first, second] = sites;
  await mark();
  await mark({ set: "vip", range: "198.51.100.1" });
  const kept = [{ domain: name, set: "bad", reason: "it would have shrunk" }];
  for (const [siteId, kept_sets] of [
    [first, []],
    [second, kept],
  ] as const) {
    const seq = (await api.journal(siteId)).length + 1;
    const detail = { snapshot: true, kept_sets };
    await receipt(api, { siteId, seq, phase: "applied", detail });
  }
  expect(deploymentsOf(await mark({ query: "?wait=0" }))).toMatchObject([
    { state: "applied" },
    { state: "failed", error: "it would have shrunk" },
  ]);
  const vip = await mark({ set: "vip", range: "198.51.100.1", query: "?wait=0" });
  expect(deploymentsOf(vip)).toMatchObject([{ state: "applied" }, { state: "applied" }]);
});

test("a removal, and a call that is repeated, wait as well; a new link is told by its own entry", async () => {
  const [first] = sites;
  await mark();
  const key = "one-mark";
  const given = { key, range: "192.0.2.9" };
  expect(deploymentsOf(await mark(given))).toBeUndefined();
  await receipt(api, { siteId: first, seq: await entryOf(first, 2), phase: "applied" });
  const repeated = await mark({ ...given, query: "?wait=1" });
  expect(deploymentsOf(repeated)).toMatchObject([{ state: "applied" }, { state: "absent" }]);
  expect(deploymentsOf(await remove("?wait=0"))).toMatchObject([
    { state: "pending" },
    { state: "absent" },
  ]);
  const site = await api.call("POST", "/deployment-site/", { token, body: { tags: "all" } });
  const third = Number(member(site.body, "id"));
  await receipt(api, { siteId: third, seq: await entryOf(third), phase: "applied" });
  const nothingNew = await mark({ range: "192.0.2.9", query: "?wait=0" });
  expect(deploymentsOf(nothingNew)).toMatchObject([
    { state: "pending" },
    { state: "absent" },
    { deployment_site_id: third, state: "applied" },
  ]);
});

test("a summary counts in place of the list, with proofs where they are asked for", async () => {
  const summary = { id: expect.any(Number), name: "Scraper", domain: name };
  await mark();
  const second = await mark({ query: "?return=summary", range: "192.0.2.8" });
  expect(second.body).toEqual({ ...summary, ip_address_count: 2 });
  const gone = await remove("?return=summary&wait=0");
  expect(gone.body).toEqual({ ...summary, ip_address_count: 1, deployments: expect.any(Array) });
});

test.each(["?wait=31", "?wait=-1", "?wait=soon", "?return=everything", "?return="])(
  "%s is refused, and nothing is marked",
  async (query) => {
    const reply = await mark({ query });
    expect(reply.status).toBe(400);
    expect(reply.body).toMatchObject({ errors: [{ path: query.split("=")[0] }] });
    expect((await api.call("GET", "/list-bad-bots/", { token })).body).toEqual([]);
    expect((await remove(query)).status).toBe(400);
  },
);
