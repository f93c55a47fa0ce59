// Central stops while a customer waits, for agents or for the store: the customer is answered with what is known, or to come again, and not cut off. So is who waits for longer than a
// connection may stand still.

import { expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { member, openApi } from "./api-harness.ts";

test("a clear that waits for agents is answered as pending", async () => {
  await using api = await openApi();
  const token = await api.trial("waiting");
  const site = await api.call("POST", "/deployment-site/", { token, body: { tags: "" } });
  const siteId = Number(member(site.body, "id"));
  const body = { name: "www.example.com", deployment_site_id: siteId };
  await api.call("POST", "/domain/", { token, body });
  api.live.add(siteId);
  const woken = api.woken.length;
  const cleared = api.call("POST", "/clear-accelerator-cache/www.example.com/?wait=30", {
    token,
    body: { url_path_patterns: ["path:index"] },
  });
  await until("the clear is journaled", () => api.woken.length > woken);
  const beganMs = performance.now();
  api.stopping.abort("test");
  expect(await cleared).toMatchObject({
    status: 200,
    body: { deployments: [{ deployment_site_id: siteId, state: "pending" }] },
  });
  expect(performance.now() - beganMs).toBeLessThan(10_000); // It was to wait for 30 s.
});

const again = {
  status: 503,
  headers: { "retry-after": "5", "content-type": "application/problem+json" },
};

/** An order that has come to the store, which does not answer before `open` is called. */
async function waitingOrder(api: Awaited<ReturnType<typeof openApi>>, method: string) {
  const token = await api.trial(`held-${method.toLowerCase()}`);
  const come = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  api.gate = async () => {
    come.resolve();
    await held.promise;
  };
  const body = method === "POST" ? { body: { tags: "" } } : {};
  const answer = api.call(method, "/deployment-site/", { token, ...body });
  await come.promise;
  return { token, answer, open: () => held.resolve() };
}

test("an order and a reading that wait for the store when time is up are told to come again", async () => {
  await using api = await openApi();
  const order = await waitingOrder(api, "POST");
  api.late.abort();
  const told = await order.answer;
  expect(told).toMatchObject(again);
  expect(told.headers["connection"]).toBe("close");
  expect(told.body).toMatchObject({
    status: 503,
    detail: "central stops or begins anew; try again, with the same Idempotency-Key",
  });
  order.open();
  api.gate = undefined;
  const sites = async (): Promise<unknown> =>
    (await api.call("GET", "/deployment-site/", { token: order.token })).body;
  // What was under way may be in force all the same. Whoever comes after the time is told at once.
  expect(JSON.stringify(await sites())).toContain("central stops or begins anew; try again");
});

test("a request that stands still for as long as a connection may is answered, and its work's end later changes nothing", async () => {
  await using api = await openApi();
  api.server.timeout = 50;
  const order = await waitingOrder(api, "POST");
  const told = await order.answer;
  expect(told).toMatchObject(again);
  expect(told.body).toMatchObject({
    detail: "central had no answer in time; try again, with the same Idempotency-Key",
  });
  api.server.timeout = 0;
  order.open();
  api.gate = undefined;
  const reading = await waitingOrder(api, "GET");
  reading.open();
  expect((await reading.answer).status).toBe(200);
});
