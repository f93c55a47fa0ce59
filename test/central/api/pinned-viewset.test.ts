// What is told of a version that some deployments do not serve: pinned to another one, or failed.

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { member, openApi, type Api } from "./api-harness.ts";
import { receipt } from "./receipts.ts";
import { ViewsetCustomer } from "./viewset-customer.ts";

let api: Api;
let customer: ViewsetCustomer;
let token: string;
let name: string;
let siteId: number;
let no = 0;
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  customer = await ViewsetCustomer.enrol(api, ++no);
  ({ token, name, siteId } = customer);
});

test("is pinned where an operator chose another version, which is told; failed weighs more", async () => {
  const second = await api.call("POST", "/deployment-site/", { token, body: {} });
  const otherId = Number(member(second.body, "id"));
  const linked = { deployment_site_id: otherId };
  await api.call("PUT", `/domain/${name}/`, { token, body: linked });
  await customer.postDevlove("one", customer.document({}));
  await customer.activate("one");
  const seq = (await api.journal(siteId)).length;
  const other = (await api.journal(otherId)).length;
  const serving = { manifest: "0".repeat(64), viewset_id: 3, viewset_name: "before" };
  const pinned = { reason: "an operator pinned it", pinned: true, serving, correction: 1 };
  await receipt(api, { siteId, seq, phase: "applied" });
  await receipt(api, { siteId, seq, phase: "refused", detail: pinned });
  await receipt(api, { siteId: otherId, seq: other, phase: "applied" });
  expect((await customer.versions())[0]).toMatchObject({
    is_active: true,
    activation: "pinned",
    deployments: [
      {
        deployment_site_id: siteId,
        state: "pinned",
        error: "an operator pinned it",
        serving: { viewset_id: 3, viewset_name: "before" },
      },
      { deployment_site_id: otherId, state: "applied" },
    ],
  });
  const failed = { reason: "index.html: EIO", serving: "none", correction: 1 };
  await receipt(api, { siteId: otherId, seq: other, phase: "failed", detail: failed });
  const [version] = await customer.versions();
  expect(version).toMatchObject({ activation: "failed" });
  expect(Object(version?.["deployments"])[1]).toEqual({
    deployment_site_id: otherId,
    state: "failed",
    error: "index.html: EIO",
    last_seen: expect.any(String),
  });
});
