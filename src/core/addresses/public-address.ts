// Whether an address is one of the public internet: what a customer names must not lead into the network that central stands in.

import ipaddr from "ipaddr.js";
import { plainAddress, reachedAddressFault } from "../serving/backend-url.ts";

/**
 * Returns false for private, loopback, link-local, carrier, documentation, reserved and metadata addresses,
 * however they are wrapped, and for text that is no address.
 */
export function isPublicAddress(text: string): boolean {
  const plain = plainAddress(text);
  if (plain === undefined) return false;
  return ipaddr.parse(plain).range() === "unicast" && reachedAddressFault(plain) === undefined;
}

const hookCharsMax = 2_048;

/**
 * Says what is wrong with the URL of a chat hook as it is written, or returns undefined. The addresses that
 * its name resolves to are judged at each sending.
 */
export function hookUrlFault(text: string, mayBePrivate: boolean): string | undefined {
  if (text.length > hookCharsMax) return `must have at most ${hookCharsMax} characters`;
  if (!/^https?:\/\//i.test(text)) return "must be a URL with http:// or https://";
  if (/[^\x21-\x7e]|\\/.test(text))
    return "must not contain blanks, backslashes or characters beyond ASCII";
  if (!URL.canParse(text)) return "is not a URL: the host or the port cannot be read";
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return "must not contain credentials";
  if (url.port === "0") return "must not have port 0";
  const literal = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const isPrivate =
    /(?:^|\.)localhost\.?$/i.test(literal) ||
    (ipaddr.isValid(literal) && !isPublicAddress(literal));
  return isPrivate && !mayBePrivate ? "must not lead to a private address" : undefined;
}
