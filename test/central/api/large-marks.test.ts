// Marks and removals of thousands of addresses: in steps between which others are served, in force as one, weighed and bounded by what they hold.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  changedSetDigest,
  elementKey,
  emptySetDigest,
} from "../../../src/core/addresses/set-digest.ts";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";

const name = "www.large.test";
let api: Api;
let [token, other] = ["", ""];
let siteId: number;
beforeEach(async () => {
  api = await openApi({ marksBurst: 8_000, marksPerSecond: 10, botElements: 30_000 });
  [token, other] = [await api.trial("large"), await api.trial("other")];
  siteId = Number(
    member((await api.call("POST", "/deployment-site/", { token, body: {} })).body, "id"),
  );
  await api.call("POST", "/domain/", { token, body: { name, deployment_site_id: siteId } });
});
afterEach(async () => api[Symbol.asyncDispose]());

async function mark(range: string, bot = "Crawler"): Promise<Reply> {
  const body = { attach_to_bot: bot, attach_to_domain: name, is_custom_ip_range: true };
  return api.call("POST", `/mark-as-bad-bot/${range}/`, { token, body });
}
async function remove(range: string, bot = "Crawler"): Promise<Reply> {
  const body = { remove_from_bot: bot, remove_from_domain: name, is_custom_ip_range: true };
  return api.call("POST", `/remove-ip-from-bad-bot-list/${range}/`, { token, body });
}
function held(reply: Reply): readonly string[] {
  return Object(reply.body)["ip_addresses"] ?? [];
}
async function listed(): Promise<readonly { name: string; ip_addresses: readonly string[] }[]> {
  return Object((await api.call("GET", "/list-bad-bots/", { token })).body);
}
const count = async (): Promise<number> => (await listed())[0]?.ip_addresses.length ?? 0;
const addresses = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from }, (_, n) => `10.0.${(from + n) >> 8}.${(from + n) & 255}`);
async function lastTold(): Promise<Record<string, unknown>> {
  const entries = await api.journal(siteId);
  return Object(entries.findLast(({ kind }) => kind === "bots.changed")?.body);
}

/** What others are answered, one after the other, until it is done. */
async function served<T>(
  work: Promise<T>,
  ask: () => Promise<unknown>,
): Promise<readonly unknown[]> {
  const answers: unknown[] = [];
  const state = { isDone: false };
  const done = work.finally(() => (state.isDone = true));
  while (!state.isDone) answers.push(await ask());
  await done;
  return answers;
}

describe("while a large change is made", () => {
  test("others are served all along, and readers see all of it or nothing", async () => {
    const others = async () => (await api.call("GET", "/customer/", { token: other })).status;
    const statuses = await served(mark("10.0.0.0_19999"), others);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(statuses.length).toBeGreaterThan(8);
    const removing = remove("10.0.0.0_9999");
    const seen = new Set(await served(removing, count));
    expect([...seen].filter((one) => one !== 20_000 && one !== 10_000)).toEqual([]);
    expect(await count()).toBe(10_000);
  });

  test("what others do to the bot meanwhile is not lost", async () => {
    const large = mark("10.0.0.0_4999");
    const small = mark("192.0.2.1_0");
    expect([(await large).status, (await small).status]).toEqual([200, 200]);
    expect(await count()).toBe(5_001);
    const [one, two] = await Promise.all([remove("10.0.0.0_2999"), mark("10.0.100.0_2499")]);
    expect([one.status, two.status]).toEqual([200, 200]);
    expect(await count()).toBe(4_501);
  });
});

test("a large change is one version, told by what it changes, with the set's count and digest", async () => {
  expect(held(await mark("10.0.0.0_2999"))).toEqual(addresses(0, 3_000));
  expect(held(await mark("10.0.8.0_4999"))).toEqual(addresses(0, 7_048));
  expect(held(await remove("10.0.0.0_2499"))).toEqual(addresses(2_500, 7_048));
  const elements = addresses(2_500, 7_048).map((range) => ({ bot: "Crawler", range }));
  const told = await lastTold();
  expect(told).toMatchObject({
    from_version: 2,
    to_version: 3,
    added: [],
    count: elements.length,
    digest: changedSetDigest(emptySetDigest, elements, []),
  });
  const removed = addresses(0, 2_500).map((range) => ({ bot: "Crawler", range }));
  expect(new Set(Object(told["removed"]).map(elementKey))).toEqual(
    new Set(removed.map(elementKey)),
  );
  // What is attached already is no version.
  expect(held(await mark("10.0.12.0_2999")).length).toBe(4_548);
  expect((await lastTold())["to_version"]).toBe(3);
});

test("refused ones change nothing", async () => {
  expect((await remove("10.0.0.0_2999", "Nobody")).status).toBe(404);
  await mark("10.0.0.0_2999");
  expect((await remove("10.9.0.0_2999")).status).toBe(404);
  expect((await mark("10.9.0.0_7999")).status).toBe(409);
  expect(await count()).toBe(3_000);
});

test("ten elements weigh as one mark", async () => {
  expect((await mark("10.0.0.0_29999")).status).toBe(200);
  expect((await remove("10.0.0.0_29999")).status).toBe(200);
  const refused = await mark("10.0.0.0_29999");
  expect(refused).toMatchObject({ status: 429, body: { title: expect.any(String) } });
  expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(100);
  expect((await mark("10.0.0.0_0")).status).toBe(200);
});

test("a customer holds so many in all bots and domains, what an operator imported included", async () => {
  expect((await mark("10.0.0.0_29998")).status).toBe(200);
  expect((await mark("10.8.0.0_0", "Two")).status).toBe(200);
  for (const range of ["10.8.0.1_0", "10.8.0.1_2999"]) {
    const refused = await mark(range, "Two");
    expect(refused.status).toBe(409);
    expect(member(refused.body, "detail")).toContain("30000");
  }
  expect((await mark("10.8.0.0_0", "Two")).status).toBe(200);
  expect((await remove("10.0.0.0_0")).status).toBe(200);
  expect((await mark("10.8.0.1_0", "Two")).status).toBe(200);
  const { id: bot_set_id } = await api.store
    .selectFrom("bot_sets")
    .select("id")
    .executeTakeFirstOrThrow();
  await api.store
    .insertInto("bots")
    .values({ bot_set_id, name: "imported", count: 70_000 })
    .execute();
  await api.store
    .updateTable("bot_sets")
    .set((to) => ({ count: to("count", "+", 70_000) }))
    .execute();
  expect((await remove("10.0.0.1_0")).status).toBe(200);
  expect((await mark("10.8.0.2_0", "Two")).status).toBe(409);
});
