// Whose address decides: only trusted proxies are believed, from the right, and only in the field that they write.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ClientAddresses,
  type ClientAddress,
  type ForwardedHeader,
} from "../../../src/core/http/client-address.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";

const ranges = ["127.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"];
const byList = new ClientAddresses(ranges, "x-forwarded-for");
const byForwarded = new ClientAddresses(ranges, "forwarded");

function client(clients: ClientAddresses, peerText: string, fields: readonly Field[]) {
  const peer = clients.ofPeer(peerText);
  if (peer === undefined) throw new Error(`no address: ${peerText}`);
  return clients.ofRequest(peer, fields);
}

const listed = (peer: string, value: string | undefined): ClientAddress =>
  client(byList, peer, value === undefined ? [] : [["X-Forwarded-For", value]]);

const forwarded = (peer: string, value: string): ClientAddress =>
  client(byForwarded, peer, [["Forwarded", value]]);

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
    ["127.0.0.1", "2A00:0:0::1", "2a00::1"],
    ["127.0.0.1", "6.6.6.6, unknown, 10.1.0.1", "10.1.0.1"],
    ["127.0.0.1", "unknown", "127.0.0.1"],
    ["127.0.0.1", "", "127.0.0.1"],
    ["127.0.0.1", ",", "127.0.0.1"],
    ["127.0.0.1", ",1.2.3.4", "1.2.3.4"],
    ["127.0.0.1", "1.2.3.4,", "127.0.0.1"],
    ["127.0.0.1", "01.2.3.4", "127.0.0.1"],
    ["2001:db8::5", "::ffff:9.9.9.9", "9.9.9.9"],
  ])("peer %s, X-Forwarded-For %j: %s", (peer, value, expected) => {
    expect(listed(peer, value).text).toBe(expected);
  });

  it.each([
    ["198.51.100.7", "for=1.2.3.4", "198.51.100.7"],
    ["127.0.0.1", "for=6.6.6.6, for=1.2.3.4", "1.2.3.4"],
    ["127.0.0.1", "for=1.2.3.4, for=10.1.2.3", "1.2.3.4"],
    ["127.0.0.1", 'for="[2A00::0:1]:443"', "2a00::1"],
    ["127.0.0.1", "for=6.6.6.6, for=unknown, for=10.1.0.1", "10.1.0.1"],
    ["127.0.0.1", 'for="[::ffff:10.1.0.1]", for="[2001:db8::1]"', "10.1.0.1"],
    ["127.0.0.1", "1.2.3.4", "127.0.0.1"],
  ])("peer %s, Forwarded %j: %s", (peer, value, expected) => {
    expect(forwarded(peer, value).text).toBe(expected);
  });

  it.each<readonly [ForwardedHeader, Field]>([
    ["forwarded", ["X-Forwarded-For", "6.6.6.6"]],
    ["x-forwarded-for", ["Forwarded", "for=6.6.6.6;proto=https"]],
  ])("a proxy that writes %s is not believed in another field", (header, field) => {
    const clients = new ClientAddresses(ranges, header);
    const found = client(clients, "127.0.0.1", [field, ["X-Forwarded-Proto", "http"]]);
    expect(found).toMatchObject({ text: "127.0.0.1", scheme: "http", forwardedFor: "127.0.0.1" });
  });

  it("is the peer's whatever an untrusted peer writes, and the same object", () => {
    for (const clients of [byList, byForwarded]) {
      const peer = clients.ofPeer("192.0.2.1");
      if (peer === undefined) throw new Error("an address");
      fc.assert(
        fc.property(fc.string(), (text) => {
          const fields = ["X-Forwarded-For", "Forwarded", "X-Forwarded-Proto"];
          const found = clients.ofRequest(
            peer,
            fields.map((name) => [name, text] as const),
          );
          expect(found).toBe(peer);
        }),
      );
    }
  });

  it("is what the proxy appended whatever a visitor wrote before it", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...',;="\\ :[]fo.1'.split("")) })),
        (spoofed) => {
          expect(listed("127.0.0.1", `${spoofed}, 192.0.2.1`).text).toBe("192.0.2.1");
          expect(listed("127.0.0.1", `${spoofed},192.0.2.1, 10.1.0.9`).text).toBe("192.0.2.1");
          expect(forwarded("127.0.0.1", `${spoofed}, for=192.0.2.1`).text).toBe("192.0.2.1");
        },
      ),
    );
  });

  it("comes through at most 64 proxies", () => {
    const own = "10.1.0.1,".repeat(100_000);
    expect(listed("127.0.0.1", `6.6.6.6,${own}10.1.0.2`).text).toBe("10.1.0.1");
    const many = "for=10.1.0.1,".repeat(100_000);
    expect(forwarded("127.0.0.1", `for=6.6.6.6,${many}for=10.1.0.2`).text).toBe("10.1.0.1");
  });

  it("of a socket may have a zone, or be gone", () => {
    expect(byList.ofPeer("fe80::1%eth0")?.text).toBe("fe80::1");
    expect(byList.ofPeer("::ffff:127.0.0.1")).toMatchObject({ text: "127.0.0.1", isProxied: true });
    expect(byList.ofPeer(undefined)).toBeUndefined();
    expect(byList.ofPeer("")).toBeUndefined();
  });
});

