// When a certificate is renewed, and by which name its directory knows it.

import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  isRenewalOverdue,
  renewalAskedAgainMs,
  renewalMs,
  renewalName,
  renewalWithinMs,
} from "../../../src/core/acme/renewal.ts";
import { tempDir } from "../../support/temp-dir.ts";

const dayMs = 86_400_000;
const chance = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });

test("a certificate of 90 days is renewed between day 57 and day 60: before mails tell of its end", () => {
  fc.assert(
    fc.property(chance, (random) => {
      const at = renewalMs({ notBeforeMs: 0, notAfterMs: 90 * dayMs, issuedMs: 0 }, random);
      expect(at).toBeGreaterThanOrEqual(57 * dayMs - 1);
      expect(at).toBeLessThanOrEqual(60 * dayMs);
    }),
  );
});

test("a window is used as a whole, and never past the end of the certificate", () => {
  const life = { notBeforeMs: 0, notAfterMs: 100, issuedMs: 0 };
  const window = { startMs: 10, endMs: 20 };
  expect(renewalWithinMs(window, life, 0)).toBe(10);
  expect(renewalWithinMs(window, life, 0.99)).toBe(19);
  expect(renewalWithinMs(window, { ...life, notAfterMs: 19 }, 0)).toBeUndefined();
  expect(renewalWithinMs({ startMs: 20, endMs: 10 }, life, 0)).toBeUndefined();
  expect(renewalWithinMs({ startMs: Number.NaN, endMs: 10 }, life, 0)).toBeUndefined();
});

test("a certificate that is new is not renewed at once, whatever the directory says", () => {
  const life = { notBeforeMs: 0, notAfterMs: 90 * dayMs, issuedMs: 0 };
  expect(renewalWithinMs({ startMs: -9, endMs: -1 }, life, 0)).toBe(dayMs / 4);
  expect(renewalWithinMs({ startMs: -9, endMs: -1 }, { ...life, notAfterMs: 100 }, 0)).toBe(10);
});

test("a certificate that comes when it should have been renewed already is kept for six hours: a clock that is ahead, a directory that backdates", () => {
  const issuedMs = 70 * dayMs;
  const life = { notBeforeMs: 0, notAfterMs: 90 * dayMs, issuedMs };
  fc.assert(
    fc.property(chance, (random) => {
      expect(renewalMs(life, random)).toBe(issuedMs + dayMs / 4);
      expect(renewalWithinMs({ startMs: 1, endMs: dayMs }, life, random)).toBe(
        issuedMs + dayMs / 4,
      );
    }),
  );
  expect(renewalMs({ notBeforeMs: 0, notAfterMs: 100, issuedMs: 80 }, 0)).toBe(90);
});

test.each([
  [undefined, 6],
  [1_000, 1],
  [7_200_000, 2],
  [30 * dayMs, 24],
])("a directory that says %s ms is asked again after %s hours", (said, hours) => {
  expect(renewalAskedAgainMs(said)).toBe(hours * 3_600_000);
});

test("the name of RFC 9773 §4.1: the issuer's key and the serial number as they stand in the certificate", () => {
  using dir = tempDir();
  const at = (name: string): string => join(dir.path, name);
  const run = (...args: readonly string[]) => execFileSync("openssl", args, { stdio: "pipe" });
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  run("req", "-x509", ...ec, "-keyout", at("ca.key"), "-out", at("ca.pem"), "-subj", "/CN=ca");
  const signing = ["-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-set_serial", "0x8765432109"];
  const leaf = ["-keyout", at("key"), "-out", at("pem"), "-subj", "/CN=a"];
  run("req", "-x509", ...ec, ...leaf, ...signing);
  const certificate = new X509Certificate(run("x509", "-in", at("pem")));
  const text = run("x509", "-in", at("pem"), "-noout", "-ext", "authorityKeyIdentifier").toString();
  const keyId = /(?:[0-9A-F]{2}:){19}[0-9A-F]{2}/.exec(text)?.[0].replaceAll(":", "") ?? "";
  const [issuer, serial] = renewalName(certificate.raw)?.split(".") ?? [];
  expect(
    Buffer.from(issuer ?? "", "base64url")
      .toString("hex")
      .toUpperCase(),
  ).toBe(keyId);
  // A zero byte stands before a number whose first bit is set.
  expect(Buffer.from(serial ?? "", "base64url").toString("hex")).toBe("008765432109");
});

test("a renewal is overdue a day after it was due, or a quarter of what was left then", () => {
  const hourMs = 3_600_000;
  const long = 30 * 24 * hourMs;
  expect(isRenewalOverdue(0, long, 24 * hourMs - 1)).toBe(false);
  expect(isRenewalOverdue(0, long, 24 * hourMs)).toBe(true);
  expect(isRenewalOverdue(0, 8 * hourMs, 2 * hourMs - 1)).toBe(false);
  expect(isRenewalOverdue(0, 8 * hourMs, 2 * hourMs)).toBe(true);
});
