// `/requests/{domain}/`: what is asked of the logs, what is answered and refused, and who is told what.

import { afterAll, beforeAll, expect, test } from "vitest";
import { AccelError } from "../../../src/core/faults.ts";
import { at } from "../../support/api-contract.ts";
import { makeWorld, type World } from "../../support/api-world.ts";
import { openApi, type Api, type Reply } from "./api-harness.ts";

let api: Api;
let world: World;
let domain = "";

beforeAll(async () => {
  api = await openApi();
  world = await makeWorld(api, "requests");
  domain = world.slots["domain"] ?? "";
});
afterAll(async () => api[Symbol.asyncDispose]());

const get = async (path: string, token = world.token): Promise<Reply> =>
  api.call("GET", `/requests/${path}`, { token });

test("a question without conditions is for the newest of a domain, over all sites of the customer", async () => {
  const found = api.logs.found;
  const next = { name: "after", cursor: "5.2026-11-18.7.2026-11-18.9" } as const;
  api.logs.found = { ...found, scannedUntil: 1_794_913_600.5, next };
  const reply = await get(`${domain}/?limit=7&path=%2Fa%26b`);
  expect([reply.status, at(reply.body, "requests", "0", "status")]).toEqual([200, 403]);
  expect(at(reply.body, "scanned_until")).toBe(1_794_913_600.5);
  expect(at(reply.body, "follow")).toBe(found.follow);
  const link = `/presentation-api/v1/requests/${domain}/?limit=7&path=%2Fa%26b&after=${next.cursor}`;
  expect(reply.headers["link"]).toBe(`<${link}>; rel="next"`);
  expect(api.logs.searches.at(-1)).toEqual({
    siteIds: [Number(world.slots["deployment_site_id"])],
    domain,
    filter: { path: "/a&b", status: undefined, address: undefined },
    limit: 7,
    since: undefined,
    until: undefined,
    after: undefined,
    follow: undefined,
    only: undefined,
    nowMs: api.clock.getTime(),
  });
  const follow = { name: "follow", cursor: "2026-11-18.9" } as const;
  api.logs.found = { ...found, next: follow };
  const followed = await get(`${domain}/?follow=2026-11-18.8`);
  expect(followed.headers["link"]).toContain("/?follow=2026-11-18.9>");
  api.logs.found = found;
  expect((await get(`${domain}/`)).headers["link"]).toBeUndefined();
  expect(api.logs.searches.at(-1)?.limit).toBe(100);
});

test("each condition is asked for as it was given", async () => {
  const conditions =
    "status=4xx&method=GET&cache=stale&verdict=block&reason=bad-set&bot=A%20B&address=192.0.2.0/24&since=5&until=2026-11-18T00:00:00Z";
  expect((await get(`${domain}/?${conditions}`)).status).toBe(200);
  expect(api.logs.searches.at(-1)).toMatchObject({
    filter: {
      status: { least: 400, most: 499 },
      method: "GET",
      cache: "stale",
      verdict: "block",
      reason: "bad-set",
      bot: "A B",
      address: { family: 4, first: 0xc0000200n, last: 0xc00002ffn },
    },
    since: 5,
    until: 1_794_960_000,
  });
  for (const [name, value, asked] of [
    ["after", "1.2026-11-18.1.2026-11-18.9", "after"],
    ["follow", "2026-11-18.9", "follow"],
    ["id", "1.2026-11-18.1", "only"],
  ] as const) {
    await get(`${domain}/?${name}=${value}`);
    expect(api.logs.searches.at(-1)?.[asked]).toBe(value);
  }
});

