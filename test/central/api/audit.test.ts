// The audit trail: a line for each change that was made, in its transaction, with who and what; none for what was refused, and never a secret.

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { auditable, madeIds } from "../../../src/central/api/audit-entry.ts";
import { dropAudit } from "../../../src/central/store/people/audit.ts";
import { openStore } from "../../../src/central/store/engine/database.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { member, openApi, type Api } from "./api-harness.ts";

let api: Api;
let token: string;
let siteId: string;
beforeAll(async () => {
  api = await openApi();
  token = await api.trial("auditor");
  const site = await api.call("POST", "/deployment-site/", { token, body: { tags: "eu" } });
  siteId = member(site.body, "id");
});
afterAll(async () => api[Symbol.asyncDispose]());

async function lines() {
  const rows = await api.store.selectFrom("audit").selectAll().orderBy("id").execute();
  return rows.map((row) => ({
    ...row,
    ids: Object(JSON.parse(row.ids)) as unknown,
    change: Object(JSON.parse(row.change)) as unknown,
  }));
}

/** What one call leaves. */
async function leftBy(action: () => Promise<unknown>) {
  const before = (await lines()).length;
  await action();
  return (await lines()).slice(before);
}

test("a trial is a change by nobody, of the customer and the user that it makes", async () => {
  const [line] = await leftBy(async () =>
    api.call("POST", "/trial/", {
      body: { username: "newcomer", email: "n@example.com" },
      headers: { "x-forwarded-for": "192.0.2.33" },
    }),
  );
  const { id, customer_id } = await api.store
    .selectFrom("users")
    .select(["id", "customer_id"])
    .where("username", "=", "newcomer")
    .executeTakeFirstOrThrow();
  expect(line).toMatchObject({
    at: api.clock.toISOString(),
    via: "api",
    who: "",
    user_id: id,
    customer_id,
    action: "POST /trial/",
    ids: { user_id: id, customer_id },
    change: { username: "newcomer", email: "n@example.com" },
    address: "192.0.2.33",
  });
});

