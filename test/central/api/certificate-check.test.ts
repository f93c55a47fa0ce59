// A chain is taken as it was meant, or refused: what was meant for a certificate and cannot be read as one is never left out.

import { expect, test } from "vitest";
import { checkCertificate } from "../../../src/central/api/certificate-check.ts";
import { makeAuthority, makeCertificate, type KeyType, type KeyUsage } from "../../support/x509.ts";

const authority = makeAuthority();
const { pem, key } = authority.issue({ names: ["www.example.com"] });
const intermediate = authority.intermediate.pem;
const now = new Date("2031-05-06T07:08:09Z");

/** A chain that would be served without its second certificate, or its first. */
function strays(leaf: string, intermediate: string): readonly [string, string, RegExp][] {
  const [begin, end] = ["-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"];
  const noEnd = /^certificate 2 has no end$/;
  const oddFirst = /^certificate 2 has a first line other than -----BEGIN CERTIFICATE-----$/;
  const second = (from: string, to: string): string => leaf + intermediate.replace(from, to);
  return [
    ["an intermediate cut short", leaf + intermediate.slice(0, -200), noEnd],
    ["an end with a dash too few", second(end, end.slice(1)), noEnd],
    ["no end at all", second(end, ""), noEnd],
    ["a beginning with a dash too few", second(begin, begin.slice(1)), oddFirst],
    [
      "a beginning with the dashes of a text program",
      second(begin, "–––BEGIN CERTIFICATE–"),
      oddFirst,
    ],
    ["a beginning in small letters", second(begin, begin.toLowerCase()), oddFirst],
    ["a beginning without dashes", second(begin, "BEGIN CERTIFICATE"), oddFirst],
    [
      "a beginning with a letter too few",
      second(begin, "-----BEGIN CERTIFICTE-----"),
      /^block 2 is CERTIFICTE, expected CERTIFICATE$/,
    ],
    ["no beginning", second(begin, ""), /^certificate 2 has no beginning$/],
    [
      "only a last line that is none",
      leaf + end.slice(1),
      /^certificate 2 has a last line other than -----END CERTIFICATE-----$/,
    ],
    [
      "OpenSSL's own kind of block",
      leaf + intermediate.replaceAll("CERTIFICATE", "TRUSTED CERTIFICATE"),
      /^block 2 is TRUSTED CERTIFICATE, expected CERTIFICATE$/,
    ],
    ["the first cut short", `${leaf.slice(0, 300)}\n${intermediate}`, /^certificate 1 has no end$/],
  ];
}

test.each(strays(pem, intermediate))("%s is refused", (_, chain, reason) => {
  const checked = checkCertificate(chain, key, now);
  expect(checked).toEqual({
    ok: false,
    field: "certificate",
    reason: expect.stringMatching(reason),
  });
});

test.each([
  ["as they are", pem + intermediate],
  ["without a line between them", pem.trimEnd() + intermediate],
  [
    "with text that is none",
    `--- the site's end\nsubject=O = END GmbH\n${pem}---\n1 s:BEGIN of it\n${intermediate}\n`,
  ],
])("both certificates are taken %s", (_, chain) => {
  const checked = checkCertificate(chain, key, now);
  expect(checked.ok && checked.certificate.chain.match(/-----BEGIN/g)?.length).toBe(2);
});

const names = ["www.example.com"];

test.each<KeyType>(["ec", "P-384", "P-521", "rsa", "ed25519"])(
  "a key of %s is taken",
  (keyType) => {
    const leaf = authority.issue({ names, keyType });
    expect(checkCertificate(leaf.chain, leaf.key, now).ok).toBe(true);
  },
);

test("a key of a curve that clients do not offer is refused", () => {
  const leaf = makeCertificate({ names, keyType: "secp256k1" });
  expect(checkCertificate(leaf.pem, leaf.key, now)).toEqual({
    ok: false,
    field: "private_key",
    reason: "has the curve secp256k1; P-256, P-384 and P-521 are served",
  });
});

test.each<readonly [readonly KeyUsage[] | undefined, boolean]>([
  [undefined, true],
  [["digitalSignature"], true],
  [["digitalSignature", "keyEncipherment"], true],
  [["digitalSignature", "keyCertSign"], true],
  [["keyEncipherment"], false],
  [["keyCertSign"], false],
  [["keyAgreement", "keyEncipherment"], false],
  [[], false],
])("key usage %j is fit for a server: %s", (keyUsages, isFit) => {
  const usages = keyUsages === undefined ? {} : { keyUsages };
  const leaf = authority.issue({ names, ...usages });
  const checked = checkCertificate(leaf.pem, leaf.key, now);
  if (isFit) expect(checked.ok).toBe(true);
  else
    expect(checked).toEqual({
      ok: false,
      field: "certificate",
      reason: "is not for servers: its key usage lacks digitalSignature",
    });
});

test("the key usage of an authority in the chain is its own matter", () => {
  const root = makeCertificate({ subject: "R", isAuthority: true, keyUsages: ["keyCertSign"] });
  const leaf = makeCertificate({ names, issuer: root, keyUsages: ["digitalSignature"] });
  expect(checkCertificate(leaf.pem + root.pem, leaf.key, now).ok).toBe(true);
});

test("what is no certificate is told soon, however much of it there is", () => {
  const words = checkCertificate(`${"BEGIN ".repeat(10_000)}\n${pem}`, key, now);
  expect(words.ok).toBe(true);
});
