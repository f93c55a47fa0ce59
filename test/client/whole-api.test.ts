// The client covers the API: one customer's way through every operation of the OpenAPI document.

import { randomBytes } from "node:crypto";
import pino from "pino";
import { expect, test } from "vitest";
import { hashPassword } from "../../src/central/api/password.ts";
import { describedDocument } from "../../src/central/api/http/described.ts";
import { createCustomerClient, type CustomerClient } from "../../src/client/customer-client.ts";
import { slowBackendType } from "../../src/wire/customer/notifications.ts";
import { openApi, type Api } from "../central/api/api-harness.ts";
import { createContract } from "../support/api-contract.ts";
import { addOrder } from "../support/api-world.ts";
import { wheel, wheelName } from "../support/wheels.ts";
import { makeCertificate } from "../support/x509.ts";

const { operations, operationOf } = createContract(describedDocument());
const domain = "www.example.com";
const content = JSON.stringify({ domains: { [domain]: {} } });

test("every operation of the document is a call of the client, and is answered", async () => {
  const asked = new Set<string>();
  const note = (line: string): void => {
    const { method, path, status } = Object(JSON.parse(line));
    const operation = status < 300 ? operationOf(method, path) : undefined;
    if (operation !== undefined) asked.add(`${operation.method} ${operation.path}`);
  };
  await using api = await openApi({}, pino({ level: "info" }, { write: note }));
  const baseUrl = `http://127.0.0.1:${api.port}`;
  await using anyone = createCustomerClient({ baseUrl });
  const user = { username: "ada", email: "ada@example.com" };
  const { token, user_id: userId, customer_id: customerId } = await anyone.trial(user);
  await anyone.startRecovery(user);
  await using client = createCustomerClient({ baseUrl, token });
  await client.editUserProfile(userId, { first_name: (await client.userProfile(userId)).username });
  api.logs.addDetail(domain, "1795000000250000.2026-11-18.812");
  await sitesAndDomains(client);
  await tokens(client);
  await contents(client);
  await orders(client, api);
  await bots(client);
  await notices(client);
  await packages(client, api);
  await client.deleteDomain(domain);
  for (const { id } of await client.sites()) await client.deleteSite(id);
  const [own] = await client.customers();
  expect(await client.customer(customerId)).toEqual(own);
  expect(await client.renameCustomer(customerId, "Acme")).toEqual({ ...own, name: "Acme" });
  await client.deleteCustomer(customerId);

  const missing = operations.map(({ method, path }) => `${method} ${path}`);
  expect(missing.filter((operation) => !asked.has(operation))).toEqual([]);
});

async function sitesAndDomains(client: CustomerClient): Promise<void> {
  const site = await client.createSite("eu");
  const other = await client.createSite("us");
  expect(await client.site(site.id)).toEqual(site);
  expect((await client.setSiteTags(other.id, "us,2")).deployment_tags).toBe("us,2");
  expect((await client.rotateSecret(other.id, 0)).secret16).not.toBe(other.secret16);
  const { code, ...made } = await client.createEnrolment(site.id, { uses: 2, lifetimeSeconds: 60 });
  expect(code).toMatch(/^enrol1_[0-9a-f]{40}$/);
  expect(made).toMatchObject({ uses: 2, used: 0, state: "open" });
  expect(await client.enrolments(site.id)).toEqual([made]);
  await client.revokeEnrolment(site.id, made.id);
  expect(await client.enrolment(site.id, made.id)).toEqual({ ...made, state: "revoked" });
  await client.createDomain(domain, { tags: "eu" });
  await client.linkDomain(domain, other.id);
  await client.unlinkDomain(domain, other.id);
  expect(await client.domains()).toEqual([await client.domain(domain)]);
  await client.putSubDomain(domain, { name: `img.${domain}`, sharesViews: true });
  const key = await client.createSymmetricKey(site.id);
  expect(await client.symmetricKey(key.id)).toEqual(key);
  await client.bindSymmetricKey(key.id, other.id);
  expect(await client.symmetricKeys()).toHaveLength(3);
  const { pem: certificate, key: privateKey } = makeCertificate({ names: [domain] });
  const { id } = await client.uploadCertificate(site.name16, { certificate, privateKey });
  expect(await client.certificates(site.name16)).toHaveLength(1);
  await client.deleteCertificate(site.name16, id);
  await client.incomingLogs();
  const [request] = (await client.requests(domain, { status: "4xx", limit: 1 })).requests;
  const detail = await client.request(domain, request?.request_id ?? "");
  expect(detail).toEqual({ ...request, why: detail.why });
  await client.analytics(domain, { step: "day", by: "status" });
  expect(await client.imageVariants(domain)).toMatchObject({ domain, days: [] });
  await client.status(domain);
  await client.metricsConf("eu");
  expect((await client.fleet()).sites.map(({ domains }) => domains)).toEqual([[domain], []]);
  expect(
    (await Array.fromAsync(client.audit({ operation: "rotateDeploymentSiteSecret" }))).length,
  ).toBe(1);
  expect(await client.alerts()).toEqual([]);
  for await (const event of client.events()) {
    expect(event).toEqual({ event: "hello", username: "ada" });
    break;
  }
}

