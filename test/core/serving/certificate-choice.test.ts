// Which certificate answers for a name, and how a site's certificates lie in shared memory.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CertificateChoice,
  type CertificateFacts,
} from "../../../src/core/serving/certificate-choice.ts";
import {
  CertificateTable,
  encodeCertificates,
} from "../../../src/core/serving/certificate-table.ts";
import { parseSha256 } from "../../../src/core/ids.ts";

const valid = { notBeforeMs: 100, notAfterMs: 200 };
const named = (name: string, ...names: readonly string[]) => ({ name, names, ...valid });
const exact = named("exact", "www.a.example", "a.example");
const wildcard = named("wildcard", "*.a.example");
const inner = named("inner", "*.www.a.example");
const expired = { ...named("expired", "www.a.example"), notBeforeMs: 10, notAfterMs: 90 };
const future = { ...named("future", "www.a.example"), notBeforeMs: 190, notAfterMs: 300 };
const newer = { ...named("newer", "www.a.example"), notBeforeMs: 120 };

function chosen(
  certificates: readonly (CertificateFacts & { readonly name: string })[],
  host: string,
): string | undefined {
  return new CertificateChoice(certificates).find(host, 150)?.name;
}

describe("the choice", () => {
  test.each([
    ["www.a.example", [wildcard, exact], "exact"],
    ["WWW.A.Example.", [wildcard, exact], "exact"],
    ["shop.a.example", [wildcard, exact], "wildcard"],
    ["x.www.a.example", [wildcard, inner], "inner"],
    ["x.y.a.example", [wildcard, exact], undefined],
    ["a.example", [wildcard], undefined],
    [".a.example", [wildcard], undefined],
    ["", [exact], undefined],
    ["example", [exact, wildcard], undefined],
    ["*.a.example", [exact], undefined],
    // Valid before invalid, also where that is only a wildcard's.
    ["www.a.example", [expired, wildcard], "wildcard"],
    ["www.a.example", [future, exact], "exact"],
    ["www.a.example", [exact, newer], "newer"],
    ["www.a.example", [newer, future, expired], "newer"],
    // Better than none.
    ["www.a.example", [expired], "expired"],
    ["www.a.example", [expired, future], "future"],
  ])("for %s", (host, certificates, name) => {
    expect(chosen(certificates, host)).toBe(name);
    expect(chosen(certificates.toReversed(), host)).toBe(name);
  });
});

test("what is written into shared memory is read again", () => {
  const hex = fc.string({
    unit: fc.constantFrom(..."0123456789abcdef".split("")),
    minLength: 64,
    maxLength: 64,
  });
  const text = fc.string({ unit: "binary" });
  const certificate = fc.record({
    names: fc.array(text),
    notBeforeMs: fc.integer(),
    notAfterMs: fc.integer(),
    fingerprint: hex.map((value) => parseSha256(value)).filter((value) => value !== undefined),
    chain: text.map((value) => Buffer.from(value).toString()),
    privateKey: text.map((value) => Buffer.from(value).toString()),
  });
  fc.assert(
    fc.property(fc.array(certificate, { maxLength: 20 }), (certificates) => {
      const table = new CertificateTable(encodeCertificates(7, certificates));
      expect(table.no).toBe(7);
      const read = table.certificates.map((listed) => ({
        names: listed.names,
        notBeforeMs: listed.notBeforeMs,
        notAfterMs: listed.notAfterMs,
        fingerprint: listed.fingerprint,
        chain: table.chainOf(listed),
        privateKey: table.keyOf(listed),
      }));
      expect(read).toEqual(certificates);
    }),
  );
});

test("a thousand certificates are one small table, read in a moment", () => {
  const fingerprint = parseSha256("a".repeat(64));
  if (fingerprint === undefined) throw new TypeError("not a digest");
  const certificates = Array.from({ length: 1_000 }, (_, n) => ({
    names: [`n${n}.example`, `*.n${n}.example`],
    ...valid,
    fingerprint,
    chain: `chain ${n}`.padEnd(3_000, "x"),
    privateKey: `key ${n}`,
  }));
  const ref = encodeCertificates(1, certificates);
  expect(ref.bytes.byteLength).toBeLessThan(4 * 2 ** 20);
  const table = new CertificateTable(ref);
  const choice = new CertificateChoice(table.certificates);
  const found = choice.find("x.n999.example", 150);
  expect(found && table.keyOf(found)).toBe("key 999");
});
