// The chain digest of a journal: every entry commits to all before it, so that a store that was copied back or edited is noticed.
//
//   chain(0) = 64 zeros
//   chain(n) = SHA-256( chain(n-1) "\n" seq "\n" kind "\n" at "\n" SHA-256(canonical body) )   in lower-case hex

import { sha256Of, type Sha256 } from "../ids.ts";
import { canonicalJson, type Json } from "./canonical-json.ts";

export const chainStart = "0".repeat(64) as Sha256; // 64 hex digits, as a digest has.

export type ChainLink = {
  readonly seq: number;
  readonly kind: string;
  readonly at: string;
  readonly bodyDigest: string;
};

export function bodyDigest(body: Json): Sha256 {
  return sha256Of(canonicalJson(body));
}

export function nextChain(before: string, { seq, kind, at, bodyDigest: body }: ChainLink): Sha256 {
  return sha256Of(`${before}\n${seq}\n${kind}\n${at}\n${body}`);
}
