// What a file or a pasted text holds.

import { expect, test } from "vitest";
import { pemParts } from "../../src/console/pem.ts";

const block = (kind: string, text: string): string =>
  `-----BEGIN ${kind}-----\n${text}\n-----END ${kind}-----\n`;
const leaf = block("CERTIFICATE", "TEFG");
const issuer = block("CERTIFICATE", "SVNT");

test.each(["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY"])(
  "a chain and a %s in one text, with words and other blocks between",
  (kind) => {
    const key = block(kind, "S0VZ");
    const text = `subject=CN\r\n${leaf}\n${block("EC PARAMETERS", "UEFS")}${key}${issuer}`;
    expect(pemParts(text)).toEqual({ certificates: leaf + issuer, privateKey: key });
  },
);

test("line ends of Windows stay inside a block", () => {
  const text = leaf.replaceAll("\n", "\r\n");
  expect(pemParts(text)).toEqual({ certificates: `${text.trimEnd()}\n`, privateKey: "" });
});

test.each([
  ["", "nothing"],
  ["hello", "no block"],
  ["-----BEGIN CERTIFICATE-----\nTEFG\n", "a block without its end"],
  ["-----BEGIN PRIVATE KEY-----\nTEFG\n-----END CERTIFICATE-----\n", "an end of another kind"],
  [block("PUBLIC KEY", "UFVC"), "another kind"],
])("%j: %s", (text) => {
  expect(pemParts(text)).toEqual({ certificates: "", privateKey: "" });
});
