// Names have one form.

import { expect, test } from "vitest";
import {
  hostOfAuthority,
  parseDomainName,
  parseName16,
  parseSecret16,
  parseSha256,
} from "../../src/core/ids.ts";

test.each([
  ["Example.COM", "example.com"],
  ["bücher.example", "xn--bcher-kva.example"],
  ["a-b.c_d.example", "a-b.c_d.example"],
  ["demo.localhost", "demo.localhost"],
  ["example.com.", "example.com"],
  ["B.Example.", "b.example"],
  [`${"a".repeat(61)}.`.repeat(4), `${"a".repeat(61)}.`.repeat(4).slice(0, -1)],
])("%s is the domain %s", (raw, canonical) => {
  expect(parseDomainName(raw)).toBe(canonical);
});

test.each([
  "",
  "localhost",
  "example.com..",
  "example.",
  "127.0.0.1.",
  ".example.com",
  "a..b",
  "-a.example",
  "a-.example",
  "127.0.0.1",
  "[::1]",
  "a.example:80",
  "a.example/x",
  "a b.example",
  "user@a.example",
  `${"a".repeat(64)}.example`,
  7,
  null,
  "1.2.3.4.5",
  "x.%41",
])("%j is no domain", (raw) => {
  expect(parseDomainName(raw)).toBeUndefined();
});

test.each([
  ["Example.com:8080", "example.com"],
  ["example.com.", "example.com"],
  ["[::1]:80", "[::1]"],
  ["127.0.0.1", "127.0.0.1"],
])("the host of %s is %s", (authority, host) => {
  expect(hostOfAuthority(authority)).toBe(host);
});

test.each(["", "a b", "a:b:c", "user@host", "host:99999999"])("%j has no host", (authority) => {
  expect(hostOfAuthority(authority)).toBeUndefined();
});

test("hex names are exact", () => {
  expect(parseName16("0123456789abcdef")).toBe("0123456789abcdef");
  expect(parseName16("0123456789ABCDEF")).toBeUndefined();
  expect(parseSecret16("0".repeat(31))).toBeUndefined();
  expect(parseSha256("g".repeat(64))).toBeUndefined();
});
