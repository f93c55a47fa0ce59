// Names that a certificate is shown with and looked up by: host names that a client can ask for, wildcards of one label, addresses; each once.

import { X509Certificate } from "node:crypto";
import { expect, test } from "vitest";
import { certificateNames } from "../../../src/central/api/certificate-names.ts";
import { makeCertificate } from "../../support/x509.ts";

const namesOf = (names: readonly string[]): readonly string[] =>
  certificateNames(new X509Certificate(makeCertificate({ names }).pem));

test.each<readonly [string, readonly string[], readonly string[]]>([
  ["in order, each once", ["www.b.test", "a.test", "A.test"], ["a.test", "www.b.test"]],
  ["a wildcard of one label", ["*.a.test"], ["*.a.test"]],
  ["addresses", ["192.0.2.1", "::1", "a.test"], ["192.0.2.1", "::1", "a.test"]],
  ["no name with a dot at its end, which no client asks for", ["a.test.", "b.test"], ["b.test"]],
  ["no wildcard of what is no name", ["*.test", "*.", "*.*.a.test", "a.test"], ["a.test"]],
  ["no wildcard elsewhere than in front", ["w*.a.test", "www.*.test", "a.test"], ["a.test"]],
  ["no single label, no mail address", ["localhost", "a@a.test", "a.test"], ["a.test"]],
  ["none at all", [], []],
])("%s", (_what, given, expected) => {
  expect(namesOf(given)).toEqual(expected);
});
