// Service status of a domain: who reported of late, and whose release is behind the newest accelerator package.

import { afterAll, beforeAll, expect, test } from "vitest";
import { saveReport } from "../../../src/central/store/journal/instances.ts";
import type { Report } from "../../../src/wire/channel.ts";
import { reportOf } from "../../support/fake-agent.ts";
import { member, openApi, type Api } from "./api-harness.ts";
import { seen } from "./receipts.ts";
import { sha256Of } from "../../../src/core/ids.ts";

let api: Api;
const name = "www.example.com";
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());

test("each deployment has its object, one without an agent too; status is true for three minutes after logs were delivered, and tells when a release is behind", async () => {
  const token = await api.trial("watcher");
  const sites: number[] = [];
  for (const tags of ["eu, front", "eu"]) {
    const site = await api.call("POST", "/deployment-site/", { token, body: { tags } });
    sites.push(Number(member(site.body, "id")));
  }
  const [first = 0, second = 0] = sites;
  const body = { name, link_to_deployment_sites_with_tags: "eu" };
  await api.call("POST", "/domain/", { token, body });

  const status = async () => (await api.call("GET", `/${name}/status/`, { token })).body;
  const silent = (id: number) => ({
    is_log_agent_reporting_data: false,
    deployment_site_id: id,
    instances: [],
  });
  const of = (is_log_agent_reporting_data: boolean, last_seen: string, more = {}) => {
    const told = { is_log_agent_reporting_data, agent_version: "0.1.0", ...more };
    return {
      [name]: [
        {
          ...told,
          deployment_site_id: first,
          instances: [{ ...told, instance_id: "new", last_seen }],
        },
        silent(second),
      ],
    };
  };
  expect(await status()).toEqual({ [name]: [silent(first), silent(second)] });
  const seenAt = api.clock.toISOString();
  await seen(api, first, "new", { logsConfirmedAt: seenAt });
  expect(await status()).toEqual(of(true, seenAt));
  api.clock = new Date(api.clock.getTime() + 180_001);
  expect(await status()).toEqual(of(false, seenAt));
  for (const [version, is_behind] of [
    ["0.0.9", false],
    ["0.1.0.dev1", false],
    ["0.1", false],
    ["0.1.0.post1", true],
  ] as const) {
    await published(version);
    expect(await status()).toEqual(of(false, seenAt, { is_behind }));
  }
});

test("with several hosts on a site, one that is up and holds its logs back makes it false; one that is gone for three minutes does not", async () => {
  const token = await api.trial("fleet");
  const site = await api.call("POST", "/deployment-site/", { token, body: {} });
  const id = Number(member(site.body, "id"));
  const domain = "www.example.net";
  await api.call("POST", "/domain/", { token, body: { name: domain, deployment_site_id: id } });
  const status = async () => {
    const { body } = await api.call("GET", `/${domain}/status/`, { token });
    const [one] = Object(body)[domain];
    const is = "is_log_agent_reporting_data";
    return [
      one[is],
      one.instances.map((its: Record<string, unknown>) => [its["instance_id"], its[is]]),
    ];
  };
  const ago = (ms: number): string => new Date(api.clock.getTime() - ms).toISOString();
  await seen(api, id, "host-one", { logsConfirmedAt: ago(0) });
  await seen(api, id, "host-two", { logsConfirmedAt: ago(180_001) });
  expect(await status()).toEqual([
    false,
    [
      ["host-one", true],
      ["host-two", false],
    ],
  ]);
  await seen(api, id, "host-two", { logsConfirmedAt: ago(60_000) });
  expect(await status()).toMatchObject([true, [{}, ["host-two", true]]]);
  await seen(api, id, "host-three");
  expect(await status()).toMatchObject([false, [{}, ["host-three", false], {}]]);
  api.clock = new Date(api.clock.getTime() + 180_001);
  for (const host of ["host-one", "host-two"])
    await seen(api, id, host, { logsConfirmedAt: ago(0) });
  expect(await status()).toMatchObject([true, [{}, ["host-three", false], {}]]);
  api.clock = new Date(api.clock.getTime() + 86_400_000);
  await seen(api, id, "host-one", { logsConfirmedAt: ago(0) });
  expect(await status()).toMatchObject([
    true,
    [
      ["host-one", true],
      ["host-two", false],
    ],
  ]);
});

test("an agent that only ever posted reports has its release too", async () => {
  const token = await api.trial("poller");
  const site = await api.call("POST", "/deployment-site/", { token, body: {} });
  const id = Number(member(site.body, "id"));
  const other = "www.example.org";
  await api.call("POST", "/domain/", { token, body: { name: other, deployment_site_id: id } });
  await published("0.2.0");
  const report = async (more: Partial<Report>) => {
    const told = { ...reportOf("polls-by-request", 0), ...more };
    await saveReport(api.store, id, told, api.clock.toISOString());
    return Object((await api.call("GET", `/${other}/status/`, { token })).body)[other];
  };
  const reports = (release: object) => {
    const told = { is_log_agent_reporting_data: true, ...release };
    const instance = { ...told, instance_id: "polls-by-request", last_seen: expect.any(String) };
    return [{ ...told, deployment_site_id: id, instances: [instance] }];
  };
  expect(await report({})).toEqual(reports({}));
  for (const [agent_version, is_behind] of [
    ["0.1.9", true],
    ["0.2.0", false],
  ] as const)
    expect(await report({ agent_version })).toEqual(reports({ agent_version, is_behind }));
});

async function published(version: string): Promise<void> {
  await api.store
    .insertInto("packages")
    .values({
      version,
      version_key: version,
      file: "x.whl",
      size: 1,
      sha256: sha256Of(""),
      stored_as: version,
      uploaded_by_user_id: 1,
      when_created: api.clock.toISOString(),
    })
    .execute();
}
