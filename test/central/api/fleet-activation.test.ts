// `require: "all"`: a version is activated on all instances of a domain's deployments or on none; what the journals say, what the API shows, and every way in
// which it is given up.

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createSealer } from "../../../src/base/seal.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import {
  noteFailedTrials,
  takenBackWithinMs,
} from "../../../src/central/store/content/fleet-trials.ts";
import {
  lostAfterMs,
  stepFleetActivations,
  type FleetStepped,
} from "../../../src/central/store/content/fleet-activations.ts";
import { until } from "../../support/until.ts";
import { member, openApi, type Api } from "./api-harness.ts";
import { receipt, seen } from "./receipts.ts";
import { ViewsetCustomer } from "./viewset-customer.ts";

let api: Api;
let customer: ViewsetCustomer;
let otherId: number;
let no = 0;
/** When this central heard of agents first. */
let sinceMs = 0;
/** Instances that are not connected, of sites of which one is. */
const away = new Set<string>();
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());
/** A domain on two deployments, each with a connected instance; version "one" is in force on both, "two" is there. */
beforeEach(async () => {
  sinceMs = 0;
  away.clear();
  api.live.clear();
  customer = await ViewsetCustomer.enrol(api, ++no);
  const { token, name, siteId } = customer;
  const second = await api.call("POST", "/deployment-site/", { token, body: {} });
  otherId = Number(member(second.body, "id"));
  await api.call("PUT", `/domain/${name}/`, { token, body: { deployment_site_id: otherId } });
  await customer.postDevlove("one", customer.document({}));
  await customer.activate("one");
  await customer.postDevlove("two", customer.document({}));
  for (const id of [siteId, otherId]) {
    api.live.add(id);
    await applied(id);
  }
});

const applied = async (siteId: number, instanceId = "instance-1"): Promise<void> =>
  receipt(api, { siteId, seq: (await api.journal(siteId)).length, phase: "applied", instanceId });

async function activate(viewset: string, body: object = { require: "all" }) {
  const version = (await customer.versions()).find(({ name }) => name === viewset);
  const path = `/active-viewset/${customer.name}/${member(version, "id")}/`;
  return api.call("PUT", path, { token: customer.token, body });
}

async function shown(viewset: string): Promise<Record<string, unknown>> {
  return (await customer.versions()).find(({ name }) => name === viewset) ?? {};
}

async function step(): Promise<readonly Omit<FleetStepped, "id" | "domain" | "customerId">[]> {
  const store = new CustomerStore({
    store: api.store,
    sealer: createSealer(Buffer.alloc(32, 7)),
    now: () => api.clock,
    randomBytes,
  });
  const isLive = (id: number, instance: string): boolean =>
    api.live.has(id) && !away.has(`${id} ${instance}`);
  const inTouch = { isLive, sinceMs };
  const stepped = await store.transact(async (work) => stepFleetActivations(work, inTouch));
  return stepped.map(({ viewset, outcome, reason }) => ({
    viewset,
    outcome,
    ...(reason !== undefined && { reason }),
  }));
}

async function vote(
  siteId: number,
  phase: "applied" | "refused",
  detail: Readonly<Record<string, unknown>> = {},
  instanceId = "instance-1",
): Promise<void> {
  const entries = await api.journal(siteId);
  const seq = entries.findLastIndex(({ kind }) => kind === "viewset.prepare") + 1;
  const id = Number(member(entries[seq - 1]?.body, "activation_id"));
  const yes = phase === "applied" ? { prepared: true, activation_id: id } : {};
  await receipt(api, { siteId, seq, phase, detail: { ...yes, ...detail }, instanceId });
}

const later = (ms: number): void => {
  api.clock = new Date(api.clock.getTime() + ms);
};

async function kinds(siteId: number): Promise<readonly string[]> {
  return (await api.journal(siteId)).map(({ kind }) => kind);
}

