// Signs what a directory of ACME is told (RFC 8555 §6.2), with the account's key: ES256 over P-256.

import { createHash, createPublicKey, sign, type KeyObject } from "node:crypto";

export type JwsHeader = {
  readonly url: string;
  readonly nonce: string;
  /** The account's URL; undefined before there is one, and then the key itself stands there. */
  readonly accountUrl: string | undefined;
};

const base64url = (text: string): string => Buffer.from(text).toString("base64url");

/** Returns the body of a request. `payload` undefined is a request that reads (POST-as-GET, §6.3). */
export function signedBody(
  key: KeyObject,
  { url, nonce, accountUrl }: JwsHeader,
  payload: unknown,
): string {
  const whose = accountUrl === undefined ? { jwk: publicJwk(key) } : { kid: accountUrl };
  const header = base64url(JSON.stringify({ alg: "ES256", nonce, url, ...whose }));
  const body = payload === undefined ? "" : base64url(JSON.stringify(payload));
  const signature = sign("sha256", Buffer.from(`${header}.${body}`), {
    key,
    dsaEncoding: "ieee-p1363",
  });
  return JSON.stringify({
    protected: header,
    payload: body,
    signature: signature.toString("base64url"),
  });
}

/** The members in the order of RFC 7638 §3.2, which the thumbprint is made of. */
function publicJwk(key: KeyObject): Readonly<Record<string, string>> {
  const { crv = "", kty = "", x = "", y = "" } = createPublicKey(key).export({ format: "jwk" });
  return { crv, kty, x, y };
}

/** Returns what answers a challenge (RFC 8555 §8.1). */
export function keyAuthorization(key: KeyObject, token: string): string {
  const thumbprint = createHash("sha256").update(JSON.stringify(publicJwk(key)));
  return `${token}.${thumbprint.digest("base64url")}`;
}
