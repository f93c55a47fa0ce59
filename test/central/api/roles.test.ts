// What tokens may do: every endpoint × every role, every endpoint × a token for another domain of the same customer, and how tokens end.

import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describedDocument } from "../../../src/central/api/http/described.ts";
import { dropEndedTokens, tokensMax } from "../../../src/central/store/people/tokens.ts";
import { mayAct, roles, type Role } from "../../../src/core/roles.ts";
import { at, createContract, type Operation } from "../../support/api-contract.ts";
import {
  bodyWith,
  examplesOf,
  makeWorld,
  missingOf,
  neutral,
  pathSlots,
  pathWith,
  type Slots,
  type World,
} from "../../support/api-world.ts";
import { until } from "../../support/until.ts";
import { openApi, type Api, type Reply } from "./api-harness.ts";

const { operations } = createContract(describedDocument());

type Needed = { readonly operation: Operation; readonly role: Role; readonly scope: string };

/** Those that take a token, with what they need. */
const guarded: readonly Needed[] = operations.flatMap((operation) => {
  const role = roles.find((one) => one === at(operation.told, "security", "0", "Token", "0"));
  const scope = String(at(operation.told, "x-token-scope"));
  return role === undefined ? [] : [{ operation, role, scope }];
});
const named = guarded.map((one) => [`${one.operation.method} ${one.operation.path}`, one] as const);

let api: Api;
let world: World;
/** Of the same customer, beside the domain of the world. */
const second = "second.example.com";

beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 1e6, trialsTotal: 1e6 });
  world = await makeWorld(api, "roles");
  await api.call("POST", "/domain/", {
    token: world.token,
    body: { name: second, deployment_site_id: Number(world.slots["deployment_site_id"]) },
  });
});
afterAll(async () => api[Symbol.asyncDispose]());

async function issue(asked: object, by = world.token): Promise<{ id: number; token: string }> {
  const reply = await api.call("POST", "/tokens/", { token: by, body: asked });
  expect(reply.status, JSON.stringify(reply.body)).toBe(201);
  return Object(reply.body);
}

async function ask(operation: Operation, token: string, slots: Slots): Promise<Reply> {
  const [example] = examplesOf(operation);
  const wait = JSON.stringify(operation.told["parameters"]).includes('"name":"wait"');
  const body = example === undefined ? {} : { body: bodyWith(example, slots) };
  const path = `${pathWith(operation, slots)}${wait ? "?wait=0" : ""}`;
  return api.call(operation.method, path, { token, ...body });
}

test("every operation with a token names a role and a scope, and every role is needed somewhere", () => {
  const withToken = operations.filter(({ told }) => JSON.stringify(told).includes('{"Token":["'));
  expect(guarded).toHaveLength(withToken.length);
  expect(guarded.length).toBeGreaterThan(60);
  expect(new Set(guarded.map(({ role }) => role))).toEqual(new Set(roles));
  expect(new Set(guarded.map(({ scope }) => scope))).toEqual(new Set(["domain", "customer"]));
  const changing = guarded.filter(({ operation: { method } }) => method !== "GET");
  const looking = changing.filter(({ role }) => role === "read");
  const paths = looking.map(({ operation }) => operation.path);
  expect(paths.toSorted()).toEqual(["/devlove/validate/", "/session/"]);
});

test.each(named)("%s takes its role and those above it", async (_name, { operation, role }) => {
  for (const has of roles) {
    const { token } = await issue({ name: has, role: has });
    const isEnough = mayAct(has, role);
    // What is allowed concerns things that are not there, so that the world stays.
    const reply = await ask(operation, token, isEnough ? missingOf(world.slots) : world.slots);
    if (isEnough) expect([has, reply.status]).not.toEqual([has, 403]);
    else
      expect([has, reply.status, at(reply.body, "detail")]).toEqual([
        has,
        403,
        `this token has the role ${has}; ${String(operation.told["operationId"])} needs the role ${role}`,
      ]);
  }
});

test.each(named.filter(([, { scope }]) => scope === "customer"))(
  "%s refuses a token for some domains",
  async (_name, { operation }) => {
    const { token } = await issue({ name: "one domain", role: "owner", domains: [second] });
    const reply = await ask(operation, token, world.slots);
    expect([reply.status, at(reply.body, "detail")]).toEqual([
      403,
      `this token is for ${second} alone; ${String(operation.told["operationId"])} is about everything of the customer`,
    ]);
  },
);

/** Of nobody's domain. */
const common = new Set(["/user-profile/{pk}/", "/download/accel_pack/{version}/{file}/"]);