test("all vote for it: it is decided for all in one transaction, and nothing changes before", async () => {
  const { siteId } = customer;
  const { status, body } = await activate("two");
  expect(status).toBe(200);
  expect(body).toMatchObject({ is_active: false, fleet: { state: "preparing", reason: null } });
  expect(await shown("one")).toMatchObject({ is_active: true, activation: "applied" });
  for (const id of [siteId, otherId])
    expect((await api.journal(id)).at(-1)).toMatchObject({
      kind: "viewset.prepare",
      body: { domain: customer.name, viewset_name: "two", hold_s: 600 },
    });
  expect(await step()).toEqual([{ viewset: "two", outcome: "waiting" }]);
  await vote(siteId, "applied");
  expect(await step()).toEqual([{ viewset: "two", outcome: "waiting" }]);
  expect((await shown("two"))["fleet"]).toMatchObject({
    votes: [
      { deployment_site_id: siteId, instance_id: "instance-1", vote: "yes" },
      { deployment_site_id: otherId, instance_id: "instance-1", vote: "awaited" },
    ],
  });
  await vote(otherId, "applied");
  expect(await step()).toEqual([{ viewset: "two", outcome: "activated" }]);
  for (const id of [siteId, otherId]) expect((await kinds(id)).at(-1)).toBe("viewset.activated");
  expect(await step()).toEqual([]);
  expect(await shown("two")).toMatchObject({
    is_active: true,
    activation: "pending",
    fleet: { state: "activated" },
  });
  await applied(siteId);
  await applied(otherId);
  expect(await shown("two")).toMatchObject({ activation: "applied" });
});

test("one no gives it up everywhere, with its reason", async () => {
  const { siteId } = customer;
  await activate("two");
  await vote(siteId, "applied");
  await vote(otherId, "refused", { reason: "no room for 3 GiB" });
  const reason = `instance instance-1 of deployment site ${otherId} refuses it: no room for 3 GiB`;
  expect(await step()).toEqual([{ viewset: "two", outcome: "aborted", reason }]);
  for (const id of [siteId, otherId]) {
    expect((await kinds(id)).at(-1)).toBe("viewset.withdrawn");
    expect((await kinds(id)).filter((kind) => kind === "viewset.activated")).toHaveLength(1);
  }
  expect(await shown("two")).toMatchObject({
    is_active: false,
    fleet: { state: "aborted", reason },
  });
  expect(await shown("one")).toMatchObject({ is_active: true, activation: "applied" });
  expect(await step()).toEqual([]);
});

test("an agent that does not know the question says no by refusing it", async () => {
  await activate("two");
  const reason = "this agent does not know entries of kind viewset.prepare";
  await vote(otherId, "refused", { reason });
  expect(await step()).toMatchObject([
    { outcome: "aborted", reason: expect.stringContaining(reason) },
  ]);
});

test("one that is lost gives it up, also after it voted; one that is merely away for a moment does not", async () => {
  await activate("two");
  await vote(otherId, "applied");
  api.live.delete(otherId);
  later(lostAfterMs);
  expect(await step()).toMatchObject([{ outcome: "waiting" }]);
  later(1);
  // Central itself may have been away: nobody is lost before it could have been heard.
  sinceMs = api.clock.getTime();
  expect(await step()).toMatchObject([{ outcome: "waiting" }]);
  sinceMs = 0;
  const reason = `instance instance-1 of deployment site ${otherId} was lost before the decision`;
  expect(await step()).toMatchObject([{ outcome: "aborted", reason }]);
});

test("the deadline gives it up", async () => {
  await activate("two", { require: "all", deadline_s: 30 });
  await vote(customer.siteId, "applied");
  later(29_999);
  expect(await step()).toMatchObject([{ outcome: "waiting" }]);
  later(1);
  expect(await step()).toMatchObject([
    { outcome: "aborted", reason: expect.stringContaining(`deployment site ${otherId}`) },
  ]);
});

test("an instance that connects before the decision joins, and is asked again if it took a snapshot instead", async () => {
  const { siteId } = customer;
  api.live.delete(otherId);
  await activate("two");
  await vote(siteId, "applied");
  api.live.add(otherId);
  away.add(`${otherId} instance-1`);
  await seen(api, otherId, "instance-2");
  const asked = (await kinds(otherId)).length;
  expect(await step()).toMatchObject([{ outcome: "waiting" }]);
  expect(await kinds(otherId)).toHaveLength(asked);
  // Its snapshot covers the question, and says nothing of an answer.
  const taken = { siteId: otherId, seq: asked, instanceId: "instance-2" };
  await receipt(api, { ...taken, phase: "applied", detail: { snapshot: true } });
  expect(await step()).toMatchObject([{ outcome: "waiting" }]);
  expect((await kinds(otherId)).slice(asked)).toEqual(["viewset.prepare"]);
  expect(await step()).toMatchObject([{ outcome: "waiting" }]);
  await vote(otherId, "applied", {}, "instance-2");
  expect(await step()).toMatchObject([{ outcome: "activated" }]);
});

