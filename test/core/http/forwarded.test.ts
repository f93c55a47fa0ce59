// The field Forwarded with the examples of RFC 7239, what senders make of it, and what visitors try.

import { expect, test } from "vitest";
import { parseIp } from "../../../src/core/addresses/ip.ts";
import { forwardedHops } from "../../../src/core/http/client-address.ts";

/** Null: what is no address. */
const hopsOf = (value: string): readonly (string | null)[] =>
  [...forwardedHops(value, 64)].map(({ address = "" }) =>
    parseIp(address) === undefined ? null : address,
  );

test.each<readonly [value: string, hops: readonly (string | null)[]]>([
  ["for=192.0.2.43", ["192.0.2.43"]],
  ['For="[2001:db8:cafe::17]:4711"', ["2001:db8:cafe::17"]],
  ["for=192.0.2.60;proto=http;by=203.0.113.43", ["192.0.2.60"]],
  ["for=192.0.2.43, for=198.51.100.17", ["198.51.100.17", "192.0.2.43"]],
  ['for="192.0.2.43:47011"', ["192.0.2.43"]],
  ['for="192.0.2.43:_port"', ["192.0.2.43"]],
  ['for="_gazonk"', [null]],
  ["for=unknown, for=192.0.2.1", ["192.0.2.1", null]],
  ["proto=https", [null]],
  ['host="a,for=9.9.9.9;b", for=192.0.2.1', ["192.0.2.1", null]],
  ["for=1.2.3.4;for=5.6.7.8", [null]],
  ["for=[2001:db8::1]", [null]],
  ["for=192.0.2.999", [null]],
  ['for="[192.0.2.1]"', [null]],
  [" for = 192.0.2.1 ;; , ,for=192.0.2.2", ["192.0.2.2", "192.0.2.1"]],
  ['host="a;for=9.9.9.9;b"', [null]],
  ['host="a;for=9.9.9.9;b";for=192.0.2.1', ["192.0.2.1"]],
  ["", []],
])("%s", (value, hops) => {
  expect(hopsOf(value)).toEqual(hops);
});

test.each([
  'for="',
  'for="x',
  String.raw`for="\"`,
  'for=1.2.3.4;host="',
  "for",
  "=,=",
  '"'.repeat(999),
  ",".repeat(9_999),
])("what a visitor writes first does not hide the hop that a proxy appended: %#", (begin) => {
  expect(hopsOf(`${begin}, for=192.0.2.1`)[0]).toBe("192.0.2.1");
  expect(hopsOf(`${begin}, for="[2001:db8::1]:80";proto=https`)[0]).toBe("2001:db8::1");
});

test.each([
  ["for=192.0.2.1;proto=https", ["https"]],
  ['proto="http";for=unknown, for=192.0.2.1', [undefined, "http"]],
  ["Proto=https;proto=http", [undefined]],
  ['host="a;proto=https"', [undefined]],
])("%s: protocols %j", (value, protos) => {
  expect([...forwardedHops(value, 64)].map(({ proto }) => proto)).toEqual(protos);
});

test("an element is looked at when its hop is asked for", () => {
  const begin = 'for="x",'.repeat(4_000);
  expect([...forwardedHops(`${begin}for=9.9.9.9, for=192.0.2.1`, 2)]).toMatchObject([
    { address: "192.0.2.1" },
    { address: "9.9.9.9" },
  ]);
});

test("only the end of an endless list is read", () => {
  expect(hopsOf(",for=9.9.9.9".repeat(100_000)).length).toBe(64);
  expect(hopsOf(",".repeat(100_000))).toEqual([]);
});
