// A request for a certificate, as OpenSSL reads and verifies it.

import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { newPrivateKey, requestFor } from "../../../src/central/acme/certificate-key.ts";

test.each([[1], [2], [100]])("a request for %i names is verified and names them", (count) => {
  const names = Array.from(
    { length: count },
    (_, no) => `host-${no}.a-rather-long-name.example.com`,
  );
  const request = requestFor(newPrivateKey(), names);
  const args = ["req", "-inform", "DER", "-noout", "-text", "-verify"];
  const text = execFileSync("openssl", args, { input: request, stdio: "pipe" }).toString();
  const told = [...text.matchAll(/DNS:([^,\s]+)/g)].map(([, name]) => name);
  expect(told).toEqual(names);
  expect(text).toMatch(/Subject:\s*\n/);
  expect(text).toContain("ecdsa-with-SHA256");
});
