// Certificates of a deployment site: what is taken and what is refused with which reason.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { makeAuthority, makeCertificate, makeKeys } from "../../support/x509.ts";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";

const authority = makeAuthority();
const day = 86_400_000;
let api: Api;
let [token, name16] = ["", ""];
let siteId = 0;
let no = 0;
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  api.clock = new Date(api.clock.getTime() + 3_600_000);
  token = await api.trial(`uploader${++no}`);
  const { body } = await api.call("POST", "/deployment-site/", { token, body: { tags: "" } });
  [name16, siteId] = [member(body, "name16"), Number(member(body, "id"))];
});

const path = (name = name16): string => `/upload/certificates/${name}/`;
async function upload(certificate: string, private_key: string): Promise<Reply> {
  return api.call("POST", path(), { token, body: { certificate, private_key } });
}
const at = (ms: number): Date => new Date(Date.parse("2031-05-06T07:08:09Z") + ms);
const fingerprintOf = (pem: string): string =>
  new X509Certificate(pem).fingerprint256.replaceAll(":", "").toLowerCase();

describe("taken", () => {
  const leaf = makeCertificate({ names: ["www.example.com"] });
  const issued = authority.issue({
    names: [
      "b.example.com",
      "a.example.com",
      "*.example.com",
      "192.0.2.7",
      "::1",
      "me@example.com",
      "localhost",
    ],
  });
  const rsa = makeCertificate({ names: ["r.example.com"], keyType: "rsa" });
  const edwards = makeCertificate({ names: ["e.example.com"], keyType: "ed25519" });
  const forServers = makeCertificate({
    names: ["s.example.com"],
    usages: ["1.3.6.1.5.5.7.3.2", "1.3.6.1.5.5.7.3.1"],
  });
  const sec1 = makeCertificate({ names: ["k.example.com"] });
  test.each<[string, string, string, readonly string[]]>([
    ["signed by itself", leaf.pem, leaf.key, ["www.example.com"]],
    [
      "a chain, several names",
      issued.chain,
      issued.key,
      ["*.example.com", "192.0.2.7", "::1", "a.example.com", "b.example.com"],
    ],
    [
      "a chain with its root",
      issued.chain + authority.root.pem,
      issued.key,
      ["*.example.com", "192.0.2.7", "::1", "a.example.com", "b.example.com"],
    ],
    ["RSA", rsa.pem, rsa.key, ["r.example.com"]],
    ["Ed25519", edwards.pem, edwards.key, ["e.example.com"]],
    ["usages with serverAuth", forServers.pem, forServers.key, ["s.example.com"]],
    [
      "text between the blocks, CRLF",
      `--- the site's END certificate\r\nsubject=O = END GmbH\r\n${issued.pem.replaceAll("\n", "\r\n")}\r\n---\r\nBEGIN of what issued it\r\n${authority.intermediate.pem}`,
      issued.key,
      ["*.example.com", "192.0.2.7", "::1", "a.example.com", "b.example.com"],
    ],
    [
      "a key in the form of SEC 1",
      sec1.pem,
      sec1.privateKey.export({ type: "sec1", format: "pem" }),
      ["k.example.com"],
    ],
  ])("%s", async (_, certificate, key, names) => {
    const reply = await upload(certificate, key);
    expect([reply.status, reply.body]).toEqual([
      200,
      {
        id: expect.any(Number),
        names,
        not_after: "2099-01-01T00:00:00.000Z",
        fingerprint: fingerprintOf(certificate.slice(certificate.indexOf("-----BEGIN"))),
      },
    ]);
  });
});

