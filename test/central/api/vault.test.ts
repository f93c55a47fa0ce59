// Keys and certificates of deployment sites in the store: what the journal tells of them, what it is sealed with, and where a private key is not.

import { readFileSync } from "node:fs";
import { X509Certificate } from "node:crypto";
import { sql } from "kysely";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  openPrivateKey,
  openSymmetricKey,
  type SiteCredentials,
} from "../../../src/base/vault-seal.ts";
import { journalKinds } from "../../../src/wire/journal.ts";
import { decoder } from "../../../src/wire/validate.ts";
import { decodeCertificates, type Certificates } from "../../../src/wire/vault.ts";
import { isPostgresMeant } from "../../support/any-store.ts";
import { makeAuthority, makeCertificate } from "../../support/x509.ts";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";

const authority = makeAuthority();
const logged: string[] = [];
let api: Api;
let token = "";
let site: SiteCredentials & { readonly id: number };
let no = 0;
beforeAll(async () => {
  api = await openApi({}, pino({ level: "trace" }, { write: (line) => void logged.push(line) }));
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  api.clock = new Date(api.clock.getTime() + 3_600_000);
  token = await api.trial(`keeper${++no}`);
  site = await newSite();
});

async function newSite(of = token): Promise<typeof site> {
  const body = { tags: "" };
  const made = (await api.call("POST", "/deployment-site/", { token: of, body })).body;
  const [name16, secret16] = [member(made, "name16"), member(made, "secret16")];
  return { id: Number(member(made, "id")), name16, secret16 };
}
const path = (): string => `/upload/certificates/${site.name16}/`;
async function upload(certificate: string, private_key: string): Promise<Reply> {
  return api.call("POST", path(), { token, body: { certificate, private_key } });
}
const fingerprintOf = (pem: string): string =>
  new X509Certificate(pem).fingerprint256.replaceAll(":", "").toLowerCase();
const decodeKeys = decoder(journalKinds["key.changed"].schema);

async function lastOf(kind: string, siteId = site.id): Promise<unknown> {
  return (await api.journal(siteId)).findLast((entry) => entry.kind === kind)?.body;
}

/** By name, opened with the secret as the site's agent would. */
async function keysOf(of = site): Promise<ReadonlyMap<string, Uint8Array>> {
  const decoded = decodeKeys(await lastOf("key.changed", of.id));
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
  const { keys } = decoded.value;
  return new Map(keys.map(({ name, sealed }) => [name, openSymmetricKey(sealed, of, name)]));
}

/** Private keys that the last entry carries, opened with the keys of the site. */
async function privateKeysOf(of = site): Promise<readonly string[]> {
  const decoded = decodeCertificates(await lastOf("certificate.changed", of.id));
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
  return opened(decoded.value, await keysOf(of), of.name16);
}

function opened(
  { certificates }: Certificates,
  keys: ReadonlyMap<string, Uint8Array>,
  name16: string,
): readonly string[] {
  const newest = [...keys.keys()].at(-1);
  return certificates.map(({ key_name: name, sealed_key: sealed, fingerprint }) => {
    expect(name).toBe(newest);
    const key = keys.get(name);
    if (key === undefined) throw new Error(`no key ${name}`);
    return openPrivateKey(sealed, key, { name16, fingerprint });
  });
}

test("one for the same names takes the place of the one before; the same again changes nothing", async () => {
  const names = ["www.example.com", "example.com"];
  const [first, second] = [
    authority.issue({ names }),
    authority.issue({ names: names.toReversed() }),
  ];
  const wild = authority.issue({ names: ["*.example.com"] });
  await upload(first.chain, first.key);
  await upload(wild.chain, wild.key);
  const reply = await upload(second.chain, second.key);
  const before = (await api.journal(site.id)).length;
  expect((await upload(second.chain, second.key)).body).toEqual(reply.body);
  expect((await api.journal(site.id)).length).toBe(before);
  const list = async () => (await api.call("GET", path(), { token })).body;
  expect(await list()).toEqual([
    expect.objectContaining({ names: ["*.example.com"], fingerprint: fingerprintOf(wild.pem) }),
    {
      ...Object(reply.body),
      names: ["example.com", "www.example.com"],
      not_before: "2020-01-01T00:00:00.000Z",
      when_created: api.clock.toISOString(),
      state: "absent",
    },
  ]);
  const last = (await api.journal(site.id)).at(-1);
  expect(last?.kind).toBe("certificate.changed");
  expect(
    Object(last?.body)
      .certificates.map(Object)
      .map((one: { fingerprint: string }) => one.fingerprint),
  ).toEqual([fingerprintOf(wild.pem), fingerprintOf(second.pem)]);
  expect(api.woken.at(-1)).toEqual([site.id]);

  const gone = await api.call("DELETE", `${path()}${member(reply.body, "id")}/`, { token });
  expect(gone.status).toBe(204);
  expect(
    (await api.call("DELETE", `${path()}${member(reply.body, "id")}/`, { token })).status,
  ).toBe(404);
  expect(await list()).toEqual([expect.objectContaining({ names: ["*.example.com"] })]);
  expect((await api.journal(site.id)).at(-1)).toMatchObject({
    kind: "certificate.changed",
    body: { certificates: [{ names: ["*.example.com"] }] },
  });
});

