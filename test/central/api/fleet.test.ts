// The fleet: each site's hosts with how they are in touch, what they hold back and warn of; and what of it a token for some domains sees.

import { afterAll, beforeAll, expect, test } from "vitest";
import { saveHello, saveReport } from "../../../src/central/store/journal/instances.ts";
import type { Hello, Report } from "../../../src/wire/channel.ts";
import { fleetShape, type Fleet } from "../../../src/wire/customer/fleet.ts";
import { reportOf } from "../../support/fake-agent.ts";
import { member, openApi, type Api } from "./api-harness.ts";

let api: Api;
beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 1e6, trialsTotal: 1e6 });
});
afterAll(async () => api[Symbol.asyncDispose]());

async function newSite(token: string, tags: string): Promise<{ id: number; name16: string }> {
  const { body } = await api.call("POST", "/deployment-site/", { token, body: { tags } });
  return { id: Number(member(body, "id")), name16: member(body, "name16") };
}

async function newDomain(token: string, name: string, tags: string): Promise<void> {
  const body = { name, link_to_deployment_sites_with_tags: tags };
  expect((await api.call("POST", "/domain/", { token, body })).status).toBe(201);
}

async function fleet(token: string): Promise<Fleet> {
  const { status, body } = await api.call("GET", "/fleet/", { token });
  expect(status).toBe(200);
  const decoded = fleetShape.decode(body);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
  return decoded.value;
}

const edge = (server_name: string): Hello["edge"] => ({
  server_name,
  edge_ip_address: "",
  at_directory: "",
  datacenter_place: "",
  country_code: "",
  datacenter_provider_company: "",
  metrics_advertise: null,
});

/** An instance that is at an entry of this store's journal. */
async function greet(siteId: number, instance: string, seq: number, host = ""): Promise<void> {
  const { epoch } = await api.store.selectFrom("store").select("epoch").executeTakeFirstOrThrow();
  const { chain } = await api.store
    .selectFrom("journal")
    .select("chain")
    .where((one) => one.and({ deployment_site_id: siteId, seq }))
    .executeTakeFirstOrThrow();
  const hello: Hello = {
    type: "hello",
    agent_version: "0.1.0",
    instance_id: instance,
    boot_id: "b",
    epoch,
    applied_seq: seq,
    chain,
    edge: edge(host),
  };
  await saveHello(api.store, siteId, hello, api.clock.toISOString());
}

const report = async (siteId: number, told: Report): Promise<void> =>
  saveReport(api.store, siteId, told, api.clock.toISOString());

const later = (ms: number): void => {
  api.clock = new Date(api.clock.getTime() + ms);
};

test("each host is told with its link, its lag, what it has not done, and what it warns of", async () => {
  const token = await api.trial("ada");
  const site = await newSite(token, "eu,front");
  const empty = await newSite(token, "");
  await newDomain(token, "www.example.com", "eu");
  await newDomain(token, "a.example.com", "front");
  const head = (await api.journal(site.id)).length;
  expect(head).toBeGreaterThan(2);
  await greet(site.id, "two", head, "edge-2");
  await greet(site.id, "one", head - 2);
  const warning = {
    code: "disk_low",
    severity: "warning",
    text: "www.example.com fills the disk",
    since: api.clock.toISOString(),
    hint: "Make room.",
  } as const;
  await report(site.id, { ...reportOf("two", 0), warnings: [warning] });
  later(61_000);
  await report(site.id, reportOf("two", 7));
  await report(site.id, { ...reportOf("two", 7), warnings: [warning] });
  const base = { deployment_site_id: site.id, name16: site.name16, deployment_tags: "eu,front" };
  const one = {
    instance_id: "one",
    host: null,
    agent_version: "0.1.0",
    link: "none",
    last_seen: new Date(api.clock.getTime() - 61_000).toISOString(),
    is_log_agent_reporting_data: false,
    log_lag_seconds: null,
    entries_behind: 2,
    warnings: [],
  };
  const two = {
    ...one,
    instance_id: "two",
    host: "edge-2",
    last_seen: api.clock.toISOString(),
    is_log_agent_reporting_data: true,
    log_lag_seconds: 61,
    entries_behind: 0,
    warnings: [{ code: "disk_low", text: warning.text, hint: warning.hint }],
  };
  api.sinceMs = api.clock.getTime() - 30_000;
  expect(await fleet(token)).toEqual({
    heard_since: new Date(api.sinceMs).toISOString(),
    sites: [
      { ...base, domains: ["a.example.com", "www.example.com"], instances: [one, two] },
      {
        deployment_site_id: empty.id,
        name16: empty.name16,
        deployment_tags: "",
        domains: [],
        instances: [],
      },
    ],
  });
  api.live.add(site.id);
  const [connected] = (await fleet(token)).sites;
  expect(connected?.instances.map(({ link }) => link)).toEqual(["channel", "channel"]);
  api.live.delete(site.id);
  api.polling.add(site.id);
  const [polled] = (await fleet(token)).sites;
  expect(polled?.instances.map(({ link }) => link)).toEqual(["polling", "polling"]);
  api.polling.delete(site.id);
  // Three minutes on it does not report; a day on one instance alone is left, the one seen last.
  later(180_001);
  const [silent] = (await fleet(token)).sites;
  expect(silent?.instances.map((it) => it.is_log_agent_reporting_data)).toEqual([false, false]);
  later(86_400_000);
  const [gone] = (await fleet(token)).sites;
  expect(gone?.instances.map((it) => it.instance_id)).toEqual(["two"]);
});