test("a deployment that is away is not waited for, and follows by the journal; so does one that is linked meanwhile", async () => {
  const { siteId, token, name } = customer;
  api.live.delete(otherId);
  await activate("two");
  const third = await api.call("POST", "/deployment-site/", { token, body: {} });
  const thirdId = Number(member(third.body, "id"));
  await api.call("PUT", `/domain/${name}/`, { token, body: { deployment_site_id: thirdId } });
  expect(await kinds(thirdId)).toContain("viewset.prepare");
  await vote(siteId, "applied");
  expect(await step()).toMatchObject([{ outcome: "activated" }]);
  for (const id of [otherId, thirdId]) expect((await kinds(id)).at(-1)).toBe("viewset.activated");
});

test("an agent that has no channel and polls is asked as well: its answer is a vote", async () => {
  const { siteId } = customer;
  api.live.delete(otherId);
  await activate("two");
  await vote(siteId, "applied");
  await vote(otherId, "refused", { reason: "no room" });
  const reason = `instance instance-1 of deployment site ${otherId} refuses it: no room`;
  expect(await step()).toEqual([{ viewset: "two", outcome: "aborted", reason }]);
});

test("after a start of central, instances that were in touch before it are members before they are back", async () => {
  const { siteId } = customer;
  api.live.delete(otherId);
  later(10_000);
  sinceMs = api.sinceMs = api.clock.getTime();
  await activate("two");
  await vote(siteId, "applied");
  expect(await step()).toMatchObject([{ outcome: "waiting" }]);
  api.live.add(otherId);
  await vote(otherId, "applied");
  expect(await step()).toMatchObject([{ outcome: "activated" }]);
  api.sinceMs = 0;
});

test("one that was heard since the start of central, and is away, is not waited for", async () => {
  api.live.delete(otherId);
  sinceMs = api.sinceMs = api.clock.getTime() - 10_000;
  await activate("two");
  await vote(customer.siteId, "applied");
  expect(await step()).toMatchObject([{ outcome: "activated" }]);
  api.sinceMs = 0;
});

test("the same order once more goes on with the one that is under way", async () => {
  const { siteId } = customer;
  await activate("two");
  const asked = await kinds(siteId);
  await vote(siteId, "applied");
  await activate("two");
  expect(await kinds(siteId)).toEqual(asked);
  await vote(otherId, "applied");
  expect(await step()).toMatchObject([{ outcome: "activated" }]);
  const trail = await api.store
    .selectFrom("audit")
    .select(["who", "action", "change"])
    .where("via", "=", "central")
    .orderBy("id", "desc")
    .limit(1)
    .execute();
  expect(trail).toEqual([
    {
      who: "central",
      action: "activation on all activated",
      change: JSON.stringify({ domain: customer.name, viewset: "two", reason: null }),
    },
  ]);
});

test("with nobody connected it is refused, with words", async () => {
  api.live.delete(otherId);
  api.live.delete(customer.siteId);
  const { status, body } = await activate("two");
  expect(status).toBe(409);
  expect(member(body, "detail")).toContain("no agent of a deployment");
  expect(await kinds(otherId)).not.toContain("viewset.prepare");
});

