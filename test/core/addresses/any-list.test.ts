// Lists of whatever form, known by their first character, and read the same however they are cut.

import { expect, test } from "vitest";
import { AnyListReader } from "../../../src/core/addresses/any-list.ts";
import { vipRefusal } from "../../../src/core/addresses/range-limits.ts";

function read(text: string, piece = 7, reader = new AnyListReader()) {
  const parts = [];
  for (let at = 0; at < text.length; at += piece)
    parts.push(reader.read(text.slice(at, at + piece)));
  parts.push(reader.end());
  for (let part = reader.more(); part !== undefined; part = reader.more()) parts.push(part);
  return {
    ranges: parts.flatMap(({ ranges }) => ranges.map((one) => one.text)),
    faults: parts.flatMap(({ faults }) => faults),
    unit: reader.unit,
  };
}

const two = ["192.0.2.7", "198.51.100.0/24"];
const six = "2001:db8::/64";
const google = {
  creationTime: "2026-11-28T23:00:00",
  prefixes: [{ ipv6Prefix: six }, { ipv4Prefix: "192.0.2.7/32" }],
};
const cloud = {
  syncToken: "1",
  prefixes: [{ ip_prefix: "198.51.100.0/24", region: "eu", service: "EC2" }],
  ipv6_prefixes: [{ ipv6_prefix: six, region: "eu" }],
};

test.each([
  ["lines", "\n  # of May\n192.0.2.7\r\n198.51.100.0/24 ; here\n", two, "line"],
  ["a JSON array", `\n ${JSON.stringify(two, null, 2)}`, two, "item"],
  ["a search engine's", JSON.stringify(google, null, 1), [six, "192.0.2.7"], "item"],
  ["a cloud's", JSON.stringify(cloud), ["198.51.100.0/24", six], "item"],
])("%s", (_name, text, ranges, unit) => {
  for (const piece of [1, 2, 13, 10_000])
    expect(read(text, piece)).toEqual({ ranges, faults: [], unit });
});

test("what is read whole comes in parts, each fault with its number in the whole", () => {
  const prefixes = Array.from({ length: 2_500 }, (_, no) => ({
    ipv4Prefix: no === 2_345 ? "nonsense" : `10.0.${no >> 8}.${no & 255}`,
  }));
  const reader = new AnyListReader();
  reader.read(JSON.stringify({ prefixes }));
  const sizes = [reader.end(), reader.more(), reader.more(), reader.more()].map(
    (part) => part && [part.ranges.length, part.faults.map(({ line }) => line)],
  );
  expect(sizes).toEqual([[1_000, []], [1_000, []], [499, [2_346]], undefined]);
});

test("an empty list has nothing in it", () => {
  for (const text of ["", " \n\r\n ", "[]"])
    expect(read(text)).toMatchObject({ ranges: [], faults: [] });
});

test("a page is no list", () => {
  expect(() => read("\n<!doctype html><p>192.0.2.7")).toThrow(
    "is a page (HTML or XML) and no list",
  );
});

test.each([
  ["{", 'is no JSON object with "prefixes": it is no JSON'],
  ['{"prefixes": 5}', "there are none in it"],
  ['{"ips": ["192.0.2.7"]}', "there are none in it"],
  [
    '{"prefixes": [{"ipv4Prefix": "192.0.2.7"}, {"cidr": "x"}]}',
    "its prefix 2 has none of ipv4Prefix",
  ],
  ['{"prefixes": [null]}', "its prefix 1 has none of"],
  ['["192.0.2.7"', "it ends"],
])("%j is refused with words", (text, words) => {
  expect(() => read(text)).toThrow(words);
});

test("an object beyond 8 MiB is refused before it is held", () => {
  const reader = new AnyListReader();
  reader.read("{");
  const piece = " ".repeat(1024 * 1024);
  expect(() => {
    for (let count = 0; count < 9; count++) reader.read(piece);
  }).toThrow("more than 8388608 characters");
});

test("faults are told by their number, and what a VIP bot may not have is one", () => {
  const text = JSON.stringify({ prefixes: [{ ipv4Prefix: "192.0.2.0/23" }, { ipv4Prefix: "x" }] });
  expect(read(text, 9, new AnyListReader(vipRefusal)).faults).toEqual([
    { line: 1, reason: expect.stringContaining("a VIP range must be /24 or longer") },
    { line: 2, reason: expect.stringContaining("x") },
  ]);
});
