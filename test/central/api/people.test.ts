// Trials, users and customers: who may start, see, edit and delete what.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHash, randomUUID } from "node:crypto";
import { member, openApi, type Api } from "./api-harness.ts";

let api: Api;
let userToken: string;
let userId: string;
beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 12 });
  const headers = { "x-forwarded-for": "192.0.2.7" };
  const { body } = await api.call("POST", "/trial/", { body: { username: "mailed" }, headers });
  userToken = member(body, "token");
  userId = member(body, "user_id");
});
afterAll(async () => api[Symbol.asyncDispose]());

/** A second user of a trial's customer, as the operator makes one. */
async function colleague(username: string, customerId: number): Promise<string> {
  const { id } = await api.store
    .insertInto("users")
    .values({
      customer_id: customerId,
      username,
      email: "",
      first_name: "",
      last_name: "",
      password_hash: null,
      may_publish: 0,
      may_read_logs: 0,
      date_joined: api.clock.toISOString(),
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  const token = `token-of-${username}`;
  const digest = createHash("sha256").update(token).digest("hex");
  await api.store
    .insertInto("tokens")
    .values({ user_id: id, digest, when_created: api.clock.toISOString(), when_revoked: null })
    .execute();
  return token;
}

describe("trial", () => {
  test("answers with a token that works; the store holds its digest only", async () => {
    const reply = await api.call("POST", "/trial/", { body: { username: "t1", email: "t@x.org" } });
    expect(reply.status).toBe(201);
    expect(reply.body).toMatchObject({
      username: "t1",
      user_id: expect.any(Number),
      customer_id: expect.any(Number),
    });
    const token = member(reply.body, "token");
    expect((await api.call("GET", "/customer/", { token })).body).toEqual([
      { id: Number(member(reply.body, "customer_id")), name: "t1" },
    ]);
    const rows = await api.store.selectFrom("tokens").selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(token);
  });

  test("a username in use is a conflict, a bad one is refused", async () => {
    await api.trial("t2");
    expect((await api.call("POST", "/trial/", { body: { username: "t2" } })).status).toBe(409);
    expect((await api.call("POST", "/trial/", { body: { username: "t 3" } })).status).toBe(400);
  });

  test("is limited by the visitor's address behind the proxy", async () => {
    const start = async (username: string, address: string) =>
      api.call("POST", "/trial/", {
        body: { username },
        headers: { "x-forwarded-for": address },
      });
    for (let n = 0; n < 12; n++) expect((await start(`flood${n}`, "192.0.2.1")).status).toBe(201);
    const refused = await start("flood-more", "192.0.2.1");
    expect(refused.status).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect((await start("calm", "192.0.2.2")).status).toBe(201);
  });

  test("a repeated start is no second one; another address, key or request is another", async () => {
    const start = async (address: string, key: string = randomUUID(), more = "") =>
      api.call("POST", "/trial/", {
        body: { username: `once-${address}${more}` },
        headers: { "idempotency-key": key, "x-forwarded-for": address },
      });
    const key = randomUUID();
    const [first, again] = [await start("192.0.2.3", key), await start("192.0.2.3", key)];
    expect(first.status).toBe(201);
    expect(again.body).toEqual(first.body);
    const token = member(first.body, "token");
    expect(member((await start("192.0.2.4", key)).body, "token")).not.toBe(token);
    expect((await start("192.0.2.3")).status).toBe(409);
    const other = await start("192.0.2.3", key, "b");
    expect(other.status).toBe(201);
    expect(member(other.body, "token")).not.toBe(token);
  });

  test.each(["jörg@example.de", "ada@exämple.de", "ada@@example.de", "ada @example.de", "ada"])(
    "%s gets no mail, so it is refused, here and in the profile",
    async (email) => {
      const headers = { "x-forwarded-for": "192.0.2.6" };
      const refused = { errors: [{ path: "/email", message: expect.stringMatching(/in ASCII/) }] };
      const body = { username: "umlaut", email };
      const reply = await api.call("POST", "/trial/", { body, headers });
      expect(reply).toMatchObject({ status: 400, body: refused });
      const profile = `/user-profile/${userId}/`;
      expect(await api.call("PUT", profile, { token: userToken, body: { email } })).toMatchObject({
        status: 400,
        body: refused,
      });
    },
  );

  test("an address whose domain is spelled in ASCII, and none, are fine", async () => {
    for (const email of ["ada@xn--exmple-cua.de", ""]) {
      const put = await api.call("PUT", `/user-profile/${userId}/`, {
        token: userToken,
        body: { email },
      });
      expect(put).toMatchObject({ status: 200, body: { email } });
    }
  });

  test("takes no key that a second caller behind the same address could come upon", async () => {
    const start = async (key: string) =>
      api.call("POST", "/trial/", {
        body: { username: "office" },
        headers: { "idempotency-key": key, "x-forwarded-for": "192.0.2.5" },
      });
    for (const key of ["1", "site-1", "x".repeat(15)]) {
      const reply = await start(key);
      expect(reply.status).toBe(400);
      expect(reply.body).toMatchObject({
        errors: [{ path: "Idempotency-Key", message: expect.stringContaining("at least 16") }],
      });
    }
    expect((await start("x".repeat(16))).status).toBe(201);
  });
});

describe("user profile", () => {
  test("is read, edited and never shows a password", async () => {
    const trial = await api.call("POST", "/trial/", { body: { username: "p1" } });
    const token = member(trial.body, "token");
    const path = `/user-profile/${member(trial.body, "user_id")}/`;
    const read = await api.call("GET", path, { token });
    expect(read.body).toMatchObject({ username: "p1", first_name: "", email: "" });
    const body = { ...Object(read.body), first_name: "Ada", password: "correct horse" };
    const put = await api.call("PUT", path, { token, body });
    expect(put).toMatchObject({ status: 200, body: { first_name: "Ada" } });
    expect(put.body).not.toHaveProperty("password");
    const { password_hash: hash } = await api.store
      .selectFrom("users")
      .select("password_hash")
      .where("username", "=", "p1")
      .executeTakeFirstOrThrow();
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
    await api.call("PUT", path, { token, body: { last_name: "L" } });
    const row = await api.store
      .selectFrom("users")
      .select(["password_hash", "first_name", "last_name"])
      .where("username", "=", "p1")
      .executeTakeFirstOrThrow();
    expect(row).toEqual({ password_hash: hash, first_name: "Ada", last_name: "L" });
  });

  test("a name in use is a conflict; others' profiles are not to be had", async () => {
    const own = await api.call("POST", "/trial/", {
      body: { username: "p2" },
      headers: { "x-forwarded-for": "198.51.100.1" },
    });
    const token = member(own.body, "token");
    const path = `/user-profile/${member(own.body, "user_id")}/`;
    const taken = await api.call("PUT", path, { token, body: { username: "p1" } });
    expect(taken.status).toBe(409);
    const mate = await colleague("p2-mate", Number(member(own.body, "customer_id")));
    expect((await api.call("GET", path, { token: mate })).status).toBe(403);
    const stranger = await api.call("GET", "/user-profile/1/", { token });
    expect(stranger.status).toBe(404);
  });
});

describe("customer", () => {
  test("is renamed by its users and deleted by its creator only, with all that it owns", async () => {
    const owner = await api.call("POST", "/trial/", {
      body: { username: "c1" },
      headers: { "x-forwarded-for": "198.51.100.2" },
    });
    const token = member(owner.body, "token");
    const customerId = member(owner.body, "customer_id");
    const mate = await colleague("c1-mate", Number(customerId));
    const path = `/customer/${customerId}/`;
    const renamed = await api.call("PUT", path, { token: mate, body: { name: "C One" } });
    expect(renamed.body).toEqual({ id: Number(customerId), name: "C One" });

    const site = await api.call("POST", "/deployment-site/", { token, body: { tags: "" } });
    const siteId = Number(member(site.body, "id"));
    expect(site.body).toMatchObject({ customer: { name: "C One" } });
    const body = { name: "c1.example.com", deployment_site_id: siteId };
    await api.call("POST", "/domain/", { token, body });
    for (const owned of [path, `/deployment-site/${siteId}/`, "/domain/c1.example.com/"])
      expect((await api.call("DELETE", owned, { token: mate })).status).toBe(403);

    const head = (await api.journal(siteId)).length;
    expect((await api.call("DELETE", path, { token })).status).toBe(204);
    expect(await api.journal(siteId, head)).toEqual([
      { kind: "domains.changed", body: { domains: [] } },
    ]);
    expect(api.closed).toContain(siteId);
    expect(api.woken.at(-1)).toEqual([siteId]);
    expect((await api.call("GET", "/domain/", { token })).status).toBe(401);
    const left = await api.store
      .selectFrom("deployment_sites")
      .select(["when_deleted", "secret_sealed"])
      .where("id", "=", siteId)
      .executeTakeFirstOrThrow();
    expect(left.when_deleted).not.toBeNull();
  });
});
