// Types, subscriptions and channels of alerts over the API: every answer of the specification, limits, and whose is whose.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { emailNotificationTypes, staleListType } from "../../../src/wire/customer/notifications.ts";
import { member, openApi, type Api } from "./api-harness.ts";

let api: Api;
let token: string;
let other: string;
let made = 0;

beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 1_000, trialsTotal: 1_000 });
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  token = await api.trial(`user${++made}`);
  other = await api.trial(`other${made}`);
});

const slow = "maker.monitor.dashboards.for_alerts.for_domains.domains_backend_slow_response_graphs";
const unreachable =
  "maker.monitor.dashboards.for_alerts.for_edge_servers.customer_backend_unreachable_graphs";
const kinds = [
  ["email", "weekly_report_email"],
  ["monitor", slow],
] as const;

async function call(verb: string, kind: string, body: object, by = token) {
  const reply = await api.call("POST", `/notifications/${kind}/${verb}/`, { token: by, body });
  return [reply.status, reply.status < 300 ? member(reply.body, "status") : reply.body] as const;
}

describe("notifications", () => {
  test("the types are those of the specification, each with a description", async () => {
    const email = await api.call("GET", "/notifications/email/types/", { token });
    expect(email.status).toBe(200);
    expect(email.body).toEqual({ notification_types: emailNotificationTypes });
    expect(Object.keys(emailNotificationTypes)).toEqual([
      "weekly_report_email",
      "send_email_to_customer_about_certificates_expiring",
      "send_email_to_customers_about_old_versions_of_accel_pack",
      "send_email_to_customer_about_accel_pack_push",
      "send_email_to_customer_about_domain_images_optimization_blocked_for_today",
    ]);
    const monitor = await api.call("GET", "/notifications/monitor/types/", { token });
    expect(monitor.body).toEqual({
      notification_types: {
        [slow]: expect.any(String),
        [unreachable]: expect.any(String),
        // Ours.
        [staleListType]: expect.any(String),
      },
    });
  });

  test.each(kinds)("%s: every status, in every state", async (kind, notification_type) => {
    const start = api.clock; // Time goes forward only: limits go by it.
    const body = { notification_type, email: "ada@example.com" };
    const good = { ...body, is_permanent: true };
    expect(await call("unsubscribe", kind, body)).toEqual([200, "no_subscription"]);
    expect(await call("subscribe", kind, body)).toEqual([201, "subscription_created"]);
    expect(await call("subscribe", kind, body)).toEqual([201, "subscription_exists"]);
    expect(await call("unsubscribe", kind, body)).toEqual([200, "unsubscribed"]);
    expect(await call("unsubscribe", kind, body)).toEqual([200, "subscription_inactive"]);
    expect(await call("subscribe", kind, body)).toEqual([201, "subscription_reactivated"]);
    expect(await call("unsubscribe", kind, { ...body, is_permanent: "False" })).toEqual([
      200,
      "unsubscribed",
    ]);
    expect(await call("unsubscribe", kind, good)).toEqual([200, "unsubscribed"]);
    expect(await call("unsubscribe", kind, good)).toEqual([200, "subscription_inactive"]);
    expect(await call("subscribe", kind, body)).toEqual([201, "subscription_reactivated"]);
    // Suspended: after 30 days it is as if nothing had been said.
    expect(await call("unsubscribe", kind, body)).toEqual([200, "unsubscribed"]);
    api.clock = new Date(start.getTime() + 30 * 86_400_000 - 1);
    expect(await call("unsubscribe", kind, body)).toEqual([200, "subscription_inactive"]);
    api.clock = new Date(start.getTime() + 30 * 86_400_000);
    expect(await call("subscribe", kind, body)).toEqual([201, "subscription_exists"]);
  });

  test("one address is one subscription in any spelling; types, kinds and customers are apart", async () => {
    const body = { notification_type: "weekly_report_email", email: "Ada@Example.com" };
    expect(await call("subscribe", "email", body)).toEqual([201, "subscription_created"]);
    const small = { ...body, email: "ada@example.com" };
    expect(await call("subscribe", "email", small)).toEqual([201, "subscription_exists"]);
    const push = { ...body, notification_type: "send_email_to_customer_about_accel_pack_push" };
    expect(await call("unsubscribe", "email", push)).toEqual([200, "no_subscription"]);
    expect(await call("unsubscribe", "email", body, other)).toEqual([200, "no_subscription"]);
    const monitor = { ...body, notification_type: slow };
    expect(await call("unsubscribe", "monitor", monitor)).toEqual([200, "no_subscription"]);
  });

  test.each([
    ["email", { notification_type: slow, email: "a@x.org" }, "/notification_type"],
    [
      "monitor",
      { notification_type: "weekly_report_email", email: "a@x.org" },
      "/notification_type",
    ],
    ["email", { notification_type: "weekly_report_email", email: "a" }, "/email"],
    ["email", { notification_type: "weekly_report_email", email: "a@x.org,b@x.org" }, "/email"],
    [
      "email",
      { notification_type: "weekly_report_email", email: "a@x.org\r\nBcc: b@x.org" },
      "/email",
    ],
    ["email", { notification_type: "weekly_report_email" }, "/email"],
    ["email", { email: "a@x.org" }, "/notification_type"],
    [
      "email",
      { notification_type: "weekly_report_email", email: "a@x.org", is_permanent: true },
      "/is_permanent",
    ],
  ])("%s: %j is refused with its field", async (kind, body, path) => {
    const reply = await api.call("POST", `/notifications/${kind}/subscribe/`, { token, body });
    expect(reply.status).toBe(400);
    expect(reply.body).toMatchObject({ errors: [{ path }] });
  });

  test("a customer has so many subscriptions and no more", async () => {
    const customer = await api.store
      .selectFrom("customers")
      .select("id")
      .where("name", "=", `user${made}`)
      .executeTakeFirstOrThrow();
    const row = (i: number) => ({
      customer_id: customer.id,
      channel: "email" as const,
      type: "weekly_report_email",
      email: `n${i}@x.org`,
      email_key: `n${i}@x.org`,
      state: "ended" as const,
      suspended_until: null,
      link_digest: `d${made}-${i}`,
      link_sealed: "",
      when_created: "",
      when_updated: "",
    });
    await api.store
      .insertInto("subscriptions")
      .values(Array.from({ length: 1_000 }, (_, i) => row(i)))
      .execute();
    const body = { notification_type: "weekly_report_email", email: "one-more@x.org" };
    expect((await call("subscribe", "email", body))[0]).toBe(409);
    expect((await call("subscribe", "email", { ...body, email: "n7@x.org" }))[1]).toBe(
      "subscription_reactivated",
    );
  });
});

