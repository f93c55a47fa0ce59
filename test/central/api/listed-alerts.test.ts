// `GET /alerts/`: which alerts are listed, in which order, since when, and for whom.

import { afterAll, beforeAll, expect, test } from "vitest";
import {
  slowBackendType as slow,
  staleListType,
  unreachableBackendType as unreachable,
} from "../../../src/wire/customer/notifications.ts";
import { at } from "../../support/api-contract.ts";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";

let api: Api;
let token: string;
let customerId: number;
let siteId: number;
const [shop, blog] = ["shop.example.com", "blog.example.com"];
const ids = new Map<string, number>();
const dayMs = 86_400_000;

beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 1e6, trialsTotal: 1e6 });
  const trial = await api.call("POST", "/trial/", { body: { username: "ada" } });
  token = member(trial.body, "token");
  customerId = Number(member(trial.body, "customer_id"));
  const site = await api.call("POST", "/deployment-site/", { token, body: {} });
  siteId = Number(member(site.body, "id"));
  for (const name of [shop, blog]) {
    const body = { name, deployment_site_id: siteId };
    const made = await api.call("POST", "/domain/", { token, body });
    ids.set(name, Number(member(made.body, "id")));
  }
});
afterAll(async () => api[Symbol.asyncDispose]());

const ago = (days: number): string => new Date(api.clock.getTime() - days * dayMs).toISOString();
const list = async (query = "", by = token): Promise<Reply> =>
  api.call("GET", `/alerts/${query}`, { token: by });
const idsOf = ({ body }: Reply): readonly unknown[] =>
  Object.values(Object(body)).map((one) => at(one, "id"));

async function ended(id: number, domain: string, endedDays: number): Promise<void> {
  await api.store
    .insertInto("ended_alerts")
    .values({
      id,
      customer_id: customerId,
      type: slow,
      domain_id: ids.get(domain) ?? 0,
      edge: "",
      deployment_site_id: null,
      when_fired: ago(endedDays + 1),
      when_ended: ago(endedDays),
    })
    .execute();
}

test("alerts that go on are listed, and those that ended since the time; the newest first", async () => {
  expect((await list()).body).toEqual([]);
  await ended(1, shop, 80);
  await ended(2, blog, 8);
  await ended(3, shop, 2);
  await api.store
    .insertInto("alerts")
    .values({
      id: 4,
      customer_id: customerId,
      type: unreachable,
      domain_id: ids.get(blog) ?? 0,
      edge: "edge-1",
      deployment_site_id: siteId,
      when_fired: ago(30),
    })
    .execute();
  expect((await list()).body).toEqual([
    {
      id: 4,
      type: unreachable,
      domain: blog,
      deployment_site_id: siteId,
      text: `edge-1 cannot reach the backend of ${blog}`,
      when_began: ago(30),
      when_ended: null,
    },
    {
      id: 3,
      type: slow,
      domain: shop,
      deployment_site_id: null,
      text: `the backend of ${shop} answers slowly`,
      when_began: ago(3),
      when_ended: ago(2),
    },
  ]);
  expect(idsOf(await list(`?since=${ago(8)}`))).toEqual([4, 3, 2]);
  expect(idsOf(await list(`?since=${(api.clock.getTime() - 90 * dayMs) / 1_000}`))).toEqual([
    4, 3, 2, 1,
  ]);
  for (const since of [ago(90.1), "yesterday"]) {
    const { status, body } = await list(`?since=${since}`);
    expect([status, at(body, "errors", "0", "path")]).toEqual([400, "?since"]);
  }
});

test("a token for some domains, and another customer, learn of no others", async () => {
  const made = await api.call("POST", "/tokens/", {
    token,
    body: { name: "bound", role: "read", domains: [shop] },
  });
  const bound = await list(`?since=${ago(90)}`, member(made.body, "token"));
  expect(idsOf(bound)).toEqual([3, 1]);
  expect(JSON.stringify(bound.body)).not.toMatch(/blog|edge-1/);
  expect((await list(`?since=${ago(90)}`, await api.trial("eve"))).body).toEqual([]);
});

test("at most 200 are listed, and those of a deleted domain are gone", async () => {
  for (let id = 5; id < 300; id++) await ended(id, shop, 1);
  const found = idsOf(await list());
  expect(found).toHaveLength(200);
  expect(found.slice(0, 2)).toEqual([299, 298]);
  await api.call("DELETE", `/domain/${shop}/`, { token });
  expect(idsOf(await list(`?since=${ago(90)}`))).toEqual([4, 2]);
});

test("lists of bots that do not come are named, by bot, kind and host of their URL, and by nothing else of it", async () => {
  const textOf = async (id: number): Promise<unknown> => {
    const { body } = await list(`?since=${ago(90)}`);
    return Object.values(Object(body))
      .filter((one) => at(one, "id") === id)
      .map((one) => at(one, "text"))[0];
  };
  const alert = {
    customer_id: customerId,
    type: staleListType,
    domain_id: ids.get(blog) ?? 0,
    edge: "",
    deployment_site_id: null,
    when_fired: ago(1),
  };
  await api.store
    .insertInto("alerts")
    .values({ id: 5, ...alert })
    .execute();
  const source = async (kind: "bad" | "vip", bot: string, failures: number): Promise<void> =>
    void (await api.store
      .insertInto("bot_sources")
      .values({
        domain_id: alert.domain_id,
        host: blog,
        kind,
        bot,
        url: "https://ada:secret@lists.example:8443/list.txt?key=secret",
        is_published: 0,
        interval_s: 86_400,
        created_by: "ada",
        when_created: ago(4),
        when_next: ago(0),
        failures,
      })
      .execute());
  await source("vip", "Good", 0);
  expect(await textOf(5)).toBe(`a list of bots of ${blog} cannot be fetched from its URL`);
  const named = (list: string): string => `the ${list} for ${blog} from lists.example:8443`;
  await source("bad", "One", 1);
  expect(await textOf(5)).toBe(`${named("bad list of One")} cannot be fetched`);
  await source("vip", "Two", 1);
  const two = `${named("bad list of One")} and ${named("VIP list of Two")} cannot be fetched`;
  expect(await textOf(5)).toBe(two);
  for (const bot of ["Three", "Four", "Five"]) await source("bad", bot, 1);
  expect(await textOf(5)).toBe(
    `${["bad list of One", "VIP list of Two", "bad list of Three"].map(named).join(", ")} and 2 more cannot be fetched`,
  );
  expect((await list("", await api.trial("mallory"))).body).toEqual([]);
  await api.store.deleteFrom("alerts").where("id", "=", 5).execute();
  await api.store
    .insertInto("ended_alerts")
    .values({ id: 5, ...alert, when_ended: ago(0) })
    .execute();
  expect(await textOf(5)).toBe(`a list of bots of ${blog} cannot be fetched from its URL`);
});
