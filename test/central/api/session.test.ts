// Sessions of browsers: how they begin and end, and that no other site's page can use one.

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSealer } from "../../../src/base/seal.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { finishRecovery } from "../../../src/central/store/people/recovery.ts";
import { tokensMax } from "../../../src/central/store/people/tokens.ts";
import { at } from "../../support/api-contract.ts";
import { basic } from "../../support/wheels.ts";
import { openApi, type Api, type Reply } from "./api-harness.ts";

const password = "correct horse battery";
let api: Api;
let token: string;

beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 1e6, trialsTotal: 1e6 });
  const trial = await api.call("POST", "/trial/", { body: { username: "ada" } });
  token = String(at(trial.body, "token"));
  const profile = `/user-profile/${String(at(trial.body, "user_id"))}/`;
  expect((await api.call("PUT", profile, { token, body: { password } })).status).toBe(200);
});
afterAll(async () => api[Symbol.asyncDispose]());

const signIn = async (headers: Record<string, string>): Promise<Reply> =>
  api.call("POST", "/session/", { headers });

function cookieOf(reply: Reply): string {
  const [text = ""] = [reply.headers["set-cookie"]].flat();
  expect(text).toMatch(
    /^__Host-accel-session=[\w-]*; Max-Age=\d+; Path=\/; Secure; HttpOnly; SameSite=Strict$/,
  );
  return text.split(";")[0] ?? "";
}

const own = { "sec-fetch-site": "same-origin" };
const change = { ...own, "x-accel-console": "1" };

async function asked(cookie: string, headers: Record<string, string> = own): Promise<number> {
  return (await api.call("GET", "/session/", { headers: { cookie, ...headers } })).status;
}

test("a token begins a session, which is that token; signing out leaves it in force", async () => {
  const reply = await signIn({ authorization: `Token ${token}` });
  expect(reply.status).toBe(201);
  expect(reply.body).toMatchObject({ username: "ada", role: "owner", domains: null });
  const cookie = cookieOf(reply);
  expect(await asked(cookie)).toBe(200);
  expect(await asked(`theme=dark; ${cookie}; other=1`)).toBe(200);
  const out = await api.call("DELETE", "/session/", { headers: { cookie, ...change } });
  expect(out.status).toBe(204);
  expect(cookieOf(out)).toBe("__Host-accel-session=");
  expect((await api.call("GET", "/session/", { token })).status).toBe(200);
});

test("name and password begin one of twelve hours, which is listed, ends when it is revoked, and by signing out", async () => {
  const begin = async (): Promise<string> => cookieOf(await signIn(basic("ada", password)));
  const sessions = async (): Promise<readonly unknown[]> => {
    const { body } = await api.call("GET", "/tokens/", { token });
    return (Array.isArray(body) ? body : []).filter(
      (one) => at(one, "name") === "session of the console",
    );
  };
  const [first, second, third] = [await begin(), await begin(), await begin()];
  const listed = await sessions();
  expect(listed).toHaveLength(3);
  const revoked = await api.call("DELETE", `/tokens/${String(at(listed[0], "id"))}/`, { token });
  expect(revoked.status).toBe(204);
  expect([await asked(first), await asked(second)]).toEqual([401, 200]);
  await api.call("DELETE", "/session/", { headers: { cookie: second, ...change } });
  expect(await asked(second)).toBe(401);
  api.clock = new Date(api.clock.getTime() + 12 * 3_600_000 - 1);
  expect(await asked(third)).toBe(200);
  api.clock = new Date(api.clock.getTime() + 1);
  expect(await asked(third)).toBe(401);
  expect(await sessions()).toEqual([]);
});

test("what a browser got by a password is good in its cookie alone, and ends with the password", async () => {
  const begin = async (): Promise<string> => cookieOf(await signIn(basic("ada", password)));
  const [first] = [await begin()];
  const bare = first.split("=")[1] ?? "";
  expect((await api.call("GET", "/session/", { token: bare })).status).toBe(401);
  const again = await signIn(basic("ada", password));
  const profile = `/user-profile/${String(at(again.body, "user_id"))}/`;
  expect((await api.call("PUT", profile, { token, body: { password } })).status).toBe(200);
  expect([await asked(first), await asked(cookieOf(again))]).toEqual([401, 401]);
  expect((await api.call("GET", "/session/", { token })).status).toBe(200);
});

test("as many browsers as may be signed in by one password are, and count for no limit of tokens", async () => {
  const cookies: string[] = [];
  for (let n = 0; n < 51; n++) cookies.push(cookieOf(await signIn(basic("ada", password))));
  expect([await asked(cookies[0] ?? ""), await asked(cookies[1] ?? "")]).toEqual([401, 200]);
  const keyed = { ...basic("ada", password), "idempotency-key": "sign-in-of-this-browser" };
  const [one, other] = [cookieOf(await signIn(keyed)), cookieOf(await signIn(keyed))];
  expect(one).not.toBe(other);
  const { user_id } = await api.store
    .selectFrom("tokens")
    .select("user_id")
    .orderBy("id", "desc")
    .executeTakeFirstOrThrow();
  const row = { user_id, is_session: 1, when_created: api.clock.toISOString() };
  for (let no = 0; no < tokensMax; no++)
    await api.store
      .insertInto("tokens")
      .values({ ...row, digest: `session ${no}` })
      .execute();
  const made = await api.call("POST", "/tokens/", { token, body: { name: "one", role: "read" } });
  expect(made.status).toBe(201);
  await api.store.deleteFrom("tokens").where("digest", "like", "session %").execute();
});

