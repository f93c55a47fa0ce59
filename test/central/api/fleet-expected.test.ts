// `require: "all"` while agents are between two channels: the activation waits for their votes, and is not refused for want of agents.

import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { stepFleetActivations } from "../../../src/central/store/content/fleet-activations.ts";
import { sealer } from "../../support/agent-side.ts";
import { member, openApi } from "./api-harness.ts";
import { receipt } from "./receipts.ts";
import { ViewsetCustomer } from "./viewset-customer.ts";

test("an instance between two channels votes when it is back", async () => {
  await using api = await openApi();
  const customer = await ViewsetCustomer.enrol(api, 1);
  const { siteId, token, name } = customer;
  await customer.postDevlove("one", customer.document({}));
  const [version] = await customer.versions();
  // It was seen: it has told a receipt.
  const applied = async (seq: number, detail: Readonly<Record<string, unknown>> = {}) =>
    receipt(api, { siteId, seq, phase: "applied", detail, instanceId: "instance-1" });
  await applied((await api.journal(siteId)).length);
  const activate = async () =>
    api.call("PUT", `/active-viewset/${name}/${member(version, "id")}/`, {
      token,
      body: { require: "all" },
    });
  const step = async () => {
    const { store, clock } = api;
    const customers = new CustomerStore({ store, sealer, now: () => clock, randomBytes });
    const inTouch = { isLive: (id: number) => api.live.has(id), sinceMs: 0 };
    const stepped = await customers.transact(async (work) => stepFleetActivations(work, inTouch));
    return stepped.map(({ outcome }) => outcome);
  };

  api.live.clear();
  expect((await activate()).status).toBe(409);
  api.expected.add(siteId);
  expect((await activate()).status).toBe(200);
  expect(await step()).toEqual(["waiting"]);
  api.live.add(siteId);
  const entries = await api.journal(siteId);
  const last = entries.at(-1);
  expect(last?.kind).toBe("viewset.prepare");
  await applied(entries.length, {
    prepared: true,
    activation_id: Number(member(last?.body, "activation_id")),
  });
  expect(await step()).toEqual(["activated"]);
});
