// Central stops while a customer waits for agents: the customer is answered with what is known, not cut off.

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