test("what cannot be asked is refused by name, and nothing is searched", async () => {
  const before = api.logs.searches.length;
  const fault = async (query: string): Promise<unknown> => {
    const reply = await get(`${domain}/?${query}`);
    return [reply.status, at(reply.body, "errors", "0", "path")];
  };
  for (const query of [
    "limit=0",
    "limit=501",
    "limit=1e2",
    "since=yesterday",
    "until=-1",
    "status=4",
    "status=4x",
    "cache=HIT",
    "verdict=allowed",
    "reason=none",
    "bot=",
    "path=",
    "method=",
    "address=192.0.2.7/24",
    "address=localhost",
    "address=",
  ])
    expect(await fault(query)).toEqual([400, `?${query.split("=")[0]}`]);
  expect(await fault(`path=${"a".repeat(8_193)}`)).toEqual([400, "?path"]);
  expect(await fault("after=1.2026-11-18.1.2026-11-18.9&follow=x")).toEqual([400, "?follow"]);
  expect(api.logs.searches.length).toBe(before);
  api.logs.failure = new AccelError("NOT_FOUND", "no such cursor");
  for (const name of ["after", "follow", "id"])
    expect(await fault(`${name}=none`)).toEqual([400, `?${name}`]);
  const { body } = await get(`${domain}/?id=6B0C1F0E9D2A4C57`);
  expect(JSON.stringify(body)).toContain("accel-agent why");
  api.logs.failure = undefined;
});

test("one request is read with why; one that is not there, or another's, is a 404", async () => {
  const id = world.slots["request_id"] ?? "";
  const reply = await get(`${domain}/${id}/`);
  expect([reply.status, at(reply.body, "request_id")]).toEqual([200, id]);
  expect(at(reply.body, "why")).toMatch(/^blocked with 403: /);
  expect((await get(`${domain}/${id}0/`)).status).toBe(404);
  const other = await makeWorld(api, "others");
  expect((await get(`${other.slots["domain"]}/${id}/`)).status).toBe(404);
  expect((await get(`${domain}/${id}/`, other.token)).status).toBe(404);
});

test("who may not read logs, another customer, and a token for another domain are told nothing", async () => {
  const before = api.logs.searches.length;
  const second = "second-of-requests.example.com";
  await api.call("POST", "/domain/", { token: world.token, body: { name: second } });
  const issue = async (domains: readonly string[]): Promise<string> => {
    const body = { name: "limited", role: "read", domains };
    return String(
      at((await api.call("POST", "/tokens/", { token: world.token, body })).body, "token"),
    );
  };
  const limited = await issue([second]);
  const [foreign, missing] = [
    await get(`${domain}/`, limited),
    await get("x.example.com/", limited),
  ];
  expect([foreign.status, missing.status]).toEqual([404, 404]);
  const neutral = (reply: Reply, name: string) => JSON.stringify(reply.body).replaceAll(name, "?");
  expect(neutral(foreign, domain)).toBe(neutral(missing, "x.example.com"));
  expect((await get(`${domain}/${world.slots["request_id"]}/`, limited)).status).toBe(404);
  expect(api.logs.searches.length).toBe(before);
  expect((await get(`${second}/`, limited)).status).toBe(200);
  expect(api.logs.searches.at(-1)?.domain).toBe(second);
  await api.call("PUT", `/domain/${domain}/`, {
    token: world.token,
    body: { sub_domain: { name: `img.${domain}` } },
  });
  expect((await get(`img.${domain}/`)).status).toBe(400);
  await api.store.updateTable("users").set({ may_read_logs: 0 }).execute();
  expect((await get(`${domain}/`)).status).toBe(403);
  expect((await get(`${domain}/${world.slots["request_id"]}/`)).status).toBe(403);
  await api.store.updateTable("users").set({ may_read_logs: 1 }).execute();
});

test("while logs cannot be read, it says when to come again", async () => {
  api.logs.failure = new AccelError("LOGS_UNAVAILABLE", "busy");
  for (const path of [`${domain}/`, `${domain}/${world.slots["request_id"]}/`]) {
    const reply = await get(path);
    expect([reply.status, reply.headers["retry-after"]]).toEqual([503, "2"]);
  }
  api.logs.failure = undefined;
});
