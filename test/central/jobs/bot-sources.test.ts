// Lists that are fetched from URLs: what comes is in force as one version, what is not good changes nothing and says why, and nothing is fetched twice or forgotten.

import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { createSealer } from "../../../src/base/seal.ts";
import { startBotSources } from "../../../src/central/jobs/bot-sources.ts";
import { takeSource } from "../../../src/central/store/bots/bot-sources.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { until } from "../../support/until.ts";
import { member, openApi, type Api, type Reply } from "../api/api-harness.ts";

const name = "www.sources.test";
const path = "/bots/bad/Scraper/source/";
let api: Api;
let customers: CustomerStore;
let job: AsyncDisposable | undefined;
let registry: Registry;
let token: string;
let siteId: number;
let url: string;
let list: (request: IncomingMessage, response: ServerResponse) => void;
let told = new Array<string>();
let asked = new Array<IncomingMessage["headers"]>();
const server = createServer((request, response) => {
  asked.push(request.headers);
  list(request, response);
});

beforeEach(async () => {
  const listening = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/scrapers.txt`;
  [asked, told] = [[], []];
  api = await openApi({ privateSourcesAllowed: true, botElements: 5_000 });
  customers = new CustomerStore({
    store: api.store,
    sealer: createSealer(Buffer.alloc(32, 7)),
    now: () => api.clock,
    randomBytes,
  });
  token = await api.trial("sources");
  const site = await api.call("POST", "/deployment-site/", { token, body: {} });
  siteId = Number(member(site.body, "id"));
  await api.call("POST", "/domain/", { token, body: { name, deployment_site_id: siteId } });
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await job?.[Symbol.asyncDispose]();
  job = undefined;
  await api[Symbol.asyncDispose]();
});

function start(wholeMs = 60_000): void {
  registry = new Registry();
  job = startBotSources({
    store: api.store,
    customers,
    wake: (ids) => void api.woken.push([...ids]),
    onAttempt: (_customerId, main) => void told.push(main),
    registry,
    now: () => api.clock,
    log: silentLog(),
    elementsMax: 5_000,
    mayBePrivate: true,
    random: () => 0,
    timings: { intervalMs: 10, silenceMs: 5_000, wholeMs, keepMs: 50 },
  });
}

const texts = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from }, (_, n) => `10.0.${(from + n) >> 8}.${(from + n) & 255}`);
const serve =
  (lines: readonly string[], headers: Record<string, string> = {}): typeof list =>
  (_request, response) =>
    void response.writeHead(200, headers).end(lines.join("\n"));
const serveAs = (object: object): void => {
  list = serve([JSON.stringify(object)]);
};
const later = (ms: number): void => {
  api.clock = new Date(api.clock.getTime() + ms);
};
const dayMs = 86_400_000;

async function call(method: string, to = path, body?: object, query = ""): Promise<Reply> {
  const of = to === "/bots/sources/" || to === "/bots/published/" ? "" : `?domain=${name}${query}`;
  return api.call(method, `${to}${of}`, { token, ...(body !== undefined && { body }) });
}
async function source(to = path): Promise<Record<string, unknown>> {
  return Object(await call("GET", to).then(({ body }) => body)) as Record<string, unknown>;
}
/** Waits for the end of an attempt that is made after the call. */
async function attempt(to = path): Promise<Record<string, unknown>> {
  const now = api.clock.toISOString();
  return until("an attempt has ended", async () => {
    const one = await source(to);
    return one["when_tried"] === now ? one : undefined;
  });
}
async function held(): Promise<readonly string[]> {
  const { body } = await api.call("GET", `/bots/bad/Scraper/addresses/?domain=${name}&limit=9000`, {
    token,
  });
  return Object(body)["ip_addresses"] as string[];
}
async function versions(): Promise<number> {
  const entries = await api.journal(siteId);
  return entries.filter(({ kind }) => kind === "bots.changed").length;
}

test("a list is fetched at once and every interval, and each change of it is one version", async () => {
  list = serve(texts(0, 300));
  const set = await call("PUT", path, { url, interval_s: 3_600 });
  expect(set.body).toMatchObject({ state: "waiting", url, interval_s: 3_600, count: 0 });
  start();
  expect(await attempt()).toMatchObject({ state: "good", outcome: "changed", count: 300 });
  expect([...(await held())].toSorted()).toEqual([...texts(0, 300)].toSorted());
  list = serve(texts(10, 310));
  later(3_599_000);
  await call("PUT", path, { url, interval_s: 3_600 });
  later(1_000);
  expect(await attempt()).toMatchObject({ outcome: "changed", count: 300, failures: 0 });
  expect(await held()).toContain("10.0.1.53");
  expect(await held()).not.toContain("10.0.0.9");
  expect([await versions(), asked.length]).toEqual([2, 2]);
  expect(told).toEqual([name, name]);
  expect(api.woken).toContainEqual([siteId]);
  const audit = await api.call("GET", "/audit/", { token });
  expect(audit.body).toContainEqual(
    expect.objectContaining({
      via: "central",
      operation: "list fetched",
      detail: expect.objectContaining({
        change: expect.objectContaining({ added: 10, removed: 10, url }),
      }),
    }),
  );
});

test("a list that is as before is no version, whether the server says so or sends it again", async () => {
  list = serve(texts(0, 50), { etag: '"one"' });
  await call("PUT", path, { url });
  start();
  await attempt();
  list = (_request, response) => void response.writeHead(304).end();
  later(dayMs);
  expect(await attempt()).toMatchObject({ state: "good", outcome: "unchanged", count: 50 });
  expect(asked[1]).toMatchObject({ "if-none-match": '"one"' });
  list = serve(texts(0, 50), { etag: '"two"' });
  later(dayMs);
  expect(await attempt()).toMatchObject({ outcome: "unchanged" });
  expect(await versions()).toBe(1);
  expect(await registry.metrics()).toContain('list_fetches_total{outcome="unchanged"} 2');
});

test("what was marked beside the list is replaced by it, though the list has not changed", async () => {
  list = serve(texts(0, 50), { etag: '"one"' });
  await call("PUT", path, { url });
  start();
  await attempt();
  const body = { attach_to_bot: "Scraper", attach_to_domain: name };
  await api.call("POST", "/mark-as-bad-bot/192.0.2.99/", { token, body });
  later(dayMs);
  expect(await attempt()).toMatchObject({ outcome: "changed", count: 50 });
  expect(asked[1]).not.toHaveProperty("if-none-match");
  expect(await held()).not.toContain("192.0.2.99");
});

test("a list that does not come is asked for ever later, and is failing, then stale, then good", async () => {
  list = (_request, response) => void response.writeHead(500).end();
  await call("PUT", path, { url });
  start();
  const first = await attempt();
  expect(first).toMatchObject({
    state: "failing",
    outcome: "failed",
    reason: "the server answered 500",
    failures: 1,
    when_fetched: null,
  });
  expect(Date.parse(String(first["when_next"])) - api.clock.getTime()).toBe(60_000);
  later(3 * dayMs);
  expect(await attempt()).toMatchObject({ state: "stale", failures: 2 });
  list = serve(texts(0, 5));
  later(120_000);
  expect(await attempt()).toMatchObject({ state: "good", failures: 0, reason: null, count: 5 });
});

test("a server that asks for time gets it, an interval at most", async () => {
  await call("PUT", path, { url, interval_s: 3_600 });
  for (const [status, asks, waitS] of [
    [429, 1_800, 1_800],
    [503, 99_999, 3_600],
    [503, 5, 240],
  ] as const) {
    list = (_, response) => void response.writeHead(status, { "retry-after": String(asks) }).end();
    if (status === 429) start();
    const next = Date.parse(String((await attempt())["when_next"]));
    expect(next - api.clock.getTime()).toBe(waitS * 1_000);
    later(waitS * 1_000);
  }
});

test("a list with a faulty line, a page, a list that broke off: nothing of it is in force, and the reason names it", async () => {
  list = serve(texts(0, 20));
  await call("PUT", path, { url });
  start();
  await attempt();
  const refusals: readonly (readonly [typeof list, string, string])[] = [
    [serve(["192.0.2.1", "nonsense"]), "refused", 'line 2: "nonsense" is not'],
    [serve(["<html>blocked</html>"]), "refused", "what came is a page (HTML or XML) and no list"],
    [serve(['{"prefixes": [{"ipv4Prefix": "x"}]}']), "refused", "item 1: "],
    [serve(["[5]"]), "refused", "is no JSON array of texts"],
    [serve([]), "refused", "the list is empty"],
    [
      (_request, response) => {
        response.writeHead(200, { "content-length": "999" });
        response.write("192.0.2.1\n");
        setTimeout(() => response.destroy(), 20);
      },
      "failed",
      // Where this process is late, the end has come before anybody reads the ten.
      "the list broke off after ",
    ],
  ];
  for (const [answer, outcome, reason] of refusals) {
    list = answer;
    later(dayMs);
    expect(await attempt()).toMatchObject({
      outcome,
      reason: expect.stringContaining(reason),
      count: 20,
    });
  }
  expect([...(await held())].toSorted()).toEqual([...texts(0, 20)].toSorted());
  expect(await versions()).toBe(1);
});

test("a list that is half as long as before is refused until somebody says that it is meant, once", async () => {
  list = serve(texts(0, 200));
  await call("PUT", path, { url });
  start();
  await attempt();
  list = serve(texts(0, 99));
  later(dayMs);
  expect(await attempt()).toMatchObject({
    outcome: "refused",
    reason:
      "the bot would be left with 99 of 200 addresses and ranges, 101 would go; if that is meant, fetch it with ?allow_shrink=true",
    count: 200,
  });
  later(1_000);
  const meant = await call("POST", `${path}fetch/`, undefined, "&allow_shrink=true");
  expect(meant.status).toBe(200);
  expect(await attempt()).toMatchObject({ outcome: "changed", count: 99 });
  list = serve(texts(0, 200));
  later(dayMs);
  await attempt();
  list = serve(texts(0, 20));
  later(dayMs);
  expect(await attempt()).toMatchObject({ outcome: "refused", count: 200 });
});

test("who says that it is meant while the list is being fetched is heard", async () => {
  list = serve(texts(0, 200));
  await call("PUT", path, { url });
  start();
  await attempt();
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  list = (_request, response) => {
    begun.resolve();
    void go.promise.then(() => response.end(texts(0, 9).join("\n")));
  };
  later(dayMs);
  await begun.promise;
  later(1_000);
  await call("POST", `${path}fetch/`, undefined, "&allow_shrink=true");
  go.resolve();
  await until("the second attempt took it", async () => (await source())["count"] === 9);
  expect(asked).toHaveLength(3);
});

test("a customer has so many sources and no more", async () => {
  const { id: domain_id } = await api.store
    .selectFrom("domains")
    .select("id")
    .executeTakeFirstOrThrow();
  const at = api.clock.toISOString();
  const times = { when_created: at, when_next: "2099-01-01T00:00:00.000Z" };
  const row = { domain_id, host: name, kind: "bad", url, interval_s: 900, created_by: "" } as const;
  for (let no = 0; no < 200; no++)
    await api.store
      .insertInto("bot_sources")
      .values({ ...row, ...times, bot: `b${no}` })
      .execute();
  expect((await call("PUT", path, { url })).status).toBe(409);
  expect((await call("PUT", "/bots/bad/b7/source/", { url })).status).toBe(200);
});

test("a VIP bot gets no large range, and no customer more than he may hold", async () => {
  list = serve(["192.0.2.0/24", "198.51.0.0/16"]);
  const vip = "/bots/vip/Uptime/source/";
  await call("PUT", vip, { url });
  start();
  expect(await attempt(vip)).toMatchObject({
    outcome: "refused",
    reason: expect.stringContaining("line 2: a VIP range must be /24 or longer"),
    count: 0,
  });
  list = serve(texts(0, 5_001));
  later(1_000);
  await call("PUT", path, { url: `${url}?all` });
  expect(await attempt()).toMatchObject({
    outcome: "refused",
    reason: "the customer's bots would hold more than 5000 addresses and ranges",
    count: 0,
  });
});

test("what a crawler's owner publishes is fetched by the crawler's name, with larger ranges than marks have", async () => {
  const vip = "/bots/vip/ClaudeBot/source/";
  const set = await call("PUT", vip, { published: true });
  expect(set.body).toMatchObject({ published: true, url: "https://claude.com/crawling/bots.json" });
  const known = Object(set.body) as Record<string, unknown>;
  expect((await call("PUT", vip, { ...known, interval_s: 900 })).body).toMatchObject({
    published: true,
    interval_s: 900,
  });
  expect((await call("GET", "/bots/published/")).body).toContainEqual(
    expect.objectContaining({ bot: "ClaudeBot", url: known["url"] }),
  );
  for (const [to, body] of [
    ["/bots/vip/Unknown/source/", { published: true }],
    ["/bots/bad/ClaudeBot/source/", { published: true }],
    [vip, {}],
  ] as const)
    expect((await call("PUT", to, body)).status).toBe(400);
  // An earlier release had another URL.
  await api.store.updateTable("bot_sources").set({ url: "http://old.example/" }).execute();
  start();
  await until("it follows the release", async () => (await source(vip))["url"] === known["url"]);
  serveAs({ prefixes: [{ ipv4Prefix: "192.0.0.0/22" }] });
  await api.store.updateTable("bot_sources").set({ url }).execute();
  later(dayMs);
  expect(await attempt(vip)).toMatchObject({ state: "good", published: true, count: 1 });
  serveAs({ prefixes: [{ ipv4Prefix: "10.0.0.0/8" }] });
  later(dayMs);
  expect(await attempt(vip)).toMatchObject({
    outcome: "refused",
    reason: "item 1: a VIP range must be /16 or longer, 10.0.0.0/8 is larger",
  });
});

test("a source that is changed or ended while its list comes in gets nothing of that list", async () => {
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  list = (_request, response) => {
    response.write("192.0.2.1\n");
    begun.resolve();
    void go.promise.then(() => response.end("192.0.2.2\n"));
  };
  await call("PUT", path, { url });
  start();
  await begun.promise;
  expect((await call("DELETE")).status).toBe(204);
  go.resolve();
  await until("the attempt is over", async () => (await deadBots()) > 0);
  expect((await call("GET")).status).toBe(404);
  expect(await versions()).toBe(0);
});

async function deadBots(): Promise<number> {
  const rows = await api.store
    .selectFrom("dead_bots")
    .select("bot_id")
    .where("held_until", "is", null)
    .execute();
  return rows.length;
}

test("a server that never ends holds up its own customer alone, and ends with its source", async () => {
  let open = 0;
  list = ({ url: asked = "" }, response) => {
    if (!asked.endsWith("?slow")) {
      response.end("192.0.2.1");
      return;
    }
    open++;
    response.on("close", () => open--);
    response.write("192.0.2.9\n");
  };
  await call("PUT", path, { url: `${url}?slow` });
  start();
  await until("the slow one is open", () => open === 1);
  expect(await source()).toMatchObject({ state: "fetching" });
  const other = await api.trial("other");
  const site = await api.call("POST", "/deployment-site/", { token: other, body: {} });
  const body = { name: "www.other.test", deployment_site_id: Number(member(site.body, "id")) };
  await api.call("POST", "/domain/", { token: other, body });
  const of = "/bots/bad/Scraper/source/?domain=www.other.test";
  await api.call("PUT", of, { token: other, body: { url } });
  await until("the other customer is served", async () => {
    const reply = await api.call("GET", of, { token: other });
    return Object(reply.body)["state"] === "good";
  });
  const second = "/bots/bad/Second/source/";
  await call("PUT", second, { url });
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await source(second)).toMatchObject({ state: "waiting" });
  await call("DELETE");
  await until("its server is left", () => open === 0);
  expect(await attempt(second)).toMatchObject({ state: "good" });
});

test("a list that would shut everybody out is refused", async () => {
  list = serve(["10.0.0.0/8", "0.0.0.0/0", "2001::/16", "::/0"]);
  await call("PUT", path, { url });
  start();
  expect(await attempt()).toMatchObject({
    outcome: "refused",
    reason:
      "line 2: a range of a list that is fetched must be /8 or longer, 0.0.0.0/0 is larger; line 4: a range of a list that is fetched must be /16 or longer, ::/0 is larger",
  });
});

test("what another instance took and never ended is due again after half a minute, and nobody else takes it before", async () => {
  list = serve(texts(0, 5));
  await call("PUT", path, { url });
  await customers.transact(async (work) => takeSource(work, "one that was killed"));
  start();
  later(29_000);
  await call("GET");
  expect(asked).toHaveLength(0);
  later(1_000);
  expect(await attempt()).toMatchObject({ outcome: "changed", count: 5 });
});

test("stopping breaks an attempt off, and the list is fetched after the next start", async () => {
  const begun = Promise.withResolvers<void>();
  list = (_request, response) => {
    response.write("192.0.2.1\n");
    begun.resolve();
  };
  await call("PUT", path, { url });
  start();
  await begun.promise;
  await job?.[Symbol.asyncDispose]();
  expect(await source()).toMatchObject({ state: "waiting", failures: 0 });
  list = serve(texts(0, 5));
  later(120_000);
  start();
  expect(await attempt()).toMatchObject({ outcome: "changed" });
});

test("a list that takes too long has failed", async () => {
  list = (_request, response) => void response.write("192.0.2.1\n");
  await call("PUT", path, { url });
  start(200);
  expect(await attempt()).toMatchObject({
    outcome: "failed",
    reason: "the list took too long to come in",
  });
});

test("sources are listed, and another customer knows nothing of them", async () => {
  await call("PUT", path, { url });
  await call("PUT", "/bots/vip/Uptime/source/", { url, interval_s: 900 });
  expect((await call("GET", "/bots/sources/")).body).toMatchObject([
    { list: "bad", bot: "Scraper", domain: name },
    { list: "vip", bot: "Uptime", interval_s: 900 },
  ]);
  const other = await api.trial("other");
  expect((await api.call("GET", "/bots/sources/", { token: other })).body).toEqual([]);
  for (const method of ["GET", "DELETE"])
    expect((await api.call(method, `${path}?domain=${name}`, { token: other })).status).toBe(404);
});

test("bad terms are refused by name, and private addresses where they are not allowed", async () => {
  const refusal = async (body: object): Promise<unknown> => (await call("PUT", path, body)).body;
  expect(await refusal({ url: "ftp://x.example/" })).toMatchObject({
    errors: [{ path: "/url", message: "must be a URL with http:// or https://" }],
  });
  expect(await refusal({ url, interval_s: 60 })).toMatchObject({
    errors: [{ path: "/interval_s" }],
  });
  expect((await call("POST", `${path}fetch/`)).status).toBe(404);
  await using strict = await openApi();
  const own = await strict.trial("strict");
  const site = await strict.call("POST", "/deployment-site/", { token: own, body: {} });
  const body = { name, deployment_site_id: Number(member(site.body, "id")) };
  await strict.call("POST", "/domain/", { token: own, body });
  const refused = await strict.call("PUT", `${path}?domain=${name}`, { token: own, body: { url } });
  expect(refused.body).toMatchObject({
    errors: [{ path: "/url", message: "must not lead to a private address" }],
  });
});