test("changes by a user say who, which, and what; reading leaves nothing", async () => {
  const name = "audited.example.com";
  const left = await leftBy(async () => {
    await api.call("POST", "/domain/", {
      token,
      body: { name, deployment_site_id: Number(siteId) },
    });
    await api.call("GET", "/domain/", { token });
    await api.call("PUT", `/deployment-site/${siteId}/`, { token, body: { tags: "a, b" } });
    const mark = { attach_to_bot: "b", attach_to_domain: name };
    await api.call("POST", "/mark-as-bad-bot/192.0.2.1/", { token, body: mark });
    await api.call("DELETE", `/domain/${name}/`, { token });
  });
  const by_token_id = expect.any(Number);
  expect(left.map(({ who, action, ids, change }) => ({ who, action, ids, change }))).toEqual(
    [
      {
        action: "POST /domain/",
        ids: { id: expect.any(Number), by_token_id },
        change: { name, deployment_site_id: Number(siteId) },
      },
      {
        action: "PUT /deployment-site/:deployment_site_id/",
        ids: {
          id: Number(siteId),
          name16: expect.any(String),
          deployment_site_id: siteId,
          by_token_id,
        },
        change: { tags: "a, b" },
      },
      {
        action: expect.stringMatching(/^POST \/mark-as-bad-bot\//),
        ids: expect.objectContaining({ id: expect.any(Number) }),
        change: { attach_to_bot: "b", attach_to_domain: name },
      },
      {
        action: expect.stringMatching(/^DELETE \/domain\//),
        ids: { name, by_token_id },
        change: {},
      },
    ].map((one) => ({ who: "auditor", ...one })),
  );
  const requestIds = new Set(left.map(({ request_id: id }) => id));
  expect(requestIds.size).toBe(left.length);
});

describe("nothing is left by", () => {
  test.each<readonly [string, string, string, object, number]>([
    ["an invalid body", "POST", "/deployment-site/", { tags: 5 }, 400],
    ["what is missing", "PUT", "/deployment-site/999999/", { tags: "x" }, 404],
    ["a conflict", "POST", "/trial/", { username: "auditor" }, 409],
  ])("%s", async (_what, method, path, body, status) => {
    const left = await leftBy(async () => {
      expect((await api.call(method, path, { token, body })).status).toBe(status);
    });
    expect(left).toEqual([]);
  });

  test("a repetition under its key", async () => {
    const create = async () =>
      api.call("POST", "/deployment-site/", {
        token,
        body: { tags: "once" },
        headers: { "idempotency-key": "once" },
      });
    expect(await leftBy(create)).toHaveLength(1);
    expect(await leftBy(create)).toEqual([]);
  });
});

test("what belongs to a customer stays when it is deleted", async () => {
  const owner = await api.call("POST", "/trial/", { body: { username: "leaving" } });
  const id = Number(member(owner.body, "customer_id"));
  await api.call("DELETE", `/customer/${id}/`, { token: member(owner.body, "token") });
  const left = (await lines()).filter(({ customer_id }) => customer_id === id);
  expect(left.map(({ action }) => action)).toEqual([
    "POST /trial/",
    "DELETE /customer/:customer_id/",
  ]);
});

test("no secret comes into it", async () => {
  const planted = "cAnArY-0123456789";
  const userId = (await lines())[0]?.user_id;
  await api.call("PUT", `/user-profile/${userId}/`, { token, body: { password: planted } });
  const site = await api.call("GET", `/deployment-site/${siteId}/`, { token });
  const rotated = await api.call("POST", `/deployment-site/${siteId}/rotate-secret/`, { token });
  const kept = JSON.stringify(await lines());
  expect(kept).toContain('"PUT /user-profile/:pk/"');
  expect(kept).toContain('{"password":"[secret]"}');
  for (const secret of [
    planted,
    token,
    member(site.body, "secret16"),
    member(rotated.body, "secret16"),
  ])
    expect(kept).not.toContain(secret);
});

test.each([
  [
    { password: "x", note: "y" },
    { password: "[secret]", note: "y" },
  ],
  [
    { a: { private_key: "x", api_token: ["x"] } },
    { a: { private_key: "[secret]", api_token: "[secret]" } },
  ],
  [{ chat_hook_url: "https://chat.example.com/T0/B0/x" }, { chat_hook_url: "[secret]" }],
  [{ content: "-----BEGIN PRIVATE KEY-----" }, { content: "[secret]" }],
  [
    { content: "x".repeat(201) },
    { content: { characters: 201, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) } },
  ],
  [
    { list: Array.from({ length: 101 }, () => 1) },
    { list: [...Array.from({ length: 100 }, () => 1), "… 1 more"] },
  ],
  [
    { a: { b: { c: { d: { e: { f: { g: 1 } } } } } } },
    { a: { b: { c: { d: { e: { f: "…" } } } } } },
  ],
  [
    { flag: true, none: null, n: 1.5 },
    { flag: true, none: null, n: 1.5 },
  ],
])("%j is told as %j", (given, told) => {
  expect(auditable(given)).toEqual(told);
});

test("ids of an answer are told, what else is in it is not", () => {
  const answer = {
    id: 5,
    name16: "ab",
    deployment_site_id: 7,
    token: "t",
    secret16: "s",
    name: "n",
  };
  expect(madeIds(answer)).toEqual({ id: 5, name16: "ab", deployment_site_id: 7 });
  expect(madeIds(null)).toEqual({});
});

test("lines beyond their age go, the oldest first and in parts; the others stay", async () => {
  using dir = tempDir();
  const at = (day: number): string => new Date(Date.UTC(2031, 0, day)).toISOString();
  await using store = await openStore(join(dir.path, "central.db"), () => new Date(at(40)));
  const line = { via: "api", who: "x", action: "x", ids: "{}", change: "{}" } as const;
  const nulls = { user_id: null, customer_id: null, address: null, request_id: null };
  for (let day = 1; day <= 12; day++)
    await store
      .insertInto("audit")
      .values(Array.from({ length: 1_000 }, () => ({ at: at(day), ...line, ...nulls })))
      .execute();
  const left = async () => {
    const rows = await store.selectFrom("audit").select("at").distinct().orderBy("at").execute();
    return rows.map((row) => row.at);
  };
  expect(await dropAudit(store, new Date(at(1)))).toBe(0);
  expect(await dropAudit(store, new Date(at(6)))).toBe(5_000);
  expect(await left()).toEqual([6, 7, 8, 9, 10, 11, 12].map(at));
  expect(await dropAudit(store, new Date(at(12)))).toBe(6_000);
  expect(await left()).toEqual([at(12)]);
  expect(await dropAudit(store, new Date(at(13)))).toBe(1_000);
  expect(await dropAudit(store, new Date(at(13)))).toBe(0);
});
