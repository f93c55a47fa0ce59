// The PROXY protocol (haproxy.org/download/3.0/doc/proxy-protocol.txt), versions 1 and 2: what a proxy in front says about a connection before its first byte.
//
//   v1   PROXY TCP4|TCP6 source destination source-port destination-port CRLF, at most 107 bytes; PROXY UNKNOWN … says nothing
//   v2   12 bytes of signature, version and command, family and transport, u16 length, addresses, extensions (TLV): of those, only whether
//        the visitor spoke TLS counts

import { parseIp } from "../addresses/ip.ts";

export type ProxiedVisitor = {
  /** An address; in version 2 not in its canonical spelling. */
  readonly address: string;
  /** The port that the visitor connected to. */
  readonly port: number;
  readonly isTls: boolean;
};

export type ProxyHeader =
  /** Too few bytes have come to tell. */
  | { readonly kind: "incomplete" }
  /** The first `bytes` are the header. `visitor` null: the proxy speaks for itself (a health check) or does not know; the peer stands. */
  | { readonly kind: "read"; readonly bytes: number; readonly visitor: ProxiedVisitor | null }
  | { readonly kind: "invalid"; readonly reason: string };

const v1Start = new TextEncoder().encode("PROXY ");
const v1BytesMax = 107;
const v2Start = Uint8Array.of(13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10);
const v2HeadBytes = 16;
/** The longest body accepted; two addresses and the known extensions take some hundred bytes. */
const v2BodyBytesMax = 4_096;
const tlsExtension = 0x20;

const invalid = (reason: string): ProxyHeader => ({ kind: "invalid", reason });

/** Reads from the first bytes of a connection; never more than 4,112 are needed. */
export function readProxyHeader(bytes: Uint8Array): ProxyHeader {
  if (startsAlike(bytes, v2Start)) return readV2(bytes);
  if (startsAlike(bytes, v1Start)) return readV1(bytes);
  return invalid("the connection does not begin with a PROXY header");
}

/** Returns whether both are equal as far as both go. */
function startsAlike(bytes: Uint8Array, start: Uint8Array): boolean {
  return start.every((byte, at) => at >= bytes.length || bytes[at] === byte);
}

function readV1(bytes: Uint8Array): ProxyHeader {
  const end = bytes.subarray(0, v1BytesMax).indexOf(10);
  if (end < 0)
    return bytes.length < v1BytesMax ? { kind: "incomplete" } : invalid("the line has no end");
  const line = String.fromCharCode(...bytes.subarray(0, end + 1));
  const read = (visitor: ProxiedVisitor | null): ProxyHeader => ({
    kind: "read",
    bytes: end + 1,
    visitor,
  });
  if (/^PROXY UNKNOWN(?: [^\r\n]*)?\r\n$/.test(line)) return read(null);
  const match = /^PROXY TCP([46]) (\S+) (\S+) (\d{1,5}) (\d{1,5})\r\n$/.exec(line);
  if (match === null) return invalid("the line is no PROXY header of version 1");
  const [, family, source = "", destination = "", ...ports] = match;
  const isOf = (text: string): boolean =>
    text.includes(":") === (family === "6") && parseIp(text) !== undefined;
  if (!isOf(source) || !isOf(destination) || ports.some((port) => Number(port) > 65_535))
    return invalid("the line names no two addresses and ports of its family");
  return read({ address: source, port: Number(ports[1]), isTls: false });
}

function readV2(bytes: Uint8Array): ProxyHeader {
  if (bytes.length < v2HeadBytes) return { kind: "incomplete" };
  const [versionAndCommand = 0, family = 0, high = 0, low = 0] = bytes.subarray(12, v2HeadBytes);
  const command = versionAndCommand & 15;
  if (versionAndCommand >> 4 !== 2 || command > 1)
    return invalid("neither version nor command of the header is known");
  const length = high * 256 + low;
  if (length > v2BodyBytesMax) return invalid(`the header is longer than ${v2BodyBytesMax} bytes`);
  if (bytes.length < v2HeadBytes + length) return { kind: "incomplete" };
  const body = bytes.subarray(v2HeadBytes, v2HeadBytes + length);
  const read = (visitor: ProxiedVisitor | null): ProxyHeader => ({
    kind: "read",
    bytes: v2HeadBytes + length,
    visitor,
  });
  // LOCAL, or a family without IP addresses (unspecified, UNIX): the peer stands.
  const octets = { 1: 4, 2: 16 }[family >> 4];
  if (command === 0 || octets === undefined) return read(null);
  const extensionsAt = 2 * octets + 4;
  if (length < extensionsAt) return invalid("the header ends within its addresses");
  const [portHigh = 0, portLow = 0] = body.subarray(extensionsAt - 2, extensionsAt);
  return read({
    address: addressOf(body.subarray(0, octets)),
    port: portHigh * 256 + portLow,
    isTls: saysTls(body.subarray(extensionsAt)),
  });
}

function addressOf(octets: Uint8Array): string {
  if (octets.length === 4) return octets.join(".");
  const groups = Array.from({ length: 8 }, (_, group) =>
    ((octets[2 * group] ?? 0) * 256 + (octets[2 * group + 1] ?? 0)).toString(16),
  );
  return groups.join(":");
}

/**
 * Returns the lowest bit of the extension's first byte (PP2_CLIENT_SSL). Extensions that do not fit end the
 * search.
 */
function saysTls(extensions: Uint8Array): boolean {
  for (let at = 0; at + 3 < extensions.length;) {
    const [type = 0, high = 0, low = 0, first = 0] = extensions.subarray(at, at + 4);
    const length = high * 256 + low;
    if (type === tlsExtension) return length > 0 && (first & 1) === 1;
    at += 3 + length;
  }
  return false;
}
