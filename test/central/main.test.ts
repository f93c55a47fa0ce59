// Central whole: both APIs on one listener over one state directory, its own pages and commands, refusing to start, stopping, starting again.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkCentral } from "../../src/central/main.ts";
import { at } from "../support/api-contract.ts";
import { freePorts } from "../support/free-ports.ts";
import { call, newSite, settingsOf, start, statusOf } from "../support/central-whole.ts";
import { batchText, connectAgent } from "../support/fake-agent.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

test("what a customer asks for reaches the agent, what the agent proves and logs reaches the customer", async () => {
  using dir = tempDir();
  await using central = await start(settingsOf(dir.path));
  const { token, id, name16, secret16 } = await newSite(central.url);
  const agent = await connectAgent(central.agents, name16, secret16);
  using channel = await agent.channel();
  channel.hello(agent.token.epoch);
  await channel.next("welcome");
  const domain = { name: "www.example.test", deployment_site_id: id };
  await call(central.url, "POST", "/domain/", token, domain);
  await until("the domain is told", () =>
    channel.entries.some(
      ({ kind, body }) => kind === "domains.changed" && JSON.stringify(body).includes(domain.name),
    ),
  );

  const clearing = call(central.url, "POST", `/clear-accelerator-cache/${domain.name}/`, token, {
    url_path_patterns: ["path:css"],
  });
  const clear = await until("the clear is told", () =>
    channel.entries.find(({ kind }) => kind === "cache.clear"),
  );
  channel.receipt(clear.seq, "applied", { matched: 3 });
  channel.receipt(clear.seq, "gone", { removed: 3, blocked_in_flight: 0 });
  expect(await clearing).toMatchObject({
    deployments: [{ deployment_site_id: id, state: "applied", matched: 3, removed: 3 }],
  });

  const sent = await agent.call("/request-logs", {
    method: "POST",
    headers: { "accel-lane": "00000000000000e1/1", "accel-first-seq": "1", "accel-last-seq": "3" },
    body: `${batchText(1, 2)}${JSON.stringify({ canary: { at: Date.now() / 1_000 } })}`,
  });
  expect(sent.status).toBe(200);
  const logs = await call(central.url, "GET", "/incominglogs/", token);
  expect(JSON.stringify(logs)).toMatch(/"uri_path":"\/2".*"uri_path":"\/1"/);
  const searched = await call(central.url, "GET", `/requests/${domain.name}/?path=1`, token);
  expect(searched).toMatchObject({ requests: [{ path: "/1", deployment_site_id: id }] });
  const requestId = String(at(searched, "requests", "0", "request_id"));
  const request = await call(central.url, "GET", `/requests/${domain.name}/${requestId}/`, token);
  expect(request).toMatchObject({ path: "/1", why: expect.any(String) });
  const channels = "/monitor-notification-channel/email/";
  const mail = await call(central.url, "POST", channels, token, { monitor_uid: "ops" });
  const tried = `${channels}${String(at(mail, "id"))}/test/`;
  await expect(call(central.url, "POST", tried, token)).rejects.toThrow(/409 .*go to nobody/);
  expect(await call(central.url, "GET", `/${domain.name}/status/`, token)).toEqual({
    [domain.name]: [
      {
        is_log_agent_reporting_data: true,
        deployment_site_id: id,
        agent_version: expect.stringMatching(/^\d/),
        instances: [
          {
            instance_id: "instance-1",
            agent_version: "1.0.0",
            is_log_agent_reporting_data: true,
            last_seen: expect.stringMatching(/^\d{4}-/),
          },
        ],
      },
    ],
  });
  expect(await statusOf(dir.path)).toMatchObject({
    logs: { days: 1, queue_bytes: 0, failing: null },
    deployment_sites: [
      {
        id,
        name16,
        live: true,
        agent_version: "1.0.0",
        log_canary_age_seconds: expect.any(Number),
      },
    ],
    warnings: [],
  });
  const metrics = await (await fetch(`${central.url}/metrics`)).text();
  expect(metrics).toContain(`accel_central_log_canary_age_seconds{deployment="${name16}"} `);
});

test("a deleted site's agent gets its last entry, then the end, then the reason", async () => {
  using dir = tempDir();
  await using central = await start(settingsOf(dir.path));
  const { token, id, name16, secret16 } = await newSite(central.url);
  const agent = await connectAgent(central.agents, name16, secret16);
  using channel = await agent.channel();
  channel.hello(agent.token.epoch);
  await channel.next("welcome");
  const answer = await fetch(`${central.url}/presentation-api/v1/deployment-site/${id}/`, {
    method: "DELETE",
    headers: { authorization: `Token ${token}` },
  });
  expect(answer.status).toBe(204);
  expect(await channel.close()).toMatchObject({ code: 4001 });
  expect(channel.entries.at(-1)).toMatchObject({ kind: "domains.changed", body: { domains: [] } });
  expect((await agent.call("/snapshot")).status).toBe(401);
  await expect(connectAgent(central.agents, name16, secret16)).rejects.toThrow(/no token/);
});