test("a private key is in no answer, no journal entry, no log line and no file, nor are symmetric keys", async (its) => {
  its.skip(isPostgresMeant(), "about the SQLite file");
  const leaf = authority.issue({ names: ["canary.example.com"] });
  const other = makeCertificate({ names: ["other.example.com"] });
  const headers = { "idempotency-key": "once" };
  const good = { certificate: leaf.chain, private_key: leaf.key };
  const replies = [
    await api.call("POST", path(), { token, body: good, headers }),
    await api.call("POST", path(), { token, body: good, headers }),
    await api.call("POST", path(), { token, body: { ...good, certificate: other.pem } }),
    await api.call("POST", path(), { token, body: { ...good, private_key: [leaf.key] } }),
    await api.call("POST", path(), { token, body: { ...good, [leaf.key]: 1 } }),
    await api.call("GET", path(), { token }),
    await api.call("GET", "/symenckeys/", { token }),
  ];
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 400, 400, 400, 200, 200]);
  expect(await privateKeysOf()).toEqual([leaf.key]);
  const [, line = ""] = leaf.key.split("\n");
  expect(line).toHaveLength(64);
  const canaries = [
    line,
    ...[...(await keysOf()).values()].flatMap((key) => {
      const bytes = Buffer.from(key);
      return [bytes.toString("hex"), bytes.toString("base64"), bytes.toString("base64url")];
    }),
  ];
  const database = await sql<{ file: string }>`PRAGMA database_list`.execute(api.store);
  const { file = "" } = database.rows[0] ?? {};
  const files = [file, `${file}-wal`].map((name) => readFileSync(name, "latin1"));
  expect(files.some((text) => text.includes(leaf.chain))).toBe(true); // The right file is read.
  expect(logged).not.toEqual([]);
  const places = {
    // A field's name is said back to the client.
    answers: JSON.stringify(replies.toSpliced(4, 1)),
    journal: JSON.stringify(await api.journal(site.id)),
    log: logged.join(""),
    files: files.join(""),
  };
  for (const canary of canaries)
    for (const [place, text] of Object.entries(places)) expect(text, place).not.toContain(canary);
});

