// Reading addresses without garbage against the library: the same texts are accepted and mean the same number.

import fc from "fast-check";
import { expect, test } from "vitest";
import { AddressReader } from "../../../src/core/addresses/address-reader.ts";
import { formatIp, parseIp, type IpAddress } from "../../../src/core/addresses/ip.ts";

const reader = new AddressReader();

function read(text: string): IpAddress | undefined {
  const family = reader.read(text);
  if (family === 0) return undefined;
  const words = family === 4 ? reader.words.subarray(0, 1) : reader.words;
  return { family, value: words.reduce((value, word) => (value << 32n) | BigInt(word), 0n) };
}

const group = fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16));
const quad = fc
  .tuple(...Array.from({ length: 4 }, () => fc.integer({ min: 0, max: 300 })))
  .map((octets) => octets.join("."));
const almost = fc.oneof(
  quad,
  fc.ipV4(),
  fc.ipV6(),
  fc.array(fc.oneof(group, fc.constant("")), { maxLength: 10 }).map((groups) => groups.join(":")),
  fc
    .tuple(fc.array(fc.oneof(group, fc.constant("")), { maxLength: 7 }), quad)
    .map(([groups, end]) => [...groups, end].join(":")),
  fc.string({
    unit: fc.constantFrom(..."0123456789abcdefABCDEF::::....".split("")),
    maxLength: 48,
  }),
);

test("every text is what the library says it is", () => {
  fc.assert(
    fc.property(almost, (text) => {
      // The library takes the long deprecated ::a.b.c.d for a mapped address; RFC 4291 §2.5.5 tells the two apart.
      fc.pre(!/^::\d+\.\d+\.\d+\.\d+$/.test(text));
      expect(read(text), text).toEqual(parseIp(text));
    }),
    { numRuns: 20_000 },
  );
});

test.each([
  ["::ffff:1.2.3.4", "1.2.3.4"],
  ["::ffff:102:304", "1.2.3.4"],
  ["::1.2.3.4", "::102:304"],
  ["::", "::"],
  ["1::", "1::"],
  ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
  ["1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"],
])("%s is %s", (text, same) => {
  const address = read(text);
  expect(address && formatIp(address)).toBe(same);
});

test.each([
  "",
  "1.2.3",
  "1.2.3.04",
  "1.2.3.4 ",
  ":1",
  "1:",
  ":::",
  "1:::2",
  "fe80::1%eth0",
  "1.2.3.4:80",
])("%j is no address", (text) => {
  expect(reader.read(text)).toBe(0);
});