const chat = {
  monitor_uid: "ops",
  chat_channel_name: "#ops",
  chat_hook_url: "https://h.example/x",
};

describe("channels of alerts", () => {
  test.each([
    ["chat", chat, { ...chat, chat_channel_name: "#night" }],
    ["email", { monitor_uid: "ops" }, { monitor_uid: "night" }],
  ])("%s: created, read, listed, edited, deleted", async (kind, body, edited) => {
    const path = `/monitor-notification-channel/${kind}/`;
    const start = api.clock;
    expect((await api.call("GET", path, { token })).body).toEqual([]);
    const reply = await api.call("POST", path, { token, body });
    expect(reply.status).toBe(201);
    const id = Number(member(reply.body, "id"));
    const customer = { id: expect.any(Number) };
    const times = { when_created: start.toISOString(), when_updated: start.toISOString() };
    const row = { id, ...body, customer, ...times };
    expect(reply.body).toEqual(row);
    expect((await api.call("GET", `${path}${id}/`, { token })).body).toEqual(row);
    expect((await api.call("GET", path, { token })).body).toEqual([row]);

    api.clock = new Date(start.getTime() + 60_000);
    const changed = { ...row, ...edited, when_updated: api.clock.toISOString() };
    // As it was read, with the read-only fields.
    const put = await api.call("PUT", `${path}${id}/`, {
      token,
      body: { ...row, ...edited, customer: { id: 1 } },
    });
    expect([put.status, put.body]).toEqual([200, changed]);

    for (const method of ["GET", "PUT", "DELETE"]) {
      const options = { token: other, ...(method === "PUT" && { body: edited }) };
      const [theirs, missing] = [
        await api.call(method, `${path}${id}/`, options),
        await api.call(method, `${path}999999/`, options),
      ];
      expect(theirs.status).toBe(404);
      expect(JSON.stringify(theirs.body).replaceAll(String(id), "N")).toBe(
        JSON.stringify(missing.body).replaceAll("999999", "N"),
      );
    }
    expect((await api.call("DELETE", `${path}${id}/`, { token })).status).toBe(204);
    expect((await api.call("GET", `${path}${id}/`, { token })).status).toBe(404);
  });

  test.each([
    ["chat", chat],
    ["email", { monitor_uid: "ops" }],
  ])("%s: a monitor_uid is unique for customer and kind", async (kind, body) => {
    const path = `/monitor-notification-channel/${kind}/`;
    const first = await api.call("POST", path, { token, body });
    expect((await api.call("POST", path, { token, body })).status).toBe(409);
    expect((await api.call("POST", path, { token: other, body })).status).toBe(201);
    const second = { ...body, monitor_uid: "second" };
    const id = member((await api.call("POST", path, { token, body: second })).body, "id");
    expect((await api.call("PUT", `${path}${id}/`, { token, body })).status).toBe(409);
    const own = `${path}${member(first.body, "id")}/`;
    expect((await api.call("PUT", own, { token, body })).status).toBe(200);
  });

  test.each([
    [{ ...chat, chat_hook_url: "http://127.0.0.1/x" }, "/chat_hook_url"],
    [{ ...chat, chat_hook_url: "http://[fd00::1]/x" }, "/chat_hook_url"],
    [{ ...chat, chat_hook_url: "file:///etc/passwd" }, "/chat_hook_url"],
    [{ ...chat, monitor_uid: "" }, "/monitor_uid"],
    [{ ...chat, monitor_uid: "a\nb" }, "/monitor_uid"],
    [{ monitor_uid: "x", chat_channel_name: "y" }, "/chat_hook_url"],
  ])("%j is refused with its field", async (body, path) => {
    const reply = await api.call("POST", "/monitor-notification-channel/chat/", { token, body });
    expect(reply.status).toBe(400);
    expect(reply.body).toMatchObject({
      errors: expect.arrayContaining([expect.objectContaining({ path })]),
    });
  });

  test("hook URLs lie sealed; there are at most 50 channels", async () => {
    const path = "/monitor-notification-channel/chat/";
    const secret = "https://h.example/services/very-secret";
    for (let i = 0; i < 50; i++) {
      const body = { ...chat, monitor_uid: `c${i}`, chat_hook_url: secret };
      expect((await api.call("POST", path, { token, body })).status).toBe(201);
    }
    expect((await api.call("POST", path, { token, body: chat })).status).toBe(409);
    const tables = ["chat_channels", "audit"] as const;
    for (const table of tables)
      expect(JSON.stringify(await api.store.selectFrom(table).selectAll().execute())).not.toContain(
        "very-secret",
      );
  });
});

