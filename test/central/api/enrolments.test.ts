// Codes as customers make, list and revoke them: what holds where nothing else is said, the bounds, whose they are, and what the trail has of them.

import { afterAll, beforeAll, expect, test } from "vitest";
import { authorityDigestOf, readCode } from "../../../src/wire/enrolment.ts";
import { exchangeCode } from "../../../src/central/store/journal/enrolments.ts";
import { createSealer } from "../../../src/base/seal.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { randomBytes } from "node:crypto";
import { member, openApi, type Api } from "./api-harness.ts";

const authority = { pem: "an authority\n", digest: authorityDigestOf("an authority\n") };
let api: Api;
let token: string;
let stranger: string;
beforeAll(async () => {
  api = await openApi({ authority: () => authority });
  token = await api.trial("joiner");
  stranger = await api.trial("stranger");
});
afterAll(async () => api[Symbol.asyncDispose]());

const newSite = async (of = token): Promise<string> =>
  member(
    (await api.call("POST", "/deployment-site/", { token: of, body: { tags: "" } })).body,
    "id",
  );
const make = async (siteId: string, body: object = {}) =>
  api.call("POST", `/deployment-site/${siteId}/enrolment/`, { token, body });

test("a code is for one host and one hour; it has 128 bits and the authority, and is kept as a digest", async () => {
  const site = await newSite();
  const made = await make(site);
  expect(made).toMatchObject({
    status: 201,
    body: { state: "open", uses: 1, used: 0, created_by: "joiner" },
  });
  const until = Date.parse(member(made.body, "when_expires"));
  expect(until - Date.parse(member(made.body, "when_created"))).toBe(3_600_000);
  const read = readCode(member(made.body, "code"));
  if (!read.ok) throw new Error(read.reason);
  expect(read.authorityDigest).toBe(authority.digest);
  const [first, last] = [read.code.slice(0, 16), read.code.slice(16)];
  expect([first === last, /^0+$/.test(first), /^0+$/.test(last)]).toEqual([false, false, false]);
  for (const table of ["enrolments", "audit"] as const) {
    const rows = await api.store.selectFrom(table).selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(read.code.slice(0, 16));
  }
  const listed = await api.call("GET", `/deployment-site/${site}/enrolment/`, { token });
  expect(JSON.stringify(listed.body)).not.toContain("enrol1_");
});

test.each([
  [{ uses: 100, lifetime_seconds: 604_800 }, 201],
  [{ uses: 1, lifetime_seconds: 60 }, 201],
  [{ uses: 101 }, 400],
  [{ uses: 0 }, 400],
  [{ uses: 1.5 }, 400],
  [{ lifetime_seconds: 604_801 }, 400],
  [{ lifetime_seconds: 59 }, 400],
])("%j is answered %i", async (body, status) => {
  const made = await make(await newSite(), body);
  expect(made.status).toBe(status);
  if (status === 201) {
    const { uses, lifetime_seconds: seconds } = body as { uses: number; lifetime_seconds: number };
    const lives =
      Date.parse(member(made.body, "when_expires")) - Date.parse(member(made.body, "when_created"));
    expect([made.body, lives]).toEqual([expect.objectContaining({ uses }), seconds * 1_000]);
  }
});

test("codes of another customer and of another site are not there, and are not revoked", async () => {
  const [site, other, theirs] = [await newSite(), await newSite(), await newSite(stranger)];
  const id = member((await make(site)).body, "id");
  await make(other);
  const at = `/deployment-site/${site}/enrolment/`;
  for (const [path, who] of [
    [`${at}${id}/`, stranger],
    [`/deployment-site/${theirs}/enrolment/${id}/`, stranger],
    [`/deployment-site/${other}/enrolment/${id}/`, token],
    [`${at}${Number(id) - 1}/`, token],
    [`${at}0/`, token],
  ] as const)
    for (const method of ["GET", "DELETE"])
      expect([path, (await api.call(method, path, { token: who })).status]).toEqual([path, 404]);
  expect((await api.call("POST", at, { token: stranger, body: {} })).status).toBe(404);
  expect((await api.call("GET", at, { token: stranger })).status).toBe(404);
  expect(await api.call("GET", `${at}${id}/`, { token })).toMatchObject({
    body: { state: "open" },
  });
});

test("a code that is revoked twice keeps the time of the first; a twenty-first that is open is a conflict", async () => {
  const site = await newSite();
  const ids: string[] = [];
  for (let no = 0; no < 20; no++) ids.push(member((await make(site)).body, "id"));
  expect((await make(site)).status).toBe(409);
  const path = `/deployment-site/${site}/enrolment/${ids[0]}/`;
  const revokedAt = async (): Promise<string | null> =>
    (
      await api.store
        .selectFrom("enrolments")
        .select("when_revoked")
        .where("id", "=", Number(ids[0]))
        .executeTakeFirstOrThrow()
    ).when_revoked;
  expect((await api.call("DELETE", path, { token })).status).toBe(204);
  const first = await revokedAt();
  api.clock = new Date(api.clock.getTime() + 1_000);
  expect((await api.call("DELETE", path, { token })).status).toBe(204);
  expect([first, await revokedAt()]).toEqual([expect.any(String), first]);
  expect((await make(site)).status).toBe(201);
});

test("a code ends with its hour; one nonce joins by two codes; the trail of each join is the customer's", async () => {
  const site = await newSite();
  const codes = [await make(site), await make(site), await make(site)].map(({ body }) => {
    const read = readCode(member(body, "code"));
    return read.ok ? read.code : "";
  });
  const store = new CustomerStore({
    store: api.store,
    sealer: createSealer(Buffer.alloc(32, 7)),
    now: () => api.clock,
    randomBytes,
  });
  const nonce = "0".repeat(32);
  const exchanged = async (code = ""): Promise<string> =>
    (await store.transact(async (work) => exchangeCode(work, { code, nonce }, "192.0.2.1"))).kind;
  expect([await exchanged(codes[0]), await exchanged(codes[0])]).toEqual(["joined", "repeated"]);
  api.clock = new Date(api.clock.getTime() + 3_599_999);
  expect(await exchanged(codes[1])).toBe("joined");
  api.clock = new Date(api.clock.getTime() + 1);
  expect(await exchanged(codes[2])).toBe("expired");
  const joins = await api.store
    .selectFrom("audit")
    .innerJoin("users", "users.customer_id", "audit.customer_id")
    .select(["username", "change"])
    .where("action", "=", "site join")
    .execute();
  expect(joins).toEqual([
    { username: "joiner", change: '{"used":1,"uses":1}' },
    { username: "joiner", change: '{"used":1,"uses":1}' },
  ]);
});
