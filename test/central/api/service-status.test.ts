// Service status of a domain: who reported of late, and whose release is behind the newest accelerator package.

import { afterAll, beforeAll, expect, test } from "vitest";
import { saveReport } from "../../../src/central/store/instances.ts";
import type { Report } from "../../../src/wire/channel.ts";
import { reportOf } from "../../support/fake-agent.ts";
import { member, openApi, type Api } from "./api-harness.ts";
import { seen } from "./receipts.ts";

let api: Api;
const name = "www.example.com";
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());

test("status is true for three minutes after logs were delivered, and tells when a release is behind", async () => {
  const token = await api.trial("watcher");
  const sites: number[] = [];
  for (const tags of ["eu, front", "eu"]) {
    const site = await api.call("POST", "/deployment-site/", { token, body: { tags } });
    sites.push(Number(member(site.body, "id")));
  }
  const [first = 0] = sites;
  const body = { name, link_to_deployment_sites_with_tags: "eu" };
  await api.call("POST", "/domain/", { token, body });

  const status = async () => (await api.call("GET", `/${name}/status/`, { token })).body;
  const silent = { is_log_agent_reporting_data: false };
  const of = (is_log_agent_reporting_data: boolean, more = {}) => ({
    [name]: [
      {
        is_log_agent_reporting_data,
        deployment_site_id: first,
        agent_version: "0.1.0",
        ...more,
      },
      silent,
    ],
  });
  expect(await status()).toEqual({ [name]: [silent, silent] });
  await seen(api, first, "old", { logsConfirmedAt: "2030-01-01T00:00:00.000Z" });
  await seen(api, first, "new", { logsConfirmedAt: api.clock.toISOString() });
  expect(await status()).toEqual(of(true));
  api.clock = new Date(api.clock.getTime() + 180_001);
  expect(await status()).toEqual(of(false));
  for (const [version, is_behind] of [
    ["0.0.9", false],
    ["0.1.0.dev1", false],
    ["0.1", false],
    ["0.1.0.post1", true],
  ] as const) {
    await published(version);
    expect(await status()).toEqual(of(false, { is_behind }));
  }
});

test("an agent that only ever posted reports has its release too", async () => {
  const token = await api.trial("poller");
  const site = await api.call("POST", "/deployment-site/", { token, body: {} });
  const id = Number(member(site.body, "id"));
  const other = "www.example.org";
  await api.call("POST", "/domain/", { token, body: { name: other, deployment_site_id: id } });
  await published("0.2.0");
  const report = async (more: Partial<Report>) => {
    const told = { ...reportOf("polls", 0), ...more };
    await saveReport(api.store, id, told, api.clock.toISOString());
    return Object((await api.call("GET", `/${other}/status/`, { token })).body)[other];
  };
  const reports = { is_log_agent_reporting_data: true };
  expect(await report({})).toEqual([reports]);
  const known = { ...reports, deployment_site_id: id };
  expect(await report({ agent_version: "0.1.9" })).toEqual([
    { ...known, agent_version: "0.1.9", is_behind: true },
  ]);
  expect(await report({ agent_version: "0.2.0" })).toEqual([
    { ...known, agent_version: "0.2.0", is_behind: false },
  ]);
});

async function published(version: string): Promise<void> {
  await api.store
    .insertInto("packages")
    .values({
      version,
      version_key: version,
      file: "x.whl",
      size: 1,
      sha256: "0".repeat(64),
      stored_as: version,
      uploaded_by_user_id: 1,
      when_created: api.clock.toISOString(),
    })
    .execute();
}
