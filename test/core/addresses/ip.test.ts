// Addresses and ranges: canonical text, mapped addresses, host bits, custom ranges, covers.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  cidrCover,
  customRange,
  enclosingStarts,
  familyBits,
  formatIp,
  formatRange,
  parseIp,
  parseRange,
  type IpFamily,
} from "../../../src/core/addresses/ip.ts";

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::FFFF:c000:201", "192.0.2.1"],
  ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
  ["::", "::"],
])("%s reads as %s", (text, canonical) => {
  const ip = parseIp(text);
  expect(ip === undefined ? undefined : formatIp(ip)).toBe(canonical);
});

test.each([
  "",
  "1.2.3",
  "1.2.3.4.5",
  "01.2.3.4",
  "256.1.1.1",
  "1.2.3.4 ",
  "fe80::1%eth0",
  "[::1]",
  "::1/64",
  "0x7f.1",
  "127.1",
  ":::",
  "g::",
])("%j is no address", (text) => {
  expect(parseIp(text)).toBeUndefined();
});

test("a range with host bits names the network that was meant", () => {
  const parsed = parseRange("192.0.2.77/24");
  expect(parsed.ok ? "" : parsed.reason).toContain("192.0.2.0/24");
});

test.each(["10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "nonsense"])(
  "%s is refused",
  (text) => {
    expect(parseRange(text).ok).toBe(false);
  },
);

test.each([
  ["::ffff:192.0.2.0/120", "192.0.2.0/24"],
  ["::ffff:c000:200/128", "192.0.2.0"],
  ["::ffff:0:0/96", "0.0.0.0/0"],
  ["::ffff:192.0.2.1/120", "the network is 192.0.2.0/24"],
  ["::ffff:192.0.2.0/24", "must be 96 to 128"],
])("the prefix of the mapped range %s counts from the IPv6 address: %s", (text, expected) => {
  const parsed = parseRange(text);
  expect(parsed.ok ? formatRange(parsed.range) : parsed.reason).toContain(expected);
});

test("a custom range of n stands for n+1 addresses and stays in the address space", () => {
  const start = parseIp("192.0.2.250");
  if (start === undefined) throw new Error("no address");
  expect(customRange(start, 4)).toEqual({ family: 4, first: start.value, last: start.value + 4n });
  expect(customRange({ family: 4, value: 0xffff_ffffn }, 1)).toBeUndefined();
});

const range = fc
  .record({
    family: fc.constantFrom<IpFamily>(4, 6),
    a: fc.bigInt(0n, (1n << 128n) - 1n),
    span: fc.bigInt(0n, 5_000n),
  })
  .map(({ family, a, span }) => {
    const most = (1n << BigInt(familyBits[family])) - 1n;
    const first = a & most;
    return { family, first, last: first + span > most ? most : first + span };
  });

test("what holds an address begins where enclosingStarts says", () => {
  fc.assert(
    fc.property(range, ({ family, first }) => {
      const expected = Array.from({ length: familyBits[family] + 1 }, (_, prefix) => {
        const hostBits = BigInt(familyBits[family] - prefix);
        return first - (first % (1n << hostBits));
      });
      expect(enclosingStarts({ family, value: first })).toEqual([...new Set(expected)]);
    }),
  );
});

test("a cover is exactly the range, in order, of CIDR ranges that cannot be joined", () => {
  fc.assert(
    fc.property(range, (whole) => {
      const cover = cidrCover(whole);
      expect(cover[0]?.first).toBe(whole.first);
      expect(cover.at(-1)?.last).toBe(whole.last);
      cover.forEach((part, i) => {
        expect(formatRange(part)).not.toContain("-");
        if (i > 0) expect(part.first).toBe((cover[i - 1]?.last ?? 0n) + 1n);
      });
      const bits = familyBits[whole.family];
      expect(cover.length).toBeLessThanOrEqual(2 * bits);
    }),
  );
});

test("text and number are two forms of one address", () => {
  fc.assert(
    fc.property(range, ({ family, first }) => {
      fc.pre(family === 4 || first >> 32n !== 0xffffn); // A mapped address is the IPv4 address.
      expect(parseIp(formatIp({ family, value: first }))).toEqual({ family, value: first });
    }),
  );
});