async function tokens(client: CustomerClient): Promise<void> {
  expect(await client.signIn()).toEqual(await client.session());
  await client.signOut();
  expect(await client.session()).toMatchObject({ username: "ada", role: "owner" });
  const asked = { name: "ci", role: "clear", domains: [domain], lifetimeSeconds: 3_600 } as const;
  const { token, ...made } = await client.createToken(asked);
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(await client.token(made.id)).toEqual(made);
  expect(await client.tokens()).toHaveLength(2);
  await client.revokeToken(made.id);
  expect(await client.tokens()).toHaveLength(1);
}

async function contents(client: CustomerClient): Promise<void> {
  expect((await client.validateDevlove(content)).status).toBe("ok");
  const file = await client.postDevlove(domain, "one", content);
  expect(await client.devlove(domain, "one", file.id)).toEqual(file);
  expect(await client.devloves(domain, "one")).toEqual([file]);
  await client.putDevlove(domain, "one", file.id, content);
  const [version] = await client.viewsets(domain);
  const viewsetId = version?.id ?? 0;
  expect((await client.activate(domain, viewsetId)).is_active).toBe(true);
  expect((await client.viewset(domain, viewsetId)).name).toBe("one");
  const { from, to } = await client.viewsetChanges(domain, viewsetId);
  expect([from?.id, to.id]).toEqual([viewsetId, viewsetId]);
  const [site] = await client.sites();
  const target = { domain, deploymentSiteId: site?.id ?? 0, viewset: "two" };
  await client.importViewset(target);
  expect((await client.importProgress(target)).status).toBe("started");
  const clear = await client.clear(domain, ["path:a"], { waitSeconds: 0 });
  expect(await client.clearState(domain, clear.clear_id)).toEqual(clear);
  const past = await client.clears(domain, { since: "2000-01-01T00:00:00Z" });
  expect(past).toMatchObject([{ id: 1, ...clear }]);
  expect((await client.dryRunClear(domain, ["path:a"], { waitSeconds: 0 })).dry_run).toBe(true);
}

async function bots(client: CustomerClient): Promise<void> {
  for (const set of ["bad", "vip"] as const) {
    const mark = { set, range: "192.0.2.0/24", bot: "Examplebot", domain };
    const marked = await client.mark(mark);
    expect(marked.ip_addresses).toEqual(["192.0.2.0/24"]);
    expect((await client.isBot(set, "192.0.2.7")).isBot).toBe(true);
    expect(await client.listBots(set)).toHaveLength(1);
    const place = { set, bot: "Listed", domain };
    const { etag, ...replaced } = await client.replaceBotAddresses(place, "192.0.2.1\n192.0.2.2\n");
    expect(replaced).toMatchObject({ count: 2, added: 2, removed: 0 });
    const page = await client.botAddresses(place, { limit: 1 });
    expect(page).toMatchObject({ etag, next: "192.0.2.1", ip_addresses: ["192.0.2.1"] });
    const change = { add: ["192.0.2.3"], remove: ["192.0.2.1", "192.0.2.9"] };
    expect(await client.changeBotAddresses(place, change, { ifMatch: etag ?? "" })).toMatchObject({
      count: 2,
      added: 1,
      removed: 1,
      absent: 1,
    });
    const dry = await client.replaceBotAddresses(place, "", { dryRun: true });
    expect(dry).toMatchObject({ dry_run: true, removed: 2 });
    expect(dry.refusal).toContain("empty");
    expect((await client.remove(mark)).ip_addresses).toEqual([]);
    const url = "https://lists.example.com/all.txt";
    const source = await client.setBotSource(place, { url, interval_s: 900 });
    expect(source).toMatchObject({ url, interval_s: 900, state: "waiting", count: 2 });
    expect(await client.botSource(place)).toEqual(source);
    expect(await client.fetchBotSource(place, { allowShrink: true })).toMatchObject({ url });
    expect(await client.listBotSources()).toHaveLength(1);
    expect(await client.listPublishedBots()).toContainEqual(
      expect.objectContaining({ bot: "Googlebot" }),
    );
    await client.deleteBotSource(place);
    expect(await client.listBotSources()).toEqual([]);
  }
  const general_policy = { unknown_bots_can_access: true, unknown_libraries_can_access: false };
  await client.setPolicy({ general_policy });
  expect((await client.policy()).general_policy).toEqual(general_policy);
  expect(await client.unreviewedBots()).toHaveLength(1);
}

