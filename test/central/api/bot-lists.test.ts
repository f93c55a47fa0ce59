// What a bot holds, at its real size: replaced as a whole by a stream, changed in bulk, read by the page; each change is one version, and nothing is lost by accident.

import { afterEach, beforeEach, expect, test } from "vitest";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../../src/core/addresses/set-digest.ts";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";

const name = "www.lists.test";
const path = "/bots/bad/Scraper/addresses/";
let api: Api;
let [token, other] = ["", ""];
let siteId: number;
beforeEach(async () => {
  api = await openApi({ marksBurst: 20_000, marksPerSecond: 10, botElements: 60_000 });
  [token, other] = [await api.trial("lists"), await api.trial("other")];
  siteId = Number(
    member((await api.call("POST", "/deployment-site/", { token, body: {} })).body, "id"),
  );
  await api.call("POST", "/domain/", { token, body: { name, deployment_site_id: siteId } });
});
afterEach(async () => api[Symbol.asyncDispose]());

type More = { readonly headers?: Record<string, string>; readonly to?: string };

async function put(
  raw: string,
  query = "",
  { headers = {}, to = path }: More = {},
): Promise<Reply> {
  return api.call("PUT", `${to}?domain=${name}${query}`, {
    token,
    raw,
    headers: { "content-type": "text/plain", ...headers },
  });
}
async function edit(body: object, headers: Record<string, string> = {}): Promise<Reply> {
  return api.call("POST", `${path}?domain=${name}`, { token, body, headers });
}
async function page(query = ""): Promise<Reply> {
  return api.call("GET", `${path}?domain=${name}${query}`, { token });
}
/** All pages, by the links. */
async function held(): Promise<readonly string[]> {
  const texts: string[] = [];
  for (let query: string | undefined = "&limit=7000"; query !== undefined;) {
    const reply: Reply = await page(query);
    texts.push(...(Object(reply.body)["ip_addresses"] as string[]));
    const link = /\?([^>]*)>; rel="next"/.exec(String(reply.headers["link"]))?.[1];
    const after: string | null = new URLSearchParams(link ?? "").get("after");
    query = after === null ? undefined : `&limit=7000&after=${encodeURIComponent(after)}`;
  }
  return texts;
}
const addresses = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from }, (_, n) => `10.0.${(from + n) >> 8}.${(from + n) & 255}`);
const listOf = (texts: readonly string[]): string => texts.join("\n");
const detailOf = (reply: Reply): string => member(reply.body, "detail");
async function told(): Promise<readonly Record<string, unknown>[]> {
  const entries = await api.journal(siteId);
  return entries.filter(({ kind }) => kind === "bots.changed").map(({ body }) => Object(body));
}
function digestOf(texts: readonly string[]): string {
  const elements: SetElement[] = texts.map((range) => ({ bot: "Scraper", range }));
  return changedSetDigest(emptySetDigest, elements, []);
}

test("a list takes the place of what was there, as one version, and is read by the page", async () => {
  const first = addresses(0, 20_000);
  expect((await put(listOf(first))).body).toMatchObject({
    count: 20_000,
    added: 20_000,
    removed: 0,
  });
  expect((await held()).toSorted()).toEqual(first.toSorted());
  const second = addresses(5, 20_010);
  const reply = await put(listOf(second));
  expect(reply.body).toMatchObject({
    list: "bad",
    bot: "Scraper",
    domain: name,
    version: 2,
    count: 20_005,
    added: 10,
    removed: 5,
    samples: { added: addresses(20_000, 20_010), removed: addresses(0, 5) },
  });
  expect((await held()).toSorted()).toEqual(second.toSorted());
  // The difference is told, not all of it; its end is the digest of what is there.
  const entries = await told();
  expect(entries).toHaveLength(2);
  const ranges = (list: unknown): string[] =>
    (list as SetElement[]).map(({ range }) => range).toSorted();
  expect(ranges(entries[1]?.["added"])).toEqual(addresses(20_000, 20_010).toSorted());
  expect(ranges(entries[1]?.["removed"])).toEqual([...addresses(0, 5)].toSorted());
  expect(entries[1]).toMatchObject({ count: 20_005, digest: digestOf(second) });
  expect((await put(listOf(second))).body).toMatchObject({ version: 2, added: 0, removed: 0 });
  expect(await told()).toHaveLength(2);
  expect(await api.store.selectFrom("dead_bots").select("held_until").execute()).toEqual(
    expect.arrayContaining([{ held_until: null }]),
  );
}, 60_000);

