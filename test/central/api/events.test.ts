// Streams of events over real sockets: who is told what of which change, and when a stream ends.

import { afterAll, beforeAll, expect, test } from "vitest";
import { listenToEvents, type EventListener } from "../../support/event-listener.ts";
import { until } from "../../support/until.ts";
import { member, openApi, type Api } from "./api-harness.ts";

let api: Api;
let token: string;
let siteId: number;
let apartId: number;
const [shop, blog] = ["shop.example.com", "blog.example.com"];

beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 1e6, trialsTotal: 1e6 });
  token = await api.trial("ada");
  siteId = await newSite(token);
  apartId = await newSite(token);
  await newDomain(shop, siteId);
  await newDomain(blog, apartId);
});
afterAll(async () => api[Symbol.asyncDispose]());

async function newSite(by: string): Promise<number> {
  const { body } = await api.call("POST", "/deployment-site/", { token: by, body: {} });
  return Number(member(body, "id"));
}

async function newDomain(name: string, deployment_site_id: number): Promise<void> {
  const body = { name, deployment_site_id };
  expect((await api.call("POST", "/domain/", { token, body })).status).toBe(201);
}

async function issue(terms: object, by = token): Promise<{ id: number; token: string }> {
  const reply = await api.call("POST", "/tokens/", { token: by, body: { name: "t", ...terms } });
  expect(reply.status).toBe(201);
  return Object(reply.body);
}

const urlOf = (one: Api): string => `http://127.0.0.1:${one.port}`;
const listen = async (by: string): Promise<EventListener> =>
  listenToEvents(urlOf(api), { authorization: `Token ${by}` });

const clear = async (domain: string): Promise<void> => {
  const body = { url_path_patterns: ["path:css"] };
  const path = `/clear-accelerator-cache/${domain}/?wait=0`;
  expect((await api.call("POST", path, { token, body })).status).toBe(200);
};

/** What listeners were told when everything before was sent: the policy is told to all of them. */
async function told(page: EventListener): Promise<readonly unknown[]> {
  const seen = page.heard.length;
  const policy = { general_policy: { unknown_bots_can_access: true } };
  await api.call("POST", "/bot-access-policy/", { token, body: policy });
  await until("the hint of the policy", () =>
    page.heard.slice(seen).some(({ data }) => String(data["topics"]).includes("bots")),
  );
  return page.heard.filter(({ name }) => name === "changed").map(({ data }) => data);
}