test("what comes between gives it up: another activation, a change of the version, an unlinked last member", async () => {
  const { siteId, token, name } = customer;
  await activate("two");
  await activate("one", {});
  expect((await shown("two"))["fleet"]).toMatchObject({
    state: "aborted",
    reason: "another activation of the domain came between",
  });
  expect((await kinds(siteId)).slice(-2)).toEqual(["viewset.withdrawn", "viewset.activated"]);

  await activate("two");
  const [file] = (await api.call("GET", `/${name}/devlove/two/`, { token })).body as {
    id: number;
  }[];
  await api.call("PUT", `/${name}/devlove/two/${file?.id}/`, {
    token,
    body: { schema: "devlove/1", content: `${customer.document({})} ` },
  });
  expect((await shown("two"))["fleet"]).toMatchObject({
    state: "aborted",
    reason: "the version was changed before the decision",
  });

  await activate("two");
  for (const id of [siteId, otherId])
    await api.call("DELETE", `/domain/${name}/deployment-sites/${id}/`, { token });
  const reason = "no instance of the domain's deployments is left";
  expect(await step()).toEqual([{ viewset: "two", outcome: "aborted", reason }]);
});

test("what all were asked before says nothing of a version that was activated since for each", async () => {
  const { siteId } = customer;
  await activate("two");
  later(1_000);
  await activate("two", {}); // It gives the one for all up, and is the same version.
  expect(await shown("two")).not.toHaveProperty("fleet");

  later(1_000);
  await activate("two"); // Asked for all, though it is active: what becomes of that is told.
  await vote(otherId, "refused", { reason: "no room" });
  later(1_000);
  expect(await step()).toMatchObject([{ outcome: "aborted" }]);
  expect(await shown("two")).toMatchObject({ is_active: true, fleet: { state: "aborted" } });
  later(1_000);
  await activate("one", {});
  expect(await shown("two")).toMatchObject({ is_active: false, fleet: { state: "aborted" } });
  await activate("two", {});
  expect(await shown("two")).not.toHaveProperty("fleet");

  later(1_000);
  await activate("one");
  for (const id of [siteId, otherId]) await vote(id, "applied");
  await step();
  later(1_000);
  await activate("two", {});
  expect(await shown("one")).toMatchObject({ is_active: false, fleet: { state: "replaced" } });
  later(1_000);
  await activate("one", {});
  expect(await shown("one")).not.toHaveProperty("fleet");
});

test("after a return the version that is active again has no activation of all, nor has the other once it is activated for each", async () => {
  const { siteId } = customer;
  for (const version of ["one", "two"]) {
    later(1_000);
    await activate(version);
    for (const id of [siteId, otherId]) await vote(id, "applied");
    await step();
  }
  later(1_000);
  const seq = (await kinds(otherId)).length;
  await note({ deploymentSiteId: otherId, instanceId: "instance-1", seq, reason: "EIO" });
  expect(await step()).toMatchObject([{ outcome: "returned" }]);
  expect(await shown("one")).not.toHaveProperty("fleet");
  expect(await shown("two")).toMatchObject({ is_active: false, fleet: { state: "returned" } });
  later(1_000);
  await activate("two", {});
  expect(await shown("two")).not.toHaveProperty("fleet");
});

test("a host that cannot follow the decision is told as failed, and the fleet as split", async () => {
  const { siteId } = customer;
  await activate("two");
  await vote(siteId, "applied");
  await vote(otherId, "applied");
  await step();
  await applied(siteId);
  const detail = { reason: "it failed here before", code: "VIEWSET_QUARANTINED" };
  const seq = (await kinds(otherId)).length;
  await receipt(api, { siteId: otherId, seq, phase: "refused", detail });
  expect(await shown("two")).toMatchObject({
    activation: "split",
    deployments: [{ state: "applied" }, { state: "failed", error: "it failed here before" }],
  });
  // The same under `each` is a failure of one.
  await activate("two", {});
  await applied(siteId);
  await receipt(api, { siteId: otherId, seq: seq + 1, phase: "refused", detail });
  const { fleet, activation } = await shown("two");
  expect([fleet, activation]).toEqual([undefined, "failed"]);
});

test("a failed trial takes the version back on every deployment", async () => {
  const { siteId } = customer;
  await activate("two");
  await vote(siteId, "applied");
  await vote(otherId, "applied");
  await step();
  const seq = (await kinds(otherId)).length;
  const trial = { deploymentSiteId: otherId, instanceId: "instance-1", seq, reason: "EIO" };
  // What an earlier entry met is no matter of this activation.
  await note({ ...trial, seq: 1 });
  expect(await step()).toEqual([]);
  await note(trial);
  const reason = `it failed on instance instance-1 of deployment site ${otherId}: EIO`;
  expect(await step()).toEqual([{ viewset: "two", outcome: "returned", reason }]);
  for (const id of [siteId, otherId])
    expect((await api.journal(id)).at(-1)).toMatchObject({
      kind: "viewset.activated",
      body: { viewset_name: "one" },
    });
  expect(await shown("two")).toMatchObject({
    is_active: false,
    fleet: { state: "returned", reason },
  });
  expect(await shown("one")).toMatchObject({ is_active: true });
  expect(await step()).toEqual([]);
});

