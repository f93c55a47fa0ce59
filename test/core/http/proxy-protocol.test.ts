// PROXY protocol headers as the proxies of the field write them, cut at every byte, and what is none.

import { expect, test } from "vitest";
import { formatIp, parseIp } from "../../../src/core/addresses/ip.ts";
import { readProxyHeader } from "../../../src/core/http/proxy-protocol.ts";

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
const signature = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10];
const v2 = (command: number, family: number, body: readonly number[]): Uint8Array =>
  Uint8Array.from([...signature, command, family, body.length >> 8, body.length & 255, ...body]);
const four = [192, 0, 2, 1, 198, 51, 100, 1, 0xab, 0xcd, 0, 80];
const six = [
  0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 8, 0, 1, 0, 2,
];

const noop = [4, 0, 2, 0x20, 0];
/** An extension that says nothing, with so many bytes. */
const padding = (bytes: number): readonly number[] => [
  4,
  bytes >> 8,
  bytes & 255,
  ...Array<number>(bytes).fill(0),
];

const headers: readonly (readonly [name: string, header: Uint8Array, source: string | null])[] = [
  ["v1 TCP4", ascii("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"), "192.0.2.1"],
  ["v1 TCP6", ascii("PROXY TCP6 2001:db8::7 2001:db8::8 1 65535\r\n"), "2001:db8::7"],
  ["v1 UNKNOWN", ascii("PROXY UNKNOWN\r\n"), null],
  ["v1 UNKNOWN with more", ascii("PROXY UNKNOWN ffff:f...f:ffff 65535\r\n"), null],
  ["v1 as long as it may be", ascii(`PROXY UNKNOWN ${"x".repeat(91)}\r\n`), null],
  ["v2 TCP4", v2(0x21, 0x11, four), "192.0.2.1"],
  ["v2 TCP6", v2(0x21, 0x21, six), "2001:db8::7"],
  ["v2 TCP4 with extensions", v2(0x21, 0x11, [...four, 3, 0, 4, 1, 2, 3, 4]), "192.0.2.1"],
  [
    "v2 mapped",
    v2(0x21, 0x21, [...Array<number>(10).fill(0), 255, 255, 1, 2, 3, 4, ...six.slice(16)]),
    "1.2.3.4",
  ],
  ["v2 LOCAL", v2(0x20, 0x00, []), null],
  ["v2 LOCAL with an address", v2(0x20, 0x11, four), null],
  ["v2 UNIX", v2(0x21, 0x31, Array<number>(216).fill(1)), null],
  ["v2 as long as it may be", v2(0x21, 0x11, [...four, ...padding(4_081)]), "192.0.2.1"],
  ["v2 unspecified", v2(0x21, 0x00, []), null],
];

test.each(headers)("%s", (_, header, source) => {
  const read = readProxyHeader(Uint8Array.from([...header, 71, 69, 84]));
  expect(read).toMatchObject({ kind: "read", bytes: header.length });
  const address = read.kind === "read" ? parseIp(read.visitor?.address ?? "") : undefined;
  expect(address === undefined ? null : formatIp(address)).toBe(source);
});

test.each([
  ["v1", headers[0]?.[1], { port: 443, isTls: false }],
  ["v2", v2(0x21, 0x11, four), { port: 80, isTls: false }],
  ["v2 at a high port", v2(0x21, 0x11, [...four.slice(0, 10), 1, 187]), { port: 443 }],
  ["v2 of IPv6", v2(0x21, 0x21, six), { port: 2, isTls: false }],
  ["v2 with TLS", v2(0x21, 0x11, [...four, ...noop, 0x20, 0, 5, 1, 0, 0, 0, 0]), { isTls: true }],
  ["v2 without TLS", v2(0x21, 0x11, [...four, 0x20, 0, 5, 0, 0, 0, 0, 0]), { isTls: false }],
  [
    "v2 with TLS behind a long extension",
    v2(0x21, 0x11, [...four, ...padding(256), 0x20, 0, 5, 1, 0, 0, 0, 0]),
    { isTls: true },
  ],
  ["v2 with TLS in one byte", v2(0x21, 0x11, [...four, 0x20, 0, 1, 1]), { isTls: true }],
  [
    "v2, an empty extension before an odd byte",
    v2(0x21, 0x11, [...four, 0x20, 0, 0, 3, 0, 4, 1, 2, 3, 4]),
    { isTls: false },
  ],
  ["v2, its extensions cut", v2(0x21, 0x11, [...four, 3, 0, 9, 0x20, 0, 5, 1]), { isTls: false }],
  ["v2, an empty extension", v2(0x21, 0x11, [...four, 0x20, 0, 0]), { isTls: false }],
])("%s tells where the visitor connected to and how", (_, header, visitor) => {
  expect(readProxyHeader(header ?? ascii(""))).toMatchObject({ kind: "read", visitor });
});

test.each(headers)("%s, cut anywhere, is incomplete", (_, header) => {
  for (let length = 0; length < header.length; length++)
    expect(readProxyHeader(header.subarray(0, length)), `${length} bytes`).toEqual({
      kind: "incomplete",
    });
});

test.each([
  ["a request", ascii("GET / HTTP/1.1\r\n")],
  ["a request that begins alike", ascii("PROPFIND / HTTP/1.1\r\n")],
  ["another family", ascii("PROXY TCP4 2001:db8::7 2001:db8::8 1 2\r\n")],
  ["a leading zero", ascii("PROXY TCP4 192.0.2.01 198.51.100.1 1 2\r\n")],
  ["a port too large", ascii("PROXY TCP4 192.0.2.1 198.51.100.1 70000 2\r\n")],
  ["a bare line feed", ascii("PROXY TCP4 192.0.2.1 198.51.100.1 1 2\n")],
  ["two spaces", ascii("PROXY  TCP4 192.0.2.1 198.51.100.1 1 2\r\n")],
  ["the first letters of a request", ascii("GE")],
  ["a letter more than alike", ascii("PU")],
  ["no end", ascii(`PROXY UNKNOWN ${"x".repeat(200)}`)],
  ["no end where the last byte may be", ascii(`PROXY UNKNOWN ${"x".repeat(93)}`)],
  ["one byte too many", ascii(`PROXY UNKNOWN ${"x".repeat(92)}\r\n`)],
  ["version 3", v2(0x31, 0x11, four)],
  ["an unknown command", v2(0x22, 0x11, four)],
  ["addresses cut short", v2(0x21, 0x11, four.slice(0, 8))],
  ["one byte too many in version 2", v2(0x21, 0x11, [...four, ...padding(4_082)])],
  ["a huge header", Uint8Array.from([...signature, 0x21, 0x11, 0xff, 0xff])],
])("refused: %s", (_, bytes) => {
  expect(readProxyHeader(bytes)).toMatchObject({ kind: "invalid" });
});