describe("symmetric keys", () => {
  async function make(siteId = site.id): Promise<Reply> {
    return api.call("POST", "/symenckeys/", { token, body: { deployment_site_id: siteId } });
  }
  const bind = async (id: string, siteId: number, of = token): Promise<Reply> =>
    api.call("PUT", `/symenckeys/${id}/`, { token: of, body: { deployment_site_id: siteId } });
  const list = async (): Promise<readonly Record<string, unknown>[]> =>
    Object((await api.call("GET", "/symenckeys/", { token })).body);

  test("a site has its first at creation; more are numbered; what they are is in no answer", async () => {
    const name = `key-${site.name16}-1`;
    const [first] = await list();
    expect(first).toEqual({
      id: expect.any(Number),
      name,
      deployment_site_id: site.id,
      state: "absent",
    });
    const second = await make();
    expect([second.status, second.body]).toEqual([
      201,
      { ...first, id: expect.any(Number), name: `key-${site.name16}-2` },
    ]);
    const one = await api.call("GET", `/symenckeys/${member(second.body, "id")}/`, { token });
    expect(one.body).toEqual(second.body);
    expect(await list()).toEqual([first, second.body]);
    const keys = await keysOf();
    expect([...keys.keys()]).toEqual([name, `key-${site.name16}-2`]);
    expect(new Set([...keys.values()].map((key) => Buffer.from(key).toString("hex"))).size).toBe(2);
    for (const key of keys.values()) expect(key).toHaveLength(32);
  });

  test("wrong requests are refused", async () => {
    const rows: readonly (readonly [Reply, number])[] = [
      [await api.call("POST", "/symenckeys/", { token, body: {} }), 400],
      [await api.call("POST", "/symenckeys/", { token, body: { deployment_site_id: "1" } }), 400],
      [
        await api.call("POST", "/symenckeys/", {
          token,
          body: { deployment_site_id: site.id, key: "x" },
        }),
        400,
      ],
      [await make(999_999), 404],
      [await api.call("GET", "/symenckeys/999999/", { token }), 404],
      [await api.call("GET", "/symenckeys/x/", { token }), 404],
      [await api.call("DELETE", "/symenckeys/1/", { token }), 405],
      [await api.call("GET", "/symenckeys/"), 401],
    ];
    expect(rows.map(([{ status }]) => status)).toEqual(rows.map(([, status]) => status));
  });

  test("one goes to another site of the customer and keeps its name, but not the only one", async () => {
    const other = await newSite();
    const [first] = await list();
    const id = String(first?.["id"]);
    expect((await bind(id, other.id)).status).toBe(409);
    expect((await bind(id, site.id)).status).toBe(200); // Where it is already.
    const leaf = makeCertificate({ names: ["www.example.com"] });
    await upload(leaf.pem, leaf.key);
    const name = `key-${site.name16}-1`;
    const before = (await keysOf()).get(name);
    await make();
    expect(await privateKeysOf()).toEqual([leaf.key]); // Sealed with the newest.
    const reply = await bind(id, other.id);
    expect(reply).toMatchObject({ status: 200, body: { name, deployment_site_id: other.id } });
    expect([...(await keysOf()).keys()]).toEqual([`key-${site.name16}-2`]);
    expect((await keysOf(other)).get(name)).toEqual(before);
    expect([...(await keysOf(other)).keys()]).toEqual([name, `key-${other.name16}-1`]);
    expect(await privateKeysOf()).toEqual([leaf.key]);
    expect(api.woken.at(-1)).toEqual([site.id, other.id]);
    const strange = await newSite(await api.trial("strange"));
    expect((await bind(id, strange.id)).status).toBe(404);
  });

  test("when the newest goes, certificates are sealed with the newest that is left; where it comes, with it", async () => {
    const other = await newSite();
    const { body } = await make();
    const leaf = makeCertificate({ names: ["www.example.com"] });
    await upload(leaf.pem, leaf.key);
    const name16 = site.name16;
    const kept = site;
    site = other;
    const second = makeCertificate({ names: ["other.example.com"] });
    await upload(second.pem, second.key);
    site = kept;
    await bind(member(body, "id"), other.id);
    expect(await privateKeysOf()).toEqual([leaf.key]);
    expect([...(await keysOf(other)).keys()].at(-1)).toBe(`key-${name16}-2`);
    expect(await privateKeysOf(other)).toEqual([second.key]);
    const kinds = (await api.journal(other.id)).slice(-2).map(({ kind }) => kind);
    expect(kinds).toEqual(["key.changed", "certificate.changed"]);
  });

  test("at most 100", async () => {
    for (let made = 1; made < 100; made += 1) expect((await make()).status).toBe(201);
    expect((await make()).status).toBe(409);
    const other = await newSite();
    const { body } = await make(other.id);
    expect((await bind(member(body, "id"), site.id)).status).toBe(409);
    expect((await keysOf()).size).toBe(100);
  });

  test("rotating the secret seals them anew, and nothing else", async () => {
    const leaf = makeCertificate({ names: ["www.example.com"] });
    await upload(leaf.pem, leaf.key);
    const keys = await keysOf();
    const before = (await api.journal(site.id)).length;
    const rotated = await api.call("POST", `/deployment-site/${site.id}/rotate-secret/`, { token });
    const secret16 = member(rotated.body, "secret16");
    expect((await api.journal(site.id, before)).map(({ kind }) => kind)).toEqual(["key.changed"]);
    await expect(keysOf()).rejects.toMatchObject({ code: "SEAL_BROKEN" });
    site = { ...site, secret16 };
    expect(await keysOf()).toEqual(keys);
    expect(await lastOf("key.changed")).toMatchObject({ keys: [{ version: 2 }] });
    expect(await privateKeysOf()).toEqual([leaf.key]);
  });

  test("nothing of a deleted site stays", async () => {
    const leaf = makeCertificate({ names: ["www.example.com"] });
    await upload(leaf.pem, leaf.key);
    expect((await api.call("DELETE", `/deployment-site/${site.id}/`, { token })).status).toBe(204);
    for (const table of ["vaults", "symmetric_keys", "certificates"] as const) {
      const rows = api.store.selectFrom(table).selectAll();
      expect(await rows.where("deployment_site_id", "=", site.id).execute()).toEqual([]);
    }
    expect(await list()).toEqual([]);
    expect((await upload(leaf.pem, leaf.key)).status).toBe(404);
  });
});