test("a position of another history, and one that was not told, are not known", async () => {
  const token = await api.trial("bob");
  const site = await newSite(token, "eu");
  await newDomain(token, "www.example.net", "eu");
  await greet(site.id, "copied", 1);
  await api.store
    .updateTable("instances")
    .set({ epoch: "ffffffffffffffff" })
    .where("instance_id", "=", "copied")
    .execute();
  await report(site.id, reportOf("silent", 0));
  const [one] = (await fleet(token)).sites;
  expect(one?.instances.map((it) => [it.entries_behind, it.agent_version])).toEqual([
    [null, "0.1.0"],
    [null, undefined],
  ]);
});

test("a token for some domains sees the sites of these, and nothing that names another", async () => {
  const token = await api.trial("eve");
  const shared = await newSite(token, "eu,shared");
  await newSite(token, "apart");
  await newDomain(token, "mine.example.org", "eu");
  await newDomain(token, "other.example.org", "shared");
  await newDomain(token, "far.example.org", "apart");
  const warnings = ["disk_low", "made_by_a_later_release"].map((code) => ({
    code,
    severity: "warning" as const,
    text: "other.example.org is at fault",
    since: "",
    hint: "see other.example.org",
  }));
  await report(shared.id, { ...reportOf("one", 0), warnings });
  const made = await api.call("POST", "/tokens/", {
    token,
    body: { name: "bound", role: "read", domains: ["mine.example.org"] },
  });
  const { sites } = await fleet(member(made.body, "token"));
  expect(sites.map(({ deployment_site_id: id, domains }) => [id, domains])).toEqual([
    [shared.id, ["mine.example.org"]],
  ]);
  expect(JSON.stringify(sites)).not.toMatch(/other|far\.example/);
  expect(sites[0]?.instances[0]?.warnings).toEqual([
    { code: "disk_low", text: expect.stringMatching(/disk/), hint: expect.stringMatching(/df/) },
    { code: "made_by_a_later_release", text: "made_by_a_later_release", hint: "" },
  ]);
  expect((await fleet(token)).sites).toHaveLength(2);
});

test("a host that refuses what its site was told of classes last goes by the word on all bots alone", async () => {
  const token = await api.trial("classy");
  const site = await newSite(token, "eu");
  await newSite(token, "never-told");
  await newDomain(token, "mine.example.com", "eu");
  const policy = async (access: object): Promise<void> => {
    const body = { general_policy: { unknown_bots_can_access: false, ...access } };
    expect((await api.call("POST", "/bot-access-policy/", { token, body })).status).toBe(200);
  };
  const told = async (): Promise<number> =>
    (await api.journal(site.id)).findLastIndex(({ kind }) => kind === "policy.classes") + 1;
  const answer = async (instance_id: string, seq: number, phase: "refused" | "applied") => {
    const receipt = { instance_id, seq, phase, detail: "{}", took_ms: 0, when_received: "" };
    const row = { deployment_site_id: site.id, ...receipt };
    await api.store.insertInto("receipts").values(row).execute();
  };
  const warned = async (by = token) =>
    (await fleet(by)).sites[0]?.instances.map(({ warnings }) => warnings) ?? [];
  await policy({ unknown_feeds_can_access: true });
  const first = await told();
  const disk = { code: "disk_low", severity: "warning", text: "t", since: "", hint: "h" } as const;
  await report(site.id, {
    ...reportOf("older", 0),
    warnings: Array.from({ length: 50 }, () => disk),
  });
  await report(site.id, reportOf("updated", 0));
  await answer("older", first - 1, "refused"); // Of another entry.
  await answer("updated", first, "applied");
  const shown = { code: "disk_low", text: "t", hint: "h" };
  expect(await warned()).toEqual([Array.from({ length: 50 }, () => shown), []]);
  await answer("older", first, "refused");
  const unknown = {
    code: "bot_classes_unknown",
    text: "goes by unknown_bots_can_access alone: its release knows no policies for classes of bots",
    hint: "Update accel-agent there.",
  };
  expect(await warned()).toEqual([[unknown, ...Array.from({ length: 49 }, () => shown)], []]);
  const made = await api.call("POST", "/tokens/", {
    token,
    body: { name: "bound", role: "read", domains: ["mine.example.com"] },
  });
  const [[general] = []] = await warned(member(made.body, "token"));
  expect(general?.code).toBe(unknown.code);
  expect(general?.text).toMatch(/^A host runs a release that knows no policies for classes/);
  // It is over with the next word, until that is refused too.
  await policy({ unknown_crawlers_can_access: true });
  expect(JSON.stringify(await warned())).not.toContain(unknown.code);
  await answer("older", await told(), "refused");
  expect(JSON.stringify(await warned())).toContain(unknown.code);
  // Who refuses that there are no classes any more misses nothing.
  await policy({});
  await answer("older", await told(), "refused");
  expect(JSON.stringify(await warned())).not.toContain(unknown.code);
});

test("more sites than are read at a time are all told, in order of id", async () => {
  const token = await api.trial("many");
  const ids: number[] = [];
  for (const count of [49, 1, 1]) {
    for (let no = 0; no < count; no++) ids.push((await newSite(token, "")).id);
    expect((await fleet(token)).sites.map((site) => site.deployment_site_id)).toEqual(ids);
  }
  expect((await fleet(await api.trial("nobody"))).sites).toEqual([]);
});
