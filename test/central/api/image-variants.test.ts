// `/analytics/{domain}/images/`: sums over hosts and days, of the customer's own domains alone.

import { afterAll, beforeAll, expect, test } from "vitest";
import { saveReport } from "../../../src/central/store/journal/instances.ts";
import { reportOf } from "../../support/fake-agent.ts";
import { openApi, type Api } from "./api-harness.ts";

const name = "pictures.example.com";
const path = `/analytics/${name}/images/`;
let api: Api;
let token: string;
let siteId: number;

beforeAll(async () => {
  api = await openApi();
  token = await api.trial("photographer");
  const { body } = await api.call("POST", "/deployment-site/", { token, body: { tags: "eu" } });
  siteId = Number(Object(body).id);
  await api.call("POST", "/domain/", { token, body: { name, deployment_site_id: siteId } });
  const sub_domain = { name: `img.${name}` };
  await api.call("PUT", `/domain/${name}/`, { token, body: { sub_domain } });
});
afterAll(async () => api[Symbol.asyncDispose]());

const dayOf = (daysAgo: number): string =>
  new Date(api.clock.getTime() - daysAgo * 86_400_000).toISOString().slice(0, 10);

async function report(host: string, daysAgo: number, made: number, blocked: number): Promise<void> {
  const at = new Date(api.clock.getTime() - daysAgo * 86_400_000).toISOString();
  const backend = { requests: 0, errors: 0, latency_buckets: {}, reachable: true };
  const variants = { made, blocked };
  const domains = [{ domain: name, backend, unreviewed_bots: [], variants }];
  await saveReport(api.store, siteId, { ...reportOf(host, 0), domains }, at);
}

test("nothing was made yet", async () => {
  const none = { day: dayOf(0), made: 0, held_back: 0 };
  const reply = await api.call("GET", path, { token });
  expect(reply).toMatchObject({ status: 200, body: { domain: name, today: none, days: [] } });
});

test("two hosts, two days, newest first", async () => {
  await report("host-one", 1, 7, 0);
  await report("host-two", 1, 3, 2);
  await report("host-one", 0, 9, 1);
  await report("host-one", 0, 9, 1);
  const today = { day: dayOf(0), made: 2, held_back: 1 };
  const days = [today, { day: dayOf(1), made: 10, held_back: 2 }];
  expect(await api.call("GET", path, { token })).toMatchObject({
    status: 200,
    body: { domain: name, today, days },
  });
});

test("a sub-domain counts under its main domain; what is another customer's is not there", async () => {
  expect(await api.call("GET", `/analytics/img.${name}/images/`, { token })).toMatchObject({
    status: 400,
    body: { errors: [{ message: `the images of a sub-domain count under ${name}` }] },
  });
  const stranger = await api.trial("stranger");
  expect((await api.call("GET", path, { token: stranger })).status).toBe(404);
});
