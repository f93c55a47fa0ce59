// `/analytics/{domain}/`: what is asked of the numbers, what is refused with which words, and who may see addresses.

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AccelError } from "../../../src/core/faults.ts";
import { openApi, type Api } from "./api-harness.ts";

const name = "numbers.example.com";
let api: Api;
let token: string;
let stranger: string;
let nowS: number;

beforeAll(async () => {
  api = await openApi();
  token = await api.trial("counter");
  stranger = await api.trial("stranger");
  const { body } = await api.call("POST", "/deployment-site/", { token, body: { tags: "eu" } });
  const site = Number(Object(body).id);
  await api.call("POST", "/domain/", { token, body: { name, deployment_site_id: site } });
  const sub_domain = { name: `img.${name}` };
  await api.call("PUT", `/domain/${name}/`, { token, body: { sub_domain } });
  nowS = api.clock.getTime() / 1e3;
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(() => {
  api.analytics.failure = undefined;
  api.analytics.answer = undefined;
});

const path = `/analytics/${name}/`;

test("without parameters it is the last day, of the customer's sites", async () => {
  const reply = await api.call("GET", path, { token });
  expect(reply).toMatchObject({ status: 200, body: { domain: name, step: "hour" } });
  const [site] = api.analytics.queries.at(-1)?.siteIds ?? [];
  expect(api.analytics.queries.at(-1)).toEqual({
    siteIds: [site],
    linkedSiteIds: [site],
    domain: name,
    since: nowS - 86_400,
    until: nowS,
    step: "hour",
    by: undefined,
    nowMs: nowS * 1e3,
  });
});

test.each([
  ["since=2031-05-06T06:00:00Z", { step: "minute" }],
  ["since=1&until=1000000", { since: 1, until: 1_000_000, step: "hour" }],
  ["since=1&until=100000000", { step: "day" }],
  ["step=minute&by=status", { step: "minute", by: "status" }],
  ["since=2031-05-06T06:00:00Z&by=top_paths", { step: "hour", by: "top_paths" }],
  ["step=day&by=top_addresses", { step: "day", by: "top_addresses" }],
])("%s", async (query, asked) => {
  expect((await api.call("GET", `${path}?${query}`, { token })).status).toBe(200);
  expect(api.analytics.queries.at(-1)).toMatchObject(asked);
});

test.each([
  ["since=yesterday", "?since", "must be seconds since the epoch or an ISO 8601 time"],
  ["until=x", "?until", "must be seconds since the epoch or an ISO 8601 time"],
  ["since=20&until=10", "?since", "must not be later than until"],
  ["step=week", "?step", "must be one of minute, hour, day"],
  [
    "by=colour",
    "?by",
    "must be one of status, cache, verdict, reason, bot, top_paths, top_status_paths, top_bots, top_addresses",
  ],
  ["step=minute&since=0", "?step", expect.stringMatching(/^gives \d+ spans, and one answer has/)],
  [
    "step=minute&by=top_bots",
    "?step",
    "must be hour or day for top_bots, which is not kept by the minute",
  ],
])("%s is refused", async (query, at, message) => {
  const reply = await api.call("GET", `${path}?${query}`, { token });
  expect(reply).toMatchObject({ status: 400, body: { errors: [{ path: at, message }] } });
});

test("what is no longer kept is refused with the time since when it is", async () => {
  api.analytics.answer = () => ({ kind: "not_kept", since: 1_900_000_000 });
  const said = async (query: string): Promise<unknown> =>
    (await api.call("GET", `${path}?${query}`, { token })).body;
  const since = "must be 2030-03-17T17:46:40.000Z or later, since when";
  expect(await said("step=minute")).toMatchObject({
    errors: [{ message: `${since} every minute is kept; a larger step reaches further back` }],
  });
  expect(await said("step=hour&by=top_bots")).toMatchObject({
    errors: [
      { message: `${since} top_bots by the hour is kept; a larger step reaches further back` },
    ],
  });
});

test("of another customer's domain, or of none, there is nothing; of a sub-domain it says where", async () => {
  const status = async (who: string, domain: string): Promise<number> =>
    (await api.call("GET", `/analytics/${domain}/`, { token: who })).status;
  const before = api.analytics.queries.length;
  expect(await status(stranger, name)).toBe(404);
  expect(await status(token, "nowhere.example.com")).toBe(404);
  const reply = await api.call("GET", `/analytics/img.${name}/`, { token });
  expect(reply).toMatchObject({
    status: 400,
    body: { errors: [{ message: `the requests of a sub-domain count under ${name}` }] },
  });
  expect(api.analytics.queries).toHaveLength(before);
});

test("a user who may not read logs sees numbers, and no addresses", async () => {
  const denied = await api.trial("denied");
  const { body } = await api.call("POST", "/deployment-site/", {
    token: denied,
    body: { tags: "eu" },
  });
  const deployment_site_id = Number(Object(body).id);
  const other = "denied.example.com";
  await api.call("POST", "/domain/", { token: denied, body: { name: other, deployment_site_id } });
  await api.store
    .updateTable("users")
    .set({ may_read_logs: 0 })
    .where("username", "=", "denied")
    .execute();
  const status = async (query: string): Promise<number> =>
    (await api.call("GET", `/analytics/${other}/${query}`, { token: denied })).status;
  expect(await status("")).toBe(200);
  expect(await status("?by=top_paths")).toBe(200);
  expect(await status("?by=top_addresses")).toBe(403);
});

test("while numbers cannot be read, it says so and when to come again", async () => {
  api.analytics.failure = new AccelError("LOGS_UNAVAILABLE", "the thread ended");
  const reply = await api.call("GET", path, { token });
  expect([reply.status, reply.headers["retry-after"]]).toEqual([503, "2"]);
});