describe("refused", () => {
  const names = ["www.example.com"];
  const good = authority.issue({ names });
  const other = makeCertificate({ names });
  const expired = makeCertificate({ names, to: at(0) });
  const early = makeCertificate({ names, from: at(2 * day) });
  const oldAuthority = makeCertificate({ subject: "Old", isAuthority: true, to: at(-day) });
  const underOld = makeCertificate({ names, issuer: oldAuthority });
  const weak = makeCertificate({ names, keyType: "rsa-1024" });
  const clients = makeCertificate({ names, usages: ["1.3.6.1.5.5.7.3.2"] });
  const nameless = makeCertificate({ names: ["localhost", "me@example.com"] });
  const encrypted = createPrivateKey(good.key).export({
    type: "pkcs8",
    format: "pem",
    cipher: "aes-256-cbc",
    passphrase: "canary",
  });
  const publicKey = makeKeys().publicKey.export({ type: "spki", format: "pem" });
  const torn = good.pem.replace(/\n.{64}\n/, "\n");
  test.each<[string, string, string, string, RegExp]>([
    ["the key of another", good.chain, other.key, "private_key", /belongs to another certificate/],
    ["expired", expired.pem, expired.key, "certificate", /^expired at 2031-05-06/],
    ["not yet valid", early.pem, early.key, "certificate", /not valid before 2031-05-08/],
    [
      "an expired one behind it",
      underOld.pem + oldAuthority.pem,
      underOld.key,
      "certificate",
      /^certificate 2 expired/,
    ],
    [
      "the leaf last",
      authority.intermediate.pem + good.pem,
      good.key,
      "certificate",
      /wrong order: the key belongs to certificate 2/,
    ],
    [
      "root before intermediate",
      good.pem + authority.root.pem + authority.intermediate.pem,
      good.key,
      "certificate",
      /wrong order: certificate 2 did not sign/,
    ],
    [
      "a stranger behind it",
      good.pem + other.pem,
      good.key,
      "certificate",
      /wrong order: certificate 2 did not sign/,
    ],
    ["twice the leaf", good.pem + good.pem, good.key, "certificate", /wrong order/],
    ["no PEM", "MIIB", good.key, "certificate", /is not PEM/],
    [
      "a public key",
      publicKey,
      good.key,
      "certificate",
      /^block 1 is PUBLIC KEY, expected CERTIFICATE$/,
    ],
    ["cut short", good.pem.slice(0, 200), good.key, "certificate", /^certificate 1 has no end$/],
    ["torn", torn, good.key, "certificate", /certificate 1 cannot be read/],
    ["no key", good.chain, "hello", "private_key", /is not PEM/],
    ["a certificate for a key", good.chain, good.pem, "private_key", /is not PEM/],
    [
      "a torn key",
      good.chain,
      good.key.replace(/\n.{64}\n/, "\n"),
      "private_key",
      /cannot be read/,
    ],
    ["two keys", good.chain, good.key + other.key, "private_key", /has 2 keys/],
    ["an encrypted key", good.chain, encrypted, "private_key", /is encrypted/],
    [
      "the key among the chain",
      good.chain + good.key,
      good.key,
      "certificate",
      /holds a private key/,
    ],
    ["a weak key", weak.pem, weak.key, "private_key", /has 1024 bits/],
    ["for clients", clients.pem, clients.key, "certificate", /lacks serverAuth/],
    ["for no host", nameless.pem, nameless.key, "certificate", /names no host/],
    [
      "eleven",
      good.chain.repeat(5) + good.pem,
      good.key,
      "certificate",
      /has 11 certificates, at most 10/,
    ],
    ["much too long", good.pem.repeat(200), good.key, "certificate", /65536|65,536/],
  ])("%s", async (_, certificate, key, field, reason) => {
    const before = await api.journal(siteId);
    const reply = await upload(certificate, key);
    expect(reply.status).toBe(400);
    const [error, ...more] = Object(reply.body).errors;
    expect([error.path, more]).toEqual([`/${field}`, []]);
    expect(error.message).toMatch(reason);
    expect(JSON.stringify(reply.body)).not.toContain(key.split("\n")[1] ?? key);
    expect(await api.journal(siteId)).toEqual(before);
  });

  test("what is no upload at all", async () => {
    const body = { certificate: good.chain, private_key: good.key };
    const call = async (options: object) =>
      (await api.call("POST", path(), { token, ...options })).status;
    expect(await call({ body: { certificate: good.chain } })).toBe(400);
    expect(await call({ body: { ...body, extra: 1 } })).toBe(400);
    expect(await call({ body: { ...body, certificate: ["x"] } })).toBe(400);
    expect(await call({ body, headers: { "content-type": "text/plain" } })).toBe(415);
    expect(await call({ raw: "x".repeat(300_000) })).toBe(413);
    expect((await api.call("POST", path("0".repeat(16)), { token, body })).status).toBe(404);
    expect((await api.call("POST", path(), { body })).status).toBe(401);
    expect((await api.call("PUT", path(), { token, body })).status).toBe(405);
  });
});

describe("as a form", () => {
  const { chain, key } = authority.issue({ names: ["form.example.com"] });
  async function post(...parts: readonly (readonly [string, string | File])[]): Promise<Reply> {
    const form = new FormData();
    for (const [name, value] of parts) form.append(name, value);
    const { headers, raw } = await encoded(form);
    return api.call("POST", path(), { token, raw, headers });
  }
  async function encoded(form: FormData) {
    const response = new Response(form);
    const raw = new Uint8Array(await response.arrayBuffer());
    return { raw, headers: { "content-type": response.headers.get("content-type") ?? "" } };
  }

  test("files and plain parts are the same as JSON", async () => {
    const files = await post(
      ["certificate", new File([chain], "fullchain.pem")],
      ["private_key", new File([key], "privkey.pem", { type: "application/x-pem-file" })],
    );
    expect(files).toMatchObject({ status: 200, body: { names: ["form.example.com"] } });
    const plain = await post(["certificate", chain], ["private_key", key]);
    expect([plain.status, plain.body]).toEqual([200, files.body]);
    expect((await upload(chain, key)).body).toEqual(files.body);
  });

  test("parts that are missing, twice, unknown or torn are named", async () => {
    const rows: readonly (readonly [Reply, RegExp])[] = [
      [await post(["certificate", chain]), /private_key/],
      [await post(["certificate", chain], ["private_key", key], ["password", "x"]), /password/],
      [
        await post(["certificate", chain], ["certificate", chain], ["private_key", key]),
        /part \\"certificate\\" is given twice/,
      ],
      [
        await api.call("POST", path(), {
          token,
          raw: "--b\r\ntorn",
          headers: { "content-type": "multipart/form-data; boundary=b" },
        }),
        /no multipart/,
      ],
    ];
    for (const [reply, message] of rows) {
      expect(reply.status).toBe(400);
      expect(JSON.stringify(reply.body)).toMatch(message);
    }
  });

  test("nowhere else", async () => {
    const form = new FormData();
    form.append("tags", "x");
    const { raw, headers } = await encoded(form);
    expect((await api.call("POST", "/deployment-site/", { token, raw, headers })).status).toBe(415);
  });
});