test("where no mail can be sent, a recovery is refused, whoever asks", async () => {
  await using silent = await openApi({ sendsMail: false });
  await silent.call("POST", "/trial/", { body: { username: "rec", email: "rec@x.org" } });
  for (const username of ["rec", "nobody"]) {
    const reply = await silent.call("POST", "/tokens/start-recovery/", {
      body: { username, email: "rec@x.org" },
    });
    expect([reply.status, member(reply.body, "detail")]).toEqual([
      503,
      expect.stringContaining("sends no mail"),
    ]);
  }
});

test("a recovery is answered the same for whoever asks, and limited by address", async () => {
  await api.call("POST", "/trial/", { body: { username: "rec", email: "rec@x.org" } });
  const path = "/tokens/start-recovery/";
  const ask = async (username: string, email: string, from: string) =>
    api.call("POST", path, {
      body: { username, email },
      headers: { "x-forwarded-for": from },
    });
  const known = await ask("rec", "rec@x.org", "203.0.113.1");
  const unknown = await ask("nobody", "rec@x.org", "203.0.113.1");
  expect([known.status, known.body]).toEqual([200, { status: "email sent" }]);
  expect([unknown.status, unknown.body]).toEqual([known.status, known.body]);
  const names = (headers: object) => Object.keys(headers).sort();
  expect(names(unknown.headers)).toEqual(names(known.headers));
  const statuses: number[] = [];
  for (let i = 0; i < 25; i++) statuses.push((await ask("x", "y", "203.0.113.7")).status);
  expect(statuses).toEqual([...Array<number>(20).fill(200), ...Array<number>(5).fill(429)]);
  expect((await ask("x", "y", "203.0.113.8")).status).toBe(200);
});