test.each(
  named.filter(([, { scope, operation }]) => scope === "domain" && !common.has(operation.path)),
)("%s shows and changes nothing of another domain", async (_name, { operation }) => {
  const { token } = await issue({ name: "one domain", role: "owner", domains: [second] });
  const [there, nowhere] = [world.slots, missingOf(world.slots)];
  const isNamed = pathSlots(operation).length > 0;
  const reply = await ask(operation, token, there);
  const text = JSON.stringify(reply.body ?? "");
  if (!isNamed) expect(text).not.toContain(there["bot"]);
  if (reply.status < 300) {
    for (const slot of ["bot", "viewset", "import"]) expect(text).not.toContain(`"${there[slot]}"`);
    if (operation.path !== "/devlove/validate/") expect(text).not.toContain(there["domain"]);
  } else {
    const other = await ask(operation, token, nowhere);
    expect(neutral(reply, there, "")).toEqual(neutral(other, nowhere, ""));
  }
});

test("a token for one domain works there, and lists that domain alone", async () => {
  const { token } = await issue({ name: "clears", role: "clear", domains: [second.toUpperCase()] });
  const domains = await api.call("GET", "/domain/", { token });
  expect(domains.body).toMatchObject([{ name: second }]);
  const body = { url_path_patterns: ["path:css"] };
  const clear = async (domain: string): Promise<number> =>
    (await api.call("POST", `/clear-accelerator-cache/${domain}/?wait=0`, { token, body })).status;
  expect(await clear(second)).toBe(200);
  expect(await clear(world.slots["domain"] ?? "")).toBe(404);
  const logs = await api.call("GET", "/incominglogs/", { token });
  expect(logs.body).toMatchObject({
    logs_data: { deployments: [{ domains: [{ domain_name: second }] }] },
  });
  expect(JSON.stringify(logs.body)).not.toContain(world.slots["domain"]);
});

test("a token for some domains gets no answer that another token was given, by an Idempotency-Key", async () => {
  const path = `/clear-accelerator-cache/${world.slots["domain"]}/?wait=0`;
  const headers = { "idempotency-key": "deploy-42" };
  const body = { url_path_patterns: ["path:css"] };
  const clear = async (token: string): Promise<Reply> =>
    api.call("POST", path, { token, headers, body });
  const first = await clear(world.token);
  expect(first.status).toBe(200);
  const { token } = await issue({ name: "limited", role: "clear", domains: [second] });
  expect((await clear(token)).status).toBe(404);
  const again = await clear(world.token);
  expect(at(again.body, "clear_id")).toBe(at(first.body, "clear_id"));
});

test("a token for some domains links its domain to no site, and learns of none", async () => {
  const { token } = await issue({ name: "limited", role: "owner", domains: [second] });
  const site = Number(world.slots["deployment_site_id"]);
  for (const deployment_site_id of [site, site + 1_000]) {
    const body = { deployment_site_id };
    expect((await api.call("PUT", `/domain/${second}/`, { token, body })).status).toBe(403);
  }
  const made = await api.call("POST", "/deployment-site/", {
    token: world.token,
    body: { tags: "apart" },
  });
  const start = async (id: unknown): Promise<Reply> =>
    api.call("POST", `/import-viewset/${second}/${String(id)}/v9/`, { token, body: {} });
  const [apart, nowhere] = [await start(at(made.body, "id")), await start(4_711)];
  expect([apart.status, nowhere.status]).toEqual([404, 404]);
  expect((await start(site)).status).toBe(200);
});

test("a request that is long on its way changes nothing when its token was revoked meanwhile", async () => {
  const { id, token } = await issue({ name: "leaked", role: "owner" });
  const text = JSON.stringify({ name: "reborn", role: "owner" });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const request = httpRequest({
    port: api.port,
    method: "POST",
    path: "/presentation-api/v1/tokens/",
    headers: {
      authorization: `Token ${token}`,
      "content-type": "application/json",
      "content-length": text.length,
    },
  });
  request.on("response", (response) => {
    resolve(response.statusCode ?? 0);
    response.resume();
  });
  request.on("error", reject);
  request.write(text.slice(0, -1));
  await until("it is let in", async () => {
    const { body } = await api.call("GET", `/tokens/${id}/`, { token: world.token });
    return at(body, "when_last_used") !== null;
  });
  const revoked = await api.call("DELETE", `/tokens/${id}/`, { token: world.token });
  expect(revoked.status).toBe(204);
  request.end(text.slice(-1));
  expect(await promise).toBe(401);
  const list = await api.call("GET", "/tokens/", { token: world.token });
  expect(JSON.stringify(list.body)).not.toContain("reborn");
});

test("the audit trail says which token was made, revoked, and did it", async () => {
  const made = await issue({ name: "traced", role: "owner" });
  const victim = await issue({ name: "victim", role: "read" }, made.token);
  await api.call("DELETE", `/tokens/${victim.id}/`, { token: made.token });
  const rows = await api.store
    .selectFrom("audit")
    .select(["action", "ids"])
    .orderBy("id", "desc")
    .limit(2)
    .execute();
  expect(rows.map(({ action, ids }) => [action, JSON.parse(ids)])).toEqual([
    ["DELETE /tokens/:token_id/", { token_id: String(victim.id), by_token_id: made.id }],
    ["POST /tokens/", { id: victim.id, by_token_id: made.id }],
  ]);
});