async function orders(client: CustomerClient, api: Api): Promise<void> {
  const id = Number(await addOrder(api, domain));
  const [order] = await client.certificateOrders();
  expect(order).toMatchObject({ id, domain, state: "failed" });
  const tried = await client.tryCertificateOrder(id);
  expect(tried).toEqual({ ...order, next_at: tried.next_at });
  expect(Date.parse(tried.next_at)).toBeLessThan(Date.parse(order?.next_at ?? ""));
}

async function notices(client: CustomerClient): Promise<void> {
  const { chatChannels, emailChannels } = client;
  const given = {
    monitor_uid: "a",
    chat_channel_name: "#a",
    chat_hook_url: "https://chat.example.com/hooks/a",
  };
  const chat = await chatChannels.create(given);
  expect(await chatChannels.list()).toEqual([await chatChannels.read(chat.id)]);
  expect((await chatChannels.edit(chat.id, { ...given, monitor_uid: "b" })).monitor_uid).toBe("b");
  expect(await chatChannels.test(chat.id)).toEqual({ queued: true, messages: 1 });
  await chatChannels.remove(chat.id);
  const mail = await emailChannels.create({ monitor_uid: "a" });
  expect(await emailChannels.list()).toEqual([await emailChannels.read(mail.id)]);
  expect((await emailChannels.edit(mail.id, { monitor_uid: "b" })).monitor_uid).toBe("b");
  expect(await emailChannels.test(mail.id)).toEqual({ queued: true, messages: 1 });
  await emailChannels.remove(mail.id);

  const { emailNotifications: mails, monitorNotifications: alerts } = client;
  const weekly = { type: "weekly_report_email", email: "ops@example.com" } as const;
  expect(Object.keys(await mails.types())).toContain(weekly.type);
  expect(await mails.subscribe(weekly)).toBe("subscription_created");
  expect(await mails.unsubscribe({ ...weekly, isPermanent: true })).toBe("unsubscribed");
  const slow = { type: slowBackendType, email: "ops@example.com" } as const;
  expect(Object.keys(await alerts.types())).toContain(slow.type);
  expect(await alerts.subscribe(slow)).toBe("subscription_created");
  expect(await alerts.unsubscribe(slow)).toBe("unsubscribed");
}

async function packages(client: CustomerClient, api: Api): Promise<void> {
  const password_hash = await hashPassword("correct horse", randomBytes);
  await api.store.updateTable("users").set({ may_publish: 1, password_hash }).execute();
  const bytes = Uint8Array.from(wheel("1.4.0", 200_000));
  const file = wheelName("1.4.0");
  await expect(client.newestPackage()).rejects.toMatchObject({ code: "NOT_FOUND" });
  const upload = { version: "1.4.0", file, content: bytes };
  const wrong = { username: "ada", password: "wrong horse" };
  await expect(client.uploadPackage(upload, wrong)).rejects.toMatchObject({ status: 401 });
  const stored = await client.uploadPackage(upload, { ...wrong, password: "correct horse" });
  expect(stored).toMatchObject({ version: "1.4.0", file, size: bytes.length });
  expect(await client.newestPackage()).toMatchObject({ version: "1.4.0", sha256: stored.sha256 });
  expect((await client.packageInfo()).versions).toEqual({ accel_pack: "1.4.0" });
  const pieces = await Array.fromAsync(await client.downloadPackage({ version: "1.4.0", file }));
  expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
  const none = client.downloadPackage({ version: "9.9", file });
  await expect(none).rejects.toMatchObject({ code: "NOT_FOUND" });
}