test("every faulty line is named, of text by its line and of JSON by its place, and nothing changes", async () => {
  await put("192.0.2.1\n");
  const text = await put("# ours\n192.0.2.2\n192.0.2.300\n\n192.0.2.0/33 ; x\n");
  expect(text.status).toBe(400);
  expect(detailOf(text)).toContain("line 3");
  expect(Object(text.body)["errors"].map((one: { path: string }) => one.path)).toEqual([
    "line 3",
    "line 5",
  ]);
  const headers = { "content-type": "application/json" };
  const json = await put('["192.0.2.2", "no"]', "", { headers });
  expect(Object(json.body)["errors"][0].path).toBe("/1");
  const broken = await put('["192.0.2.2", ', "", { headers });
  expect([broken.status, detailOf(broken)]).toEqual([400, expect.stringContaining("it ends")]);
  expect(await held()).toEqual(["192.0.2.1"]);
  expect((await put('["192.0.2.2"]', "", { headers })).body).toMatchObject({
    added: 1,
    removed: 1,
  });
  const vip = await put("192.0.0.0/20\n", "", { to: "/bots/vip/Search/addresses/" });
  expect([vip.status, Object(vip.body)["errors"][0].message]).toEqual([
    400,
    expect.stringContaining("/24 or longer"),
  ]);
});

test("a list that is half as long as before is refused unless that is meant; a dry run says so and changes nothing", async () => {
  await put(listOf(addresses(0, 200)));
  const short = listOf(addresses(0, 90));
  const refused = await put(short);
  expect([refused.status, detailOf(refused)]).toEqual([409, expect.stringContaining("90 of 200")]);
  const dry = await put(short, "&dry_run=true");
  expect(dry.body).toMatchObject({
    dry_run: true,
    version: 1,
    count: 90,
    added: 0,
    removed: 110,
    refusal: expect.stringContaining("allow_shrink"),
  });
  expect(await held()).toHaveLength(200);
  expect((await put("", "")).status).toBe(409);
  expect((await put(short, "&allow_shrink=true")).body).toMatchObject({ count: 90 });
  expect((await put("", "&allow_shrink=true")).body).toMatchObject({ count: 0, removed: 90 });
  expect(await held()).toEqual([]);
  expect(await told()).toHaveLength(3);
});

test("If-Match keeps what somebody else wrote meanwhile", async () => {
  const made = await put("192.0.2.1", "", { headers: { "if-none-match": "*" } });
  const etag = String(made.headers["etag"]);
  expect((await page()).headers["etag"]).toBe(etag);
  expect((await put("192.0.2.2", "", { headers: { "if-none-match": "*" } })).status).toBe(412);
  expect((await edit({ add: ["192.0.2.3"] }, { "if-match": etag })).status).toBe(200);
  const late = await put("192.0.2.4", "", { headers: { "if-match": etag } });
  expect([late.status, detailOf(late)]).toEqual([412, expect.stringContaining("read it again")]);
  expect((await edit({ remove: ["192.0.2.1"] }, { "if-match": etag })).status).toBe(412);
  expect(await held()).toEqual(["192.0.2.1", "192.0.2.3"]);
  const none = { "if-match": '"0"' };
  expect(
    (await put("192.0.2.4", "", { headers: none, to: "/bots/bad/New/addresses/" })).status,
  ).toBe(412);
});

test.each([
  ["few", 1_000],
  ["thousands", 9_000],
])(
  "%s are added and removed as one version, and what was so already is counted",
  async (_name, count) => {
    await put(listOf(addresses(0, 10_000)));
    const reply = await edit({
      add: [...addresses(9_990, 9_990 + count)],
      remove: [...addresses(0, 20), "192.0.2.1"],
    });
    expect(reply.body).toMatchObject({
      version: 2,
      count: 10_000 + count - 10 - 20,
      added: count - 10,
      removed: 20,
      absent: 1,
    });
    const wanted = addresses(20, 9_990 + count);
    expect((await held()).toSorted()).toEqual(wanted.toSorted());
    expect((await told()).at(-1)).toMatchObject({ count: wanted.length, digest: digestOf(wanted) });
  },
  60_000,
);

