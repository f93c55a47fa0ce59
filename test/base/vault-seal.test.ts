// Keys and certificates on their way: open for their site, their name and their certificate, and for nothing else.

import { hkdfSync, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import {
  openPrivateKey,
  openSymmetricKey,
  sealPrivateKey,
  sealSymmetricKey,
} from "../../src/base/vault-seal.ts";
import { sealBytes } from "../../src/base/seal.ts";
import { parseSha256 } from "../../src/core/ids.ts";

const site = { name16: "00112233445566aa", secret16: "0123456789abcdef0123456789abcdef" };
const keyName = "key-00112233445566aa-1";
const unreadable = expect.objectContaining({ code: "SEAL_BROKEN" });

/** One other character in the middle. */
function changed(sealed: string): string {
  const at = sealed.length >> 1;
  return `${sealed.slice(0, at)}${sealed[at] === "A" ? "B" : "A"}${sealed.slice(at + 1)}`;
}

test("a symmetric key opens with the secret of its site under its name", () => {
  const key = new Uint8Array(randomBytes(32));
  const sealed = sealSymmetricKey(key, site, keyName);
  expect(sealed).toMatch(/^[A-Za-z0-9_-]{80}$/);
  expect(new Uint8Array(openSymmetricKey(sealed, site, keyName))).toEqual(key);
  expect(sealSymmetricKey(key, site, keyName)).not.toBe(sealed);
  const wrong: readonly (readonly [string, typeof site, string])[] = [
    [sealed, { ...site, secret16: site.secret16.replace("0", "1") }, keyName],
    [sealed, { ...site, name16: "00112233445566ab" }, keyName],
    [sealed, site, "key-00112233445566aa-2"],
    [changed(sealed), site, keyName],
    [sealed.slice(0, 40), site, keyName],
    ["", site, keyName],
  ];
  for (const [text, of, name] of wrong)
    expect(() => openSymmetricKey(text, of, name)).toThrow(unreadable);
});

/** HKDF and context are the contract with agents of other releases: written out here a second time. */
test("the form of a sealed symmetric key does not change", () => {
  const derived = hkdfSync(
    "sha256",
    site.secret16,
    site.name16,
    "accel-agent symmetric key v1",
    32,
  );
  const context = `key.changed\n${site.name16}\n${keyName}`;
  const key = new Uint8Array(32).fill(9);
  const sealed = sealBytes(key, new Uint8Array(derived), context);
  expect(new Uint8Array(openSymmetricKey(sealed, site, keyName))).toEqual(key);
  const short = sealBytes(key.subarray(1), new Uint8Array(derived), context);
  expect(() => openSymmetricKey(short, site, keyName)).toThrow(/wrong length/);
});

test("a private key opens for its site and its certificate", () => {
  const key = new Uint8Array(randomBytes(32));
  const [one, other] = ["a", "b"].map((digit) => parseSha256(digit.repeat(64)) ?? "");
  const place = { name16: site.name16, fingerprint: one ?? "" };
  const sealed = sealPrivateKey("PEM canary", key, place);
  expect(Buffer.from(sealed, "base64url").toString("latin1")).not.toContain("canary");
  expect(openPrivateKey(sealed, key, place)).toBe("PEM canary");
  for (const [text, by, at] of [
    [sealed, new Uint8Array(32), place],
    [sealed, key, { ...place, fingerprint: other ?? "" }],
    [sealed, key, { ...place, name16: "00112233445566ab" }],
    [changed(sealed), key, place],
  ] as const)
    expect(() => openPrivateKey(text, by, at)).toThrow(unreadable);
});