describe("what is passed on", () => {
  it.each([
    ["192.0.2.1", "6.6.6.6", "192.0.2.1"],
    ["127.0.0.1", undefined, "127.0.0.1"],
    ["127.0.0.1", "", "127.0.0.1"],
    ["127.0.0.1", "6.6.6.6, 1.2.3.4", "6.6.6.6, 1.2.3.4, 127.0.0.1"],
  ])("peer %s, X-Forwarded-For %j: %j", (peer, value, expected) => {
    expect(listed(peer, value).forwardedFor).toBe(expected);
  });

  it.each([
    ["192.0.2.1", "for=6.6.6.6", "192.0.2.1"],
    ["127.0.0.1", "for=unknown", "127.0.0.1"],
    ["127.0.0.1", "for=6.6.6.6, for=1.2.3.4, for=10.1.0.1", "1.2.3.4, 127.0.0.1"],
  ])("peer %s, Forwarded %j: %j", (peer, value, expected) => {
    expect(forwarded(peer, value).forwardedFor).toBe(expected);
  });

  it.each([
    ["192.0.2.1", "https", "http"],
    ["127.0.0.1", "HTTPS", "https"],
    ["127.0.0.1", "http", "http"],
    ["127.0.0.1", "ftp", "http"],
  ])("peer %s, X-Forwarded-Proto %s: %s", (peer, proto, scheme) => {
    expect(client(byList, peer, [["X-Forwarded-Proto", proto]]).scheme).toBe(scheme);
  });

  it.each([
    ["192.0.2.1", "for=1.2.3.4;proto=https", "http"],
    ["127.0.0.1", "for=1.2.3.4;proto=https", "https"],
    ["127.0.0.1", "for=unknown;proto=https", "https"],
    ["127.0.0.1", "for=1.2.3.4;proto=https, for=10.1.0.1;proto=http", "https"],
    ["127.0.0.1", "for=1.2.3.4;proto=https, for=9.9.9.9;proto=http", "http"],
    ["127.0.0.1", "proto=https;for=6.6.6.6, x", "http"],
  ])("peer %s, Forwarded %s: %s", (peer, value, scheme) => {
    expect(forwarded(peer, value).scheme).toBe(scheme);
  });

  it("is TLS where a PROXY header said so and no field says otherwise", () => {
    const peer = byList.ofPeer("127.0.0.1", "https");
    const visitor = byList.ofPeer("192.0.2.1", "https");
    if (peer === undefined || visitor === undefined) throw new Error("addresses");
    expect(byList.ofRequest(visitor, [["X-Forwarded-Proto", "http"]]).scheme).toBe("https");
    expect(byList.ofRequest(peer, []).scheme).toBe("https");
    expect(byList.ofRequest(peer, [["X-Forwarded-Proto", "http"]]).scheme).toBe("http");
  });
});