test("a version that is decided on twice is taken back to the one before it", async () => {
  const { siteId } = customer;
  for (let times = 0; times < 2; times++) {
    await activate("two");
    await vote(siteId, "applied");
    await vote(otherId, "applied");
    expect(await step()).toEqual([{ viewset: "two", outcome: "activated" }]);
  }
  const seq = (await kinds(otherId)).length;
  await note({ deploymentSiteId: otherId, instanceId: "instance-1", seq, reason: "EIO" });
  expect(await step()).toMatchObject([{ viewset: "two", outcome: "returned" }]);
  expect(await shown("one")).toMatchObject({ is_active: true });
});

test("a host on which it fails long after the decision takes nothing back: the others have served it for days", async () => {
  const { siteId, token, name } = customer;
  await activate("two");
  await vote(siteId, "applied");
  await vote(otherId, "applied");
  await step();
  await applied(siteId);
  await applied(otherId);
  later(takenBackWithinMs + 1);
  const third = await api.call("POST", "/deployment-site/", { token, body: {} });
  const thirdId = Number(member(third.body, "id"));
  await api.call("PUT", `/domain/${name}/`, { token, body: { deployment_site_id: thirdId } });
  await seen(api, thirdId);
  const seq = (await kinds(thirdId)).lastIndexOf("viewset.activated") + 1;
  await note({ deploymentSiteId: thirdId, instanceId: "instance-1", seq, reason: "EIO" });
  expect(await step()).toEqual([]);
  expect(await shown("two")).toMatchObject({ is_active: true, fleet: { state: "activated" } });
});

test("where there is no version before, one that failed its trial stays, and says so", async () => {
  const fresh = await ViewsetCustomer.enrol(api, ++no);
  customer = fresh;
  api.live.add(fresh.siteId);
  await seen(api, fresh.siteId);
  await fresh.postDevlove("first", fresh.document({}));
  await activate("first");
  await vote(fresh.siteId, "applied");
  await step();
  const seq = (await kinds(fresh.siteId)).length;
  await note({ deploymentSiteId: fresh.siteId, instanceId: "instance-1", seq, reason: "EIO" });
  expect(await step()).toMatchObject([
    { outcome: "stays", reason: expect.stringContaining("there is no version before it") },
  ]);
  await note({ deploymentSiteId: fresh.siteId, instanceId: "instance-1", seq, reason: "EIO" });
  expect(await step()).toEqual([]);
});

test("what is asked wrongly is refused, and a deadline needs `all`", async () => {
  for (const body of [{ require: "some" }, { require: "all", deadline_s: 4 }, { deadline_s: 60 }])
    expect((await activate("two", body)).status).toBe(400);
  const version = await shown("two");
  const path = `/active-viewset/${customer.name}/${member(version, "id")}/?wait=31`;
  expect((await api.call("PUT", path, { token: customer.token, body: {} })).status).toBe(400);
});

test("the answer waits for the decision if it is asked to", async () => {
  const version = await shown("two");
  const path = `/active-viewset/${customer.name}/${member(version, "id")}/?wait=30`;
  const { token } = customer;
  const answer = api.call("PUT", path, { token, body: { require: "all" } });
  await until("it is asked", async () => (await kinds(otherId)).includes("viewset.prepare"));
  await vote(otherId, "refused", { reason: "too old" });
  await step();
  api.receipts.stored();
  expect((await answer).body).toMatchObject({ fleet: { state: "aborted" } });
});

async function note(trial: Parameters<typeof noteFailedTrials>[1][number]): Promise<void> {
  await api.store
    .transaction()
    .execute(async (tx) => noteFailedTrials(tx, [trial], api.clock.toISOString()));
}
