// The typed client against the real customer API: every call's answer is decoded, every refusal is an ApiError.

import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listen } from "../../src/base/http-listener.ts";
import { ApiError } from "../../src/client/api-error.ts";
import { createCustomerClient, type CustomerClient } from "../../src/client/customer-client.ts";
import { AccelError } from "../../src/core/faults.ts";
import { openApi, type Api } from "../central/api/api-harness.ts";
import { receipt, seen } from "../central/api/receipts.ts";
import { makeCertificate } from "../support/x509.ts";

let api: Api;
let client: CustomerClient;
let baseUrl: string;
const domain = "www.example.com";
const content = JSON.stringify({ domains: { [domain]: {} } });

beforeAll(async () => {
  api = await openApi();
  baseUrl = `http://127.0.0.1:${api.port}/`;
  await using anyone = createCustomerClient({ baseUrl });
  const { token, user_id: userId } = await anyone.trial({ username: "ada", email: "a@x.org" });
  client = createCustomerClient({ baseUrl, token });
  expect(await client.editUserProfile(userId, { first_name: "Ada" })).toMatchObject({
    username: "ada",
    first_name: "Ada",
    email: "a@x.org",
  });
  expect(await client.userProfile(userId)).toMatchObject({ first_name: "Ada" });
});
afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await api[Symbol.asyncDispose]();
});

test("keys and certificates of a site", async () => {
  const [site, other] = [await client.createSite("keys"), await client.createSite("keys")];
  const key = await client.createSymmetricKey(site.id, { idempotencyKey: "key" });
  expect(key.name).toBe(`key-${site.name16}-2`);
  expect(await client.createSymmetricKey(site.id, { idempotencyKey: "key" })).toEqual(key);
  expect(await client.symmetricKeys()).toHaveLength(3);
  expect(await client.symmetricKey(key.id)).toEqual(key);
  expect(await client.bindSymmetricKey(key.id, other.id)).toMatchObject({
    name: key.name,
    deployment_site_id: other.id,
  });
  const { pem: certificate, key: privateKey } = makeCertificate({ names: ["a.example.com"] });
  const stored = await client.uploadCertificate(site.name16, { certificate, privateKey });
  expect(stored.names).toEqual(["a.example.com"]);
  expect(await client.certificates(site.name16)).toMatchObject([{ ...stored, state: "absent" }]);
  await client.deleteCertificate(site.name16, stored.id);
  expect(await client.certificates(site.name16)).toEqual([]);
  for (const { id } of [site, other]) await client.deleteSite(id);
});

test("the way of a customer, from a site to its logs", async () => {
  const key = (idempotencyKey: string) => ({ idempotencyKey });
  const site = await client.createSite("eu", key("site"));
  expect(await client.createSite("eu", key("site"))).toEqual(site);
  expect(await client.sites()).toEqual([site]);
  const deploymentSiteId = site.id;
  const made = await client.createDomain(domain, { deploymentSiteId }, key("domain"));
  expect(made.deployment_sites).toEqual([{ id: deploymentSiteId }]);
  const sub = { name: `img.${domain}`, sharesViews: true };
  expect((await client.putSubDomain(domain, sub)).sub_domains).toHaveLength(1);
  expect(
    (await client.unlinkDomain(domain, deploymentSiteId), await client.domain(domain)),
  ).toMatchObject({ deployment_sites: [] });
  expect(await client.linkDomain(domain, deploymentSiteId)).toMatchObject({ name: domain });

  expect((await client.validateDevlove("{}")).status).toBe("error");
  const file = await client.postDevlove(domain, "first one", content, key("devlove"));
  expect(await client.devloves(domain, "first one")).toEqual([file]);
  const [version] = await client.viewsets(domain);
  expect(version).toMatchObject({ name: "first one", is_active: false });
  const active = await client.activate(domain, version?.id ?? 0);
  expect(active.activation).toBe("absent");
  expect(await client.viewset(domain, active.id)).toEqual(active);
  expect(await client.putDevlove(domain, "first one", file.id, `${content} `)).toMatchObject({
    id: file.id,
  });

  const target = { domain, deploymentSiteId, viewset: "imported/2" };
  await client.importViewset(target, key("import"));
  expect((await client.importProgress(target)).status).toBe("started");

  const clear = await client.clear(domain, ["path:index"], { waitSeconds: 0, ...key("clear") });
  const seq = (await api.journal(deploymentSiteId)).length;
  await receipt(api, { siteId: deploymentSiteId, seq, phase: "applied", detail: { matched: 2 } });
  expect(await client.clearState(domain, clear.clear_id)).toMatchObject({
    deployments: [{ state: "applied", matched: 2 }],
  });
});

