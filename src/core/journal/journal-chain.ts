// The chain digest of a journal: every entry commits to all before it, so that a store that was copied back or edited is noticed.
//
//   chain(0) = 64 zeros
//   chain(n) = SHA-256( chain(n-1) "\n" seq "\n" kind "\n" at "\n" SHA-256(canonical body) )   in lower-case hex

import { createHash } from "node:crypto";
import { canonicalJson, type Json } from "./canonical-json.ts";

export const chainStart = "0".repeat(64);

export type ChainLink = {
  readonly seq: number;
  readonly kind: string;
  readonly at: string;
  readonly bodyDigest: string;
};

export function bodyDigest(body: Json): string {
  return createHash("sha256").update(canonicalJson(body)).digest("hex");
}

export function nextChain(before: string, { seq, kind, at, bodyDigest: body }: ChainLink): string {
  return createHash("sha256").update(`${before}\n${seq}\n${kind}\n${at}\n${body}`).digest("hex");
}