test("tokens that ended long ago are forgotten", async () => {
  const { id } = await issue({ name: "old", role: "read" });
  await api.call("DELETE", `/tokens/${id}/`, { token: world.token });
  const isThere = async (): Promise<boolean> =>
    (await api.store.selectFrom("tokens").select("id").where("id", "=", id).execute()).length > 0;
  await dropEndedTokens(api.store, api.clock.toISOString());
  expect(await isThere()).toBe(true);
  await dropEndedTokens(api.store, new Date(api.clock.getTime() + 1).toISOString());
  expect(await isThere()).toBe(false);
  expect((await api.call("GET", "/domain/", { token: world.token })).status).toBe(200);
});

test("secrets of deployment sites are for owners", async () => {
  const { token } = await issue({ name: "looks", role: "read" });
  const path = `/deployment-site/${world.slots["deployment_site_id"]}/`;
  expect((await api.call("GET", path, { token })).body).toMatchObject({ secret16: null });
  const list = JSON.stringify((await api.call("GET", "/deployment-site/", { token })).body);
  expect(list).toContain('"secret16":null');
  expect(list).not.toMatch(/"secret16":"/);
  expect((await api.call("GET", path, { token: world.token })).body).toMatchObject({
    secret16: expect.stringMatching(/^[0-9a-f]{32}$/),
  });
});

test("a token is shown once, says when it was used, and ends when it is revoked or its time is up", async () => {
  const { id, token } = await issue({ name: "short", role: "read", lifetime_seconds: 60 });
  const read = async (): Promise<Record<string, unknown>> => {
    const { body } = await api.call("GET", `/tokens/${id}/`, { token: world.token });
    return Object(body);
  };
  expect(await read()).toEqual({
    id,
    name: "short",
    role: "read",
    domains: null,
    username: "roles",
    when_created: expect.any(String),
    when_expires: expect.any(String),
    when_last_used: null,
  });
  const use = async (): Promise<number> => (await api.call("GET", "/domain/", { token })).status;
  expect(await use()).toBe(200);
  const usedAt = api.clock.toISOString();
  await until("its use is noted", async () => (await read())["when_last_used"] === usedAt);
  api.clock.setTime(api.clock.getTime() + 59_000);
  expect(await use()).toBe(200);
  api.clock.setTime(api.clock.getTime() + 1_000);
  expect(await use()).toBe(401);
  const list = await api.call("GET", "/tokens/", { token: world.token });
  expect(JSON.stringify(list.body)).not.toContain(token);
  expect(JSON.stringify(list.body)).not.toContain('"short"');
  const { id: other, token: held } = await issue({ name: "revoked", role: "owner" });
  const revoked = await api.call("DELETE", `/tokens/${other}/`, { token: world.token });
  expect(revoked.status).toBe(204);
  expect((await api.call("GET", "/domain/", { token: held })).status).toBe(401);
  const again = await api.call("DELETE", `/tokens/${other}/`, { token: world.token });
  expect(again.status).toBe(404);
});

test("what is asked for is checked: names, roles, domains of the customer, and how many there are", async () => {
  const faults = async (body: object): Promise<unknown> => {
    const reply = await api.call("POST", "/tokens/", { token: world.token, body });
    return [reply.status, at(reply.body, "errors", "0", "path")];
  };
  expect(await faults({ name: "a" })).toEqual([400, "/role"]);
  expect(await faults({ name: "a", role: "root" })).toEqual([400, "/role"]);
  expect(await faults({ name: "\u001b[31m", role: "read" })).toEqual([400, "/name"]);
  expect(await faults({ name: "a", role: "read", domains: [] })).toEqual([400, "/domains"]);
  const foreign = [second, "www.example.org"];
  expect(await faults({ name: "a", role: "read", domains: foreign })).toEqual([400, "/domains/1"]);
  expect(await faults({ name: "a", role: "read", lifetime_seconds: 1 })).toEqual([
    400,
    "/lifetime_seconds",
  ]);
  const { token, username } = await makeWorld(api, "many");
  const { id } = await api.store
    .selectFrom("users")
    .select("id")
    .where("username", "=", username)
    .executeTakeFirstOrThrow();
  const when_created = api.clock.toISOString();
  for (let no = 2; no < tokensMax; no++)
    await api.store
      .insertInto("tokens")
      .values({ user_id: id, digest: `digest ${no}`, when_created })
      .execute();
  const reply = await api.call("POST", "/tokens/", { token, body: { name: "a", role: "read" } });
  expect([reply.status, at(reply.body, "detail")]).toEqual([
    409,
    `a customer has at most ${tokensMax} tokens; revoke one of them`,
  ]);
});
