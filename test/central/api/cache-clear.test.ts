// Clears: journaled once, awaited for the agents that are connected, answered with what they proved.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";
import { receipt, seen } from "./receipts.ts";

let api: Api;
let token: string;
let name: string;
let sites: readonly number[];
let no = 0;
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  api.clock = new Date(api.clock.getTime() + 3_600_000);
  token = await api.trial(`clearer${++no}`);
  name = `c${no}.example.com`;
  const made: number[] = [];
  for (let n = 0; n < 2; n++) {
    const site = await api.call("POST", "/deployment-site/", { token, body: { tags: "all" } });
    made.push(Number(member(site.body, "id")));
  }
  sites = made;
  const body = { name, link_to_deployment_sites_with_tags: "all" };
  await api.call("POST", "/domain/", { token, body });
  const sub_domain = { name: `img.${name}` };
  await api.call("PUT", `/domain/${name}/`, { token, body: { sub_domain } });
});

type Given = { query?: string; host?: string; key?: string; patterns?: readonly string[] };
async function clear({ query = "", host = name, key, patterns = ["path:news"] }: Given = {}) {
  return api.call("POST", `/clear-accelerator-cache/${host}/${query}`, {
    token,
    body: { url_path_patterns: patterns },
    ...(key !== undefined && { headers: { "idempotency-key": key } }),
  });
}

function deployments(reply: Reply): readonly Record<string, unknown>[] {
  const list: unknown = Object(reply.body)["deployments"];
  return Array.isArray(list) ? list : [];
}

/** The place of the last clear in the journal of each site. */
async function clearSeqs(): Promise<readonly number[]> {
  return Promise.all(
    sites.map(async (id) => {
      const entries = await api.journal(id);
      return entries.findLastIndex(({ kind }) => kind === "cache.clear") + 1;
    }),
  );
}

test("is journaled to every deployment; those that are not connected are pending at once", async () => {
  const started = performance.now();
  const reply = await clear({ query: "?wait=30", patterns: ["path:news", "mime:png"] });
  expect(performance.now() - started).toBeLessThan(15_000); // It was to wait for 30 s.
  expect(reply.status).toBe(200);
  expect(reply.body).toEqual({
    clear_id: expect.stringMatching(/^[0-9a-f]{16}$/),
    domain: name,
    patterns: ["path:news", "mime:png"],
    deployments: sites.map((id) => ({
      deployment_site_id: id,
      state: "pending",
      matched: null,
      removed: null,
      blocked_in_flight: null,
      took_ms: null,
      invisible_ms: null,
      gone_ms: null,
      verified: null,
      instances: [],
    })),
  });
  for (const id of sites)
    expect((await api.journal(id)).at(-1)).toEqual({
      kind: "cache.clear",
      body: {
        clear_id: member(reply.body, "clear_id"),
        domain: name,
        host: null,
        patterns: ["path:news", "mime:png"],
      },
    });
  expect(api.woken.at(-1)).toEqual(sites);
});

test("answers when every connected agent has told, with its counts", async () => {
  const [first = 0, second = 0] = sites;
  api.live.add(first);
  await seen(api, second, "far-away");
  const asked = clear();
  const before = (await api.journal(first)).length;
  const seq = await until("the entry", async () => {
    const entries = await api.journal(first);
    return entries.at(-1)?.kind === "cache.clear" ? entries.length : undefined;
  });
  expect(seq).toBeGreaterThanOrEqual(before);
  const told = { matched: 12, widened: false, invisible_ms: 3.25 };
  await receipt(api, { siteId: first, seq, phase: "applied", detail: told, tookMs: 4 });
  const detail = { removed: 11, blocked_in_flight: 1, gone_ms: 8.5, verified: true };
  await receipt(api, { siteId: first, seq, phase: "gone", detail });
  const reply = await asked;
  const proof = {
    state: "applied",
    matched: 12,
    removed: 11,
    blocked_in_flight: 1,
    took_ms: 4,
    invisible_ms: 3.25,
    gone_ms: 8.5,
    verified: true,
  };
  const last_seen = api.clock.toISOString();
  expect(deployments(reply)).toEqual([
    {
      deployment_site_id: first,
      ...proof,
      instances: [{ instance_id: "instance-1", ...proof, last_seen }],
    },
    expect.objectContaining({
      deployment_site_id: second,
      state: "pending",
      last_seen,
      instances: [expect.objectContaining({ instance_id: "far-away", state: "pending" })],
    }),
  ]);
  api.live.clear();
});

test("nobody waits for an instance without a link beside one that is connected; the answer tells of it", async () => {
  const [first = 0] = sites;
  api.live.add(first);
  api.away.add("stopped");
  await seen(api, first, "stopped");
  const started = performance.now();
  const asked = clear({ query: "?wait=30" });
  const seq = await until("the entry", async () => {
    const entries = await api.journal(first);
    return entries.at(-1)?.kind === "cache.clear" ? entries.length : undefined;
  });
  await receipt(api, { siteId: first, seq, phase: "applied", detail: { matched: 1 } });
  await receipt(api, { siteId: first, seq, phase: "gone", detail: { removed: 1, verified: true } });
  const [deployment] = deployments(await asked);
  expect(performance.now() - started).toBeLessThan(15_000); // It was to wait for 30 s.
  expect(deployment).toMatchObject({
    state: "pending",
    instances: [
      { instance_id: "instance-1", state: "applied", removed: 1 },
      { instance_id: "stopped", state: "pending" },
    ],
  });
  api.live.clear();
  api.away.clear();
});

