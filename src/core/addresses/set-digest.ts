// The digest of a bot set: independent of order, updated by the change alone.
//
//   element  = "<bot>\n<range>"            range in canonical text (address, CIDR)
//   digest   = sum of SHA-256(element) as a 256-bit number, mod 2^256, in lower-case hex

import { hash } from "node:crypto";
import type { Sha256 } from "../ids.ts";

export type SetElement = { readonly bot: string; readonly range: string };

export const emptySetDigest = "0".repeat(64) as Sha256; // 64 hex digits, as a digest has.

const modulus = 1n << 256n;

export function elementKey({ bot, range }: SetElement): string {
  return `${bot}\n${range}`;
}

function elementNumber(element: SetElement): bigint {
  return BigInt(`0x${hash("sha256", elementKey(element), "hex")}`);
}

/**
 * Returns the digest after a change. The caller vouches that what is added was absent and what is removed was
 * present.
 */
export function changedSetDigest(
  before: string,
  added: Iterable<SetElement>,
  removed: Iterable<SetElement>,
): Sha256 {
  let sum = BigInt(`0x${before}`);
  for (const element of added) sum += elementNumber(element);
  for (const element of removed) sum -= elementNumber(element);
  return digestText(sum);
}

/** Returns the digest of a set in which one part, known by its own digest, is replaced by another. */
export function exchangedSetDigest(set: string, partBefore: string, partAfter: string): Sha256 {
  return digestText(BigInt(`0x${set}`) - BigInt(`0x${partBefore}`) + BigInt(`0x${partAfter}`));
}

function digestText(sum: bigint): Sha256 {
  // 64 hex digits, as a digest has.
  return (((sum % modulus) + modulus) % modulus).toString(16).padStart(64, "0") as Sha256;
}