test("bots and policy", async () => {
  const mark = { set: "bad", range: "192.0.2.0/24", bot: "Crawler", domain } as const;
  expect((await client.mark(mark, { idempotencyKey: "mark" })).ip_addresses).toEqual([
    "192.0.2.0/24",
  ]);
  expect(await client.isBot("bad", "192.0.2.0/25")).toEqual({ isBot: true, domains: [domain] });
  expect(await client.isBot("vip", "192.0.2.1")).toEqual({ isBot: false, domains: [] });
  expect(await client.listBots("bad")).toHaveLength(1);
  expect((await client.remove(mark)).ip_addresses).toEqual([]);
  const custom = { ...mark, set: "vip", range: "192.0.2.1_3", custom: true } as const;
  expect((await client.mark(custom)).ip_addresses).toEqual([
    "192.0.2.1",
    "192.0.2.2/31",
    "192.0.2.4",
  ]);

  const waited = await client.mark({ ...mark, range: "192.0.2.7" }, { waitSeconds: 0 });
  expect(waited.deployments).toMatchObject([{ state: "pending" }]);
  const brief = { name: "Crawler", domain };
  const other = { ...mark, range: "192.0.2.8" };
  expect(await client.markBriefly(other)).toMatchObject({ ...brief, ip_address_count: 2 });
  expect(await client.removeBriefly(other, { waitSeconds: 0 })).toMatchObject({
    ...brief,
    ip_address_count: 1,
    deployments: [{ state: "pending" }],
  });

  const general_policy = { unknown_bots_can_access: true };
  expect(await client.setPolicy({ general_policy })).toEqual({ general_policy });
  expect(await client.policy()).toMatchObject({ general_policy });
});

test("the walk through the logs follows the cursor to the end", async () => {
  const [site] = await client.sites();
  const deploymentSiteId = site?.id ?? 0;
  const records = Array.from({ length: 25 }, (_, at) => ({
    connection: at,
    response_status: 200,
    request_method: "GET",
    uri_path: `/${at}`,
    backend_time: 0.5,
    when: 1_900_000_000.25 - at,
    authority: domain,
  }));
  api.logs.records.set(`${deploymentSiteId}/${domain}`, records);
  const walked: number[] = [];
  for await (const line of client.walkLogs({ domain, deploymentSiteId, limit: 10 }))
    walked.push(line.connection);
  expect(walked).toEqual(records.map(({ connection }) => connection));
  const logs = await client.incomingLogs({ limit: 3 });
  expect(logs.logs_data.deployments[0]?.domains[0]?.domain_logs).toHaveLength(3);
});

test("status and scrape configuration", async () => {
  const [site] = await client.sites();
  await seen(api, site?.id ?? 0, "instance-1", { logsConfirmedAt: api.clock.toISOString() });
  expect(await client.status(domain)).toMatchObject({
    [domain]: [{ is_log_agent_reporting_data: true, agent_version: "0.1.0" }],
  });
  expect(await client.metricsConf("eu")).toMatchObject({
    metrics_config: [],
    omitted: [{ name16: site?.name16 }],
  });
});

test("a refusal is an ApiError with the problem document", async () => {
  const refused = client.createDomain("nodots");
  await expect(refused).rejects.toThrow(ApiError);
  await expect(refused).rejects.toMatchObject({
    code: "REQUEST_INVALID",
    status: 400,
    problem: { errors: [{ path: "/name" }] },
    message: expect.stringContaining("POST /domain/: 400 Bad Request"),
  });
  await expect(client.domain("www.unknown.org")).rejects.toMatchObject({ code: "NOT_FOUND" });
  await expect(client.createDomain(domain)).rejects.toMatchObject({ code: "CONFLICT" });
  await using nobody = createCustomerClient({ baseUrl, token: "nobodys" });
  await expect(nobody.sites()).rejects.toMatchObject({ status: 401, code: "CENTRAL_REFUSED" });
});

test.each([
  [401, "Central knows no such API token: take one that is in force."],
  [403, "The token does not allow this; the message says what it lacks. Take another one."],
  [405, "Central refused what was asked, for the reason in the message. Nothing was changed."],
  [429, "Nothing was changed. Wait for as long as the answer says, and try again."],
  [500, "Central answered with an error; its log has the request id."],
  [503, "Central cannot do this now, for the reason in the message: try again later."],
])("a refusal with %i says what helps", (status, hint) => {
  const problem = { type: "about:blank", title: "t", status, detail: "d" };
  expect(new ApiError("GET /x/", problem, undefined)).toMatchObject({
    code: "CENTRAL_REFUSED",
    hint,
  });
});

test("what cannot be reached, or is not central, says so", async () => {
  await using gone = createCustomerClient({ baseUrl: "http://127.0.0.1:1", token: "t" });
  await expect(gone.sites()).rejects.toMatchObject({ code: "API_UNREACHABLE" });

  const other = createServer((_request, response) => response.end('[{"id":"one"}]'));
  await listen(other, { host: "127.0.0.1", port: 0 });
  const address = other.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  {
    await using stranger = createCustomerClient({ baseUrl: `http://127.0.0.1:${port}` });
    const answer = stranger.sites();
    await expect(answer).rejects.toThrow(AccelError);
    await expect(answer).rejects.toMatchObject({
      code: "MESSAGE_INVALID",
      message: expect.stringContaining("/0"),
    });
  }
  other.close();
});
