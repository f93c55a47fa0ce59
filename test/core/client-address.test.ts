// Whose address decides: only trusted proxies are believed, from the right.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clientAddress, compileTrusted, parsePeer } from "../../src/core/client-address.ts";
import { parseIp } from "../../src/core/ip.ts";

const trusted = compileTrusted(["127.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"]);

function client(peerText: string, forwardedFor: string | undefined): string {
  const peer = parsePeer(peerText);
  if (peer === undefined) throw new Error(`no address: ${peerText}`);
  return clientAddress(peer, forwardedFor, trusted).text;
}

describe("client address", () => {
  it.each([
    ["198.51.100.7", undefined, "198.51.100.7"],
    ["198.51.100.7", "1.2.3.4", "198.51.100.7"],
    ["127.0.0.1", undefined, "127.0.0.1"],
    ["::ffff:127.0.0.1", "1.2.3.4", "1.2.3.4"],
    ["127.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"],
    ["127.0.0.1", "6.6.6.6, 1.2.3.4 , 10.1.2.3", "1.2.3.4"],
    ["127.0.0.1", "10.1.0.1,10.1.0.2", "10.1.0.1"],
    ["127.0.0.1", "1.2.3.4:5678", "1.2.3.4"],
    ["127.0.0.1", "[2a00::1]:443", "2a00::1"],
    ["127.0.0.1", "2a00::1", "2a00::1"],
    ["127.0.0.1", "6.6.6.6, unknown, 10.1.0.1", "10.1.0.1"],
    ["127.0.0.1", "unknown", "127.0.0.1"],
    ["127.0.0.1", "", "127.0.0.1"],
    ["2001:db8::5", "::ffff:9.9.9.9", "9.9.9.9"],
  ])("peer %s, X-Forwarded-For %j: %s", (peer, forwardedFor, expected) => {
    expect(client(peer, forwardedFor)).toBe(expected);
  });

  it("is the peer's whatever an untrusted peer writes", () => {
    fc.assert(fc.property(fc.string(), (text) => client("192.0.2.1", text) === "192.0.2.1"));
  });

  it("of a socket may have a zone, or be gone", () => {
    expect(parsePeer("fe80::1%eth0")).toEqual(parseIp("fe80::1"));
    expect(parsePeer(undefined)).toBeUndefined();
  });
});