test("signing out leaves a mailed link good; a recovery takes the password away, for who had the account may have set it", async () => {
  const customers = new CustomerStore({
    store: api.store,
    sealer: createSealer(Buffer.alloc(32, 7)),
    now: () => api.clock,
    randomBytes,
  });
  const signedIn = await signIn(basic("ada", password));
  const userId = Number(at(signedIn.body, "user_id"));
  const expires_at = new Date(api.clock.getTime() + 3_600_000).toISOString();
  await api.store
    .insertInto("recoveries")
    .values({ digest: "a link", user_id: userId, expires_at })
    .execute();
  const cookie = cookieOf(signedIn);
  await api.call("DELETE", "/session/", { headers: { cookie, ...change } });
  const links = await api.store.selectFrom("recoveries").select("digest").execute();
  expect(links).toEqual([{ digest: "a link" }]);
  const other = cookieOf(await signIn(basic("ada", password)));
  token = await customers.transact(async (work) => finishRecovery(work, userId));
  expect(await asked(other)).toBe(401);
  expect((await signIn(basic("ada", password))).status).toBe(401);
  const profile = `/user-profile/${userId}/`;
  expect((await api.call("PUT", profile, { token, body: { password } })).status).toBe(200);
});

test("a session may do what its token may, and signs out whatever its role", async () => {
  const asks = { name: "looks", role: "read", lifetime_seconds: 600 };
  const made = await api.call("POST", "/tokens/", { token, body: asks });
  const reply = await signIn({ authorization: `Token ${String(at(made.body, "token"))}` });
  expect(reply.body).toMatchObject({ role: "read", when_expires: at(made.body, "when_expires") });
  const [text = ""] = [reply.headers["set-cookie"]].flat();
  expect(text).toContain("Max-Age=600;");
  const headers = { cookie: cookieOf(reply), ...change };
  const site = await api.call("POST", "/deployment-site/", { headers, body: { tags: "" } });
  expect(site.status).toBe(403);
  expect((await api.call("DELETE", "/session/", { headers })).status).toBe(204);
});

test("requests that another site's page can make are refused, and change nothing", async () => {
  const cookie = cookieOf(await signIn({ authorization: `Token ${token}` }));
  for (const site of ["cross-site", "same-site", "none", "Same-Origin", "same-origin, same-origin"])
    expect([site, await asked(cookie, { "sec-fetch-site": site })]).toEqual([site, 403]);
  expect(await asked(cookie, {})).toBe(403);
  const post = async (headers: Record<string, string>): Promise<Reply> =>
    api.call("POST", "/deployment-site/", { headers: { cookie, ...headers }, body: { tags: "" } });
  const form = { "content-type": "text/plain" };
  for (const headers of [{}, form, own, { ...own, ...form }, { "x-accel-console": "1" }])
    expect((await post(headers)).status).toBe(403);
  expect((await api.call("GET", "/deployment-site/", { token })).body).toEqual([]);
  expect((await post(change)).status).toBe(201);
  // What a client says of itself goes before what a browser adds.
  const both = { cookie, ...own, authorization: "Token none" };
  expect((await api.call("GET", "/session/", { headers: both })).status).toBe(401);
  const twice = `${cookie}; __Host-accel-session=other`;
  const strange = ["__Host-accel-session", "__Host-accel-session=", "accel-session=x", "=x"];
  for (const other of [...strange, twice, `\u00a0${cookie}`, `"${cookie}"`])
    expect([other, await asked(other)]).toEqual([other, 401]);
  const begin = { authorization: `Token ${token}`, "sec-fetch-site": "cross-site" };
  expect((await signIn(begin)).status).toBe(403);
  // A browser forgets a session that has ended.
  const ended = await api.call("GET", "/session/", {
    headers: { cookie: strange[1] ?? "", ...own },
  });
  expect(cookieOf(ended)).toBe("__Host-accel-session=");
});

test("wrong passwords are refused without asking the browser for one, and limited with those of uploads", async () => {
  const wrong = async (n: number): Promise<Reply> => signIn(basic("ada", `guess ${n}`));
  const reply = await wrong(0);
  expect([reply.status, reply.headers["www-authenticate"]]).toEqual([
    401,
    'Token realm="presentation-api"',
  ]);
  expect(reply.headers["set-cookie"]).toBeUndefined();
  expect((await signIn(basic("nobody", password))).body).toEqual(reply.body);
  let status = 401;
  for (let n = 1; n < 40 && status === 401; n++) ({ status } = await wrong(n));
  expect(status).toBe(429);
  const upload = await api.call("POST", "/upload/accel_pack/1.0/", {
    headers: basic("other", "guess"),
  });
  expect(upload.status).toBe(429);
});