test("its own pages, and nothing else", async () => {
  using dir = tempDir();
  await using central = await start(settingsOf(dir.path));
  const rows = [
    ["/", 200, /<div id="app">/],
    ["/about/", 200, /<h1>accel-central /],
    ["/about", 200, /<h1>accel-central /],
    ["/console/index.html", 404, /nothing here/],
    ["/console/../package.json", 404, /nothing here/],
    ["/healthz", 200, /^alive$/m],
    ["/readyz", 200, /^ready$/m],
    ["/metrics", 200, /^accel_central_channels 0$/m],
    ["/elsewhere", 404, /nothing here/],
    ["/agent-api/v1/nothing", 401, /expired_token/],
    ["/presentation-api/v1/customer/", 401, /Token/],
  ] as const;
  for (const [path, status, body] of rows) {
    const answer = await fetch(central.url + path);
    expect([path, answer.status]).toEqual([path, status]);
    expect(await answer.text()).toMatch(body);
  }
  expect((await fetch(`${central.url}/metrics`, { method: "POST" })).status).toBe(405);
  const schema = await fetch(`${central.url}/presentation-api/v1/devlove-1.schema.json`);
  expect([schema.status, schema.headers.get("content-type")]).toEqual([
    200,
    "application/schema+json",
  ]);
  const file = new URL("../../config/devlove-1.schema.json", import.meta.url);
  expect(await schema.text()).toBe(readFileSync(file, "utf8"));
});

test("a second start finds everything, the channel comes back where it was", async () => {
  using dir = tempDir();
  const settings = settingsOf(dir.path);
  let site: Awaited<ReturnType<typeof newSite>>;
  let epoch: string;
  {
    await using central = await start(settings);
    site = await newSite(central.url);
    epoch = (await connectAgent(central.agents, site.name16, site.secret16)).token.epoch;
    const domain = { name: "www.example.test", deployment_site_id: site.id };
    await call(central.url, "POST", "/domain/", site.token, domain);
  }
  await using central = await start(settings);
  const agent = await connectAgent(central.agents, site.name16, site.secret16);
  expect(agent.token.epoch).toBe(epoch);
  using channel = await agent.channel();
  channel.hello(epoch);
  await channel.next("entries");
  expect(channel.all("resync")).toEqual([]);
});

test("it does not start with another key than its secrets were sealed with, and makes none", async () => {
  using dir = tempDir();
  const settings = settingsOf(dir.path);
  const key = join(dir.path, "central.key");
  {
    await using central = await start(settings);
    await newSite(central.url);
  }
  const kept = readFileSync(key);
  rmSync(key);
  await expect(start(settings)).rejects.toMatchObject({ code: "STORE_KEY_WRONG" });
  expect(existsSync(key)).toBe(false);
  writeFileSync(key, "0".repeat(64));
  await expect(start(settings)).rejects.toMatchObject({ code: "STORE_KEY_WRONG" });
  writeFileSync(key, kept);
  await using _ = await start(settings);
});

test.each([
  ["its head", 0],
  ["its first table", 100],
])("a store damaged at %s is said to be damaged and left as it is", async (_, at) => {
  using dir = tempDir();
  const settings = settingsOf(dir.path);
  const store = join(dir.path, "central.db");
  {
    await using _central = await start(settings);
  }
  const bytes = readFileSync(store).fill(0xff, at, 4_000);
  writeFileSync(store, bytes);
  await expect(start(settings)).rejects.toMatchObject({ code: "STORE_DAMAGED" });
  expect(readFileSync(store).equals(bytes)).toBe(true);
});

test("stopping ends channels, long polls and idle connections at once", async () => {
  using dir = tempDir();
  const central = await start(settingsOf(dir.path));
  const { name16, secret16 } = await newSite(central.url);
  const agent = await connectAgent(central.agents, name16, secret16);
  using channel = await agent.channel();
  channel.hello(agent.token.epoch);
  await channel.next("welcome");
  const polling = agent.call(`/journal?after=0&epoch=${agent.token.epoch}&wait=30`);
  const began = performance.now();
  await central[Symbol.asyncDispose]();
  expect(performance.now() - began).toBeLessThan(4_000);
  expect((await polling).status).toBe(200);
  expect(channel.all("drain")).toHaveLength(1);
});

test("where it cannot start it says why", async () => {
  using dir = tempDir();
  const at = (name: string): string => join(dir.path, name);
  await using _ = await start(settingsOf(at("one")));
  await expect(start(settingsOf(at("one")))).rejects.toMatchObject({ code: "STATE_DIR_LOCKED" });

  const [port = 0] = await freePorts(1);
  const { promise, resolve } = Promise.withResolvers<void>();
  const other = createServer().listen(port, "127.0.0.1", resolve);
  await promise;
  await expect(start(settingsOf(at("two"), "", port))).rejects.toMatchObject({
    code: "PORT_TAKEN",
  });
  other.close();

  writeFileSync(at("file"), "");
  await expect(start(settingsOf(at("file")))).rejects.toMatchObject({ code: "STATE_DIR_UNUSABLE" });

  const badKey = settingsOf(at("three"), `key_file: ${at("file")}`);
  await expect(start(badKey)).rejects.toMatchObject({ code: "FILE_UNUSABLE" });
  await expect(checkCentral(badKey)).rejects.toMatchObject({ code: "FILE_UNUSABLE" });
  await checkCentral(settingsOf(at("four")));

  mkdirSync(at("five"));
  writeFileSync(join(at("five"), "logs"), "no directory");
  await expect(start(settingsOf(at("five")))).rejects.toThrow(/EEXIST|logs/);
});