test("a stream says hello, is stored by nobody, and hints at a change with its topic and domain", async () => {
  using page = await listen(token);
  expect(page.status).toBe(200);
  expect(page.headers).toMatchObject({
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  expect((await page.next("hello")).data).toEqual({ username: "ada" });
  expect(page.text()).toMatch(/^retry: 1000\nevent: hello\ndata: \{.*\}\n\n$/);
  await clear(shop);
  expect((await page.next("changed")).data).toEqual({ topics: ["clears"], domain: shop });
  const { status, body } = await api.call("HEAD", "/events/", { token });
  expect([status, body]).toEqual([200, undefined]);
});

test("nothing is told of what changed nothing, nor to another customer", async () => {
  const other = await api.trial("eve");
  using page = await listen(token);
  using stranger = await listen(other);
  const bad = await api.call("POST", `/clear-accelerator-cache/${shop}/`, { token, body: {} });
  expect(bad.status).toBe(400);
  await api.call("GET", "/tokens/", { token });
  await api.call("POST", "/tokens/", { token: other, body: { name: "own", role: "read" } });
  expect((await stranger.next("changed")).data).toEqual({ topics: ["tokens"] });
  expect(await told(page)).toEqual([{ topics: ["bots"] }]);
  expect(stranger.heard.map(({ name }) => name)).toEqual(["hello", "changed"]);
});

test("a token for some domains is told of these alone, and of topics that it can look at", async () => {
  const { token: bound } = await issue({ role: "read", domains: [shop] });
  using page = await listen(bound);
  await clear(blog);
  await issue({ role: "read" });
  api.changes.publish({ kind: "site", siteId: apartId, topics: ["fleet"] });
  api.wakes.publish([apartId]);
  await clear(shop);
  const first = await page.next("changed");
  expect(first.data).toEqual({ topics: ["clears"], domain: shop });
  api.changes.publish({ kind: "site", siteId, topics: ["fleet"] });
  expect((await page.next("changed", page.heard.length)).data).toEqual({ topics: ["fleet"] });
  expect((await told(page)).at(-1)).toEqual({ topics: ["bots"] });
  expect(page.text()).not.toContain(blog);
  expect(page.text()).not.toContain("tokens");
});

test("what agents proved is told by what their entries are about", async () => {
  const { token: bound } = await issue({ role: "read", domains: [shop] });
  await clear(shop);
  await clear(blog);
  const headOf = async (id: number): Promise<number> => (await api.journal(id)).length;
  using page = await listen(token);
  using bounded = await listen(bound);
  const prove = async (id: number): Promise<void> =>
    api.changes.publish({ kind: "proved", siteId: id, seqs: [await headOf(id)] });
  await prove(apartId);
  expect((await page.next("changed")).data).toEqual({ topics: ["clears", "fleet"], domain: blog });
  await prove(siteId);
  const both = { topics: ["clears", "fleet"], domain: shop };
  expect((await page.next("changed", page.heard.length)).data).toEqual(both);
  expect((await bounded.next("changed")).data).toEqual(both);
  expect(bounded.heard).toHaveLength(2);
  // Entries that are not there any more are told by nothing.
  api.changes.publish({ kind: "proved", siteId, seqs: [4_711] });
  api.changes.publish({ kind: "site", siteId: 4_711, topics: ["fleet"] });
  expect(await told(page)).toHaveLength(3);
});

test("many changes at once are one event in 500 ms", async () => {
  using page = await listen(token);
  const [customer] = await api.store.selectFrom("customers").select("id").orderBy("id").execute();
  const customerId = customer?.id ?? 0;
  const end = performance.now() + 1_200;
  let published = 0;
  await until("the time is over", () => {
    for (const topics of [["clears"], ["viewsets"]] as const)
      api.changes.publish({ kind: "customer", customerId, topics, domains: [shop] });
    published += 2;
    return performance.now() > end;
  });
  await page.next("changed", 2);
  const times = page.heard.slice(1).map(({ atMs }) => atMs);
  expect(published).toBeGreaterThan(20);
  expect(times.length).toBeLessThan(5);
  expect(page.heard[1]?.data).toEqual({ topics: ["clears", "viewsets"], domain: shop });
  for (const [at, ms] of times.entries())
    if (at > 0) expect(ms - (times[at - 1] ?? 0)).toBeGreaterThan(400);
});

test("a stream ends within 5 s after its token was revoked, and when its time is up", async () => {
  const [revoked, short] = [
    await issue({ role: "read" }),
    await issue({ role: "read", lifetime_seconds: 60 }),
  ];
  using first = await listen(revoked.token);
  using second = await listen(short.token);
  using stays = await listen(token);
  const beganMs = performance.now();
  await api.call("DELETE", `/tokens/${revoked.id}/`, { token });
  expect((await first.next("bye")).data).toEqual({ reason: "revoked" });
  expect(performance.now() - beganMs).toBeLessThan(5_000);
  await until("the end", first.isOver);
  expect(second.isOver()).toBe(false);
  api.clock = new Date(api.clock.getTime() + 60_000);
  expect((await second.next("bye")).data).toEqual({ reason: "expired" });
  await until("the end", second.isOver);
  expect(stays.isOver()).toBe(false);
});

test("a browser listens by its cookie, for pages of the same origin alone", async () => {
  const authorization = `Token ${token}`;
  const signed = await api.call("POST", "/session/", { headers: { authorization } });
  const [cookie = ""] = String(signed.headers["set-cookie"]).split(";");
  using page = await listenToEvents(urlOf(api), { cookie, "sec-fetch-site": "same-origin" });
  expect((await page.next("hello")).data).toEqual({ username: "ada" });
  for (const site of ["cross-site", "same-site", "none"]) {
    using other = await listenToEvents(urlOf(api), { cookie, "sec-fetch-site": site });
    expect(other.status).toBe(403);
  }
  using none = await listenToEvents(urlOf(api), { cookie });
  expect(none.status).toBe(403);
});

test("a token has 20 streams; one that ends makes room", async () => {
  const { token: busy } = await issue({ role: "read" });
  const pages = await Promise.all(Array.from({ length: 20 }, async () => listen(busy)));
  expect(pages.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
  const refused = await api.call("GET", "/events/", { token: busy });
  expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "10"]);
  pages[0]?.[Symbol.dispose]();
  await until("room", async () => {
    using again = await listen(busy);
    return again.status === 200;
  });
  for (const page of pages) page[Symbol.dispose]();
});

test("beats keep a stream from being cut as idle, and scripts hear them", async () => {
  await using quiet = await openApi({}, undefined, { quietMs: 100, sweepMs: 20 });
  quiet.server.timeout = 400;
  const own = await quiet.trial("ada");
  using page = await listenToEvents(urlOf(quiet), { authorization: `Token ${own}` });
  const beats = () => page.heard.filter(({ name }) => name === "beat");
  await until("beats for a second", () => beats().length > 10);
  expect(beats()[0]?.data).toEqual({});
  expect(page.isOver()).toBe(false);
});

test("streams end at once when central stops, and none begins", async () => {
  await using stopping = await openApi();
  const own = await stopping.trial("ada");
  const headers = { authorization: `Token ${own}` };
  using page = await listenToEvents(urlOf(stopping), headers);
  await page.next("hello");
  const beganMs = performance.now();
  stopping.stopping.abort("test");
  expect((await page.next("bye")).data).toEqual({ reason: "stopping" });
  await until("the end", page.isOver);
  expect(performance.now() - beganMs).toBeLessThan(1_000);
  expect((await stopping.call("GET", "/events/", { token: own })).status).toBe(503);
});
