// A chain is taken as it was meant, or refused: what was meant for a certificate and cannot be read as one is never left out.

import { expect, test } from "vitest";
import { checkCertificate } from "../../../src/central/api/certificate-check.ts";
import { makeAuthority } from "../../support/x509.ts";

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

test("what is no certificate is told soon, however much of it there is", () => {
  const words = checkCertificate(`${"BEGIN ".repeat(10_000)}\n${pem}`, key, now);
  expect(words.ok).toBe(true);
});
