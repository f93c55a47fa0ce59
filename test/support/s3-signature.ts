// Signature version 4 as a server checks it (AWS, "Authenticating Requests"): what was signed is made again of the request as it arrived.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

export type SigningKey = { readonly id: string; readonly secret: string; readonly region: string };

const sha256 = (text: string | Uint8Array): string =>
  createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Uint8Array, text: string): Buffer =>
  createHmac("sha256", key).update(text).digest();

/** What S3 answers where a request is not signed as it should be; undefined: it is. */
export function signatureFault(
  { method = "", url = "", headers }: IncomingMessage,
  body: Uint8Array,
  key: SigningKey,
): "AccessDenied" | "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "BadDigest" | undefined {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;
  const found = pattern.exec(headers.authorization ?? "");
  if (found === null) return "AccessDenied";
  const [, id = "", day = "", region = "", signed = "", signature = ""] = found;
  if (id !== key.id) return "InvalidAccessKeyId";
  const names = signed.split(";");
  if (!names.includes("host") || region !== key.region) return "SignatureDoesNotMatch";
  const digest = String(headers["x-amz-content-sha256"]);
  const [path = "", query = ""] = url.split("?", 2);
  const pairs = [...new URLSearchParams(query)].map(
    ([name, value]) => `${encoded(name)}=${encoded(value)}`,
  );
  const canonical = [
    method,
    path,
    pairs.toSorted().join("&"),
    ...names.map((name) => `${name}:${String(headers[name]).trim()}`),
    "",
    signed,
    digest,
  ].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, sha256(canonical)].join("\n");
  const signing = [day, region, "s3", "aws4_request"].reduce<string | Buffer>(
    (made, part) => hmac(made, part),
    `AWS4${key.secret}`,
  );
  const own = hmac(signing, text);
  if (!timingSafeEqual(own, Buffer.from(signature, "hex"))) return "SignatureDoesNotMatch";
  // Of a body that is not signed nothing can be said.
  return digest === "UNSIGNED-PAYLOAD" || digest === sha256(body) ? undefined : "BadDigest";
}

function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