test("what is wrong in a change is named where it stands", async () => {
  const reply = await edit({ add: ["192.0.2.1", "no"], remove: ["192.0.2.1/33", "192.0.2.1"] });
  expect(Object(reply.body)["errors"]).toMatchObject([
    { path: "/add/1" },
    { path: "/remove/0" },
    { path: "/remove", message: expect.stringContaining("192.0.2.1") },
  ]);
  expect((await page()).status).toBe(404);
});

test("a customer holds so many in all, and a list beyond that changes nothing", async () => {
  await put(listOf(addresses(0, 50_000)));
  const to = "/bots/bad/Second/addresses/";
  const full = await put(listOf(addresses(0, 10_001)), "", { to });
  expect([full.status, detailOf(full)]).toEqual([409, expect.stringContaining("60000")]);
  expect((await put(listOf(addresses(0, 10_000)), "", { to })).status).toBe(200);
  expect((await edit({ add: ["192.0.2.1"] })).status).toBe(409);
}, 60_000);

test("one list of a customer is taken in at a time, and another customer's is not his", async () => {
  const [one, two] = await Promise.all([
    put(listOf(addresses(0, 20_000))),
    put(listOf(addresses(0, 10))),
  ]);
  expect(new Set([one.status, two.status])).toEqual(new Set([200, 429]));
  const theirs = await api.call("PUT", `${path}?domain=${name}`, {
    token: other,
    raw: "192.0.2.1",
    headers: { "content-type": "text/plain" },
  });
  expect(theirs.status).toBe(404);
  expect((await put("x", "", { headers: { "content-type": "text/csv" } })).status).toBe(415);
  expect((await put("x", "", { headers: { "content-encoding": "gzip" } })).status).toBe(415);
  expect((await put("192.0.2.1", "&dry_run=yes")).status).toBe(400);
  expect((await api.call("GET", path, { token })).status).toBe(400);
  expect((await page("&limit=0")).status).toBe(400);
}, 60_000);

test("a bot that is longer than any custom range is listed by its count, and marked and removed from all the same", async () => {
  const long = Array.from(
    { length: 65_537 },
    (_, n) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`,
  );
  await using large = await openApi({ botElements: 100_000 });
  const owner = await large.trial("large");
  await large.call("POST", "/domain/", { token: owner, body: { name } });
  const headers = { "content-type": "text/plain" };
  await large.call("PUT", `${path}?domain=${name}`, { token: owner, raw: listOf(long), headers });
  const [bot] = (await large.call("GET", "/list-bad-bots/", { token: owner })).body as readonly {
    ip_addresses: readonly string[];
  }[];
  expect(bot).toMatchObject({ name: "Scraper", ip_address_count: 65_537 });
  expect(bot?.ip_addresses).toHaveLength(1_000);
  const body = { remove_from_bot: "Scraper", remove_from_domain: name };
  const removal = "/remove-ip-from-bad-bot-list/10.0.0.7/?return=summary";
  expect((await large.call("POST", removal, { token: owner, body })).body).toMatchObject({
    ip_address_count: 65_536,
  });
}, 60_000);

test("the audit trail says how much changed, and not a million lines", async () => {
  await put(listOf(addresses(0, 300)));
  const [line] = (await api.call("GET", "/audit/?operation=replaceBotAddresses", { token }))
    .body as readonly { detail: { change: object } }[];
  expect(line?.detail.change).toMatchObject({ domain: name, count: 300, added: 300, removed: 0 });
});

test("a list that is being written when central stops is told to come again, and changes nothing", async () => {
  expect((await put(listOf(addresses(0, 10)))).status).toBe(200);
  api.stopping.abort("test");
  const reply = await put(listOf(addresses(10, 20)));
  expect([reply.status, reply.headers["retry-after"], detailOf(reply)]).toEqual([
    503,
    "5",
    "central stops or begins anew; try again, with the same Idempotency-Key",
  ]);
  expect((await page()).body).toMatchObject({ ip_addresses: addresses(0, 10) });
});