test("waits no longer than asked, and can be read later", async () => {
  const [first = 0] = sites;
  api.live.add(first);
  const reply = await clear({ query: "?wait=0.05" });
  expect(deployments(reply)[0]).toMatchObject({ state: "pending" });
  const [seq = 0] = await clearSeqs();
  await receipt(api, {
    siteId: first,
    seq,
    phase: "applied",
    detail: { matched: 1, widened: true },
  });
  const path = `/clear-accelerator-cache/${name}/${member(reply.body, "clear_id")}/`;
  const later = await api.call("GET", path, { token });
  expect(deployments(later)[0]).toMatchObject({ state: "applied", matched: 1, widened: true });
  expect((await api.call("GET", `${path.slice(0, -4)}/`, { token })).status).toBe(404);
  api.live.clear();
});

test("shows each instance: sums and longest times, and the one that is cut off stays pending", async () => {
  const [first = 0] = sites;
  await seen(api, first, "cut-off");
  api.clock = new Date(api.clock.getTime() + 600_000);
  const reply = await clear();
  const [seq = 0] = await clearSeqs();
  const one = { siteId: first, seq, instanceId: "one" };
  const two = { siteId: first, seq, instanceId: "two" };
  const applied = { matched: 2, invisible_ms: 5 };
  await receipt(api, { ...one, phase: "applied", detail: applied, tookMs: 7 });
  await receipt(api, {
    ...two,
    phase: "applied",
    detail: { matched: 3, invisible_ms: 9 },
    tookMs: 3,
  });
  await receipt(api, { ...one, phase: "gone", detail: { removed: 2, verified: true } });
  await receipt(api, { ...two, phase: "gone", detail: { removed: 3, verified: false, left: 1 } });
  const path = `/clear-accelerator-cache/${name}/${member(reply.body, "clear_id")}/`;
  const [deployment] = deployments(await api.call("GET", path, { token }));
  expect(deployment).toMatchObject({
    state: "applied",
    matched: 5,
    removed: 5,
    took_ms: 7,
    invisible_ms: 9,
    verified: false,
    instances: [
      { instance_id: "cut-off", state: "pending", matched: null, verified: null },
      { instance_id: "one", state: "applied", matched: 2, verified: true },
      { instance_id: "two", state: "applied", matched: 3, verified: false },
    ],
  });
  api.clock = new Date(api.clock.getTime() + 86_400_000);
  const [later] = deployments(await api.call("GET", path, { token }));
  expect(later?.["instances"]).toHaveLength(2); // The other one has been silent for more than a day.
});

test("a refusal is told with its reason", async () => {
  const [first = 0] = sites;
  const reply = await clear();
  const [seq = 0] = await clearSeqs();
  await receipt(api, {
    siteId: first,
    seq,
    phase: "refused",
    detail: { reason: "no such domain" },
  });
  const path = `/clear-accelerator-cache/${name}/${member(reply.body, "clear_id")}/`;
  expect(deployments(await api.call("GET", path, { token }))[0]).toMatchObject({
    state: "failed",
    error: "no such domain",
  });
});

test("a repeated key is the same clear, with its state of now", async () => {
  const [first = 0] = sites;
  const before = await clear({ key: "same" });
  const [seq = 0] = await clearSeqs();
  await receipt(api, { siteId: first, seq, phase: "applied", detail: { matched: 3 } });
  const after = await clear({ key: "same" });
  expect(member(after.body, "clear_id")).toBe(member(before.body, "clear_id"));
  expect(deployments(after)[0]).toMatchObject({ state: "applied", matched: 3 });
  expect(await clearSeqs()).toContain(seq);
  expect((await clear({ key: "same", patterns: ["other"] })).status).toBe(409);
});

test("of a sub-domain concerns that one only", async () => {
  const reply = await clear({ host: `IMG.${name}` });
  expect(reply.body).toMatchObject({ domain: `img.${name}` });
  const [first = 0] = sites;
  expect((await api.journal(first)).at(-1)?.body).toMatchObject({
    domain: name,
    host: `img.${name}`,
  });
});

describe("refused, with nothing cleared", () => {
  test.each<[string, Given | { patterns: unknown }, string]>([
    [
      "a pattern that FTS5 cannot parse",
      { patterns: ["path:ok", "a.html"] },
      "/url_path_patterns/1",
    ],
    ["a column that is none", { patterns: ["author:me"] }, "/url_path_patterns/0"],
    ["no pattern", { patterns: [] }, "/url_path_patterns"],
    ["65 patterns", { patterns: Array.from({ length: 65 }, () => "a") }, "/url_path_patterns"],
    ["a wait that is too long", { query: "?wait=31" }, "?wait"],
    ["a wait that is none", { query: "?wait=soon" }, "?wait"],
  ])("%s", async (_what, given, path) => {
    const before = await clearSeqs();
    const reply = await clear(given as Given); // Some are wrong on purpose.
    expect(reply).toMatchObject({ status: 400, body: { errors: [{ path }] } });
    expect(await clearSeqs()).toEqual(before);
  });

  test("says of each pattern where it goes wrong and how it may have been meant", async () => {
    const reply = await clear({ patterns: ["path:ok", "path:a.html", "*", "title:x"] });
    const { errors } = reply.body as { errors: unknown };
    expect(errors).toEqual([
      {
        path: "/url_path_patterns/1",
        message: 'the pattern "path:a.html" has ".", which may only stand in quotes',
        pattern: "path:a.html",
        position: 6,
        did_you_mean: 'path:"a.html"',
      },
      {
        path: "/url_path_patterns/2",
        message: expect.stringContaining("has * without a word"),
        pattern: "*",
        position: 0,
        did_you_mean: "kind:static OR kind:generated",
      },
      {
        path: "/url_path_patterns/3",
        message: expect.stringContaining('names a column "title"'),
        pattern: "title:x",
        position: 0,
      },
    ]);
  });
});
