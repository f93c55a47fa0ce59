// The text of an address is the canonical one, however it was written.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { AddressReader } from "../../../src/core/addresses/address-reader.ts";
import { addressText } from "../../../src/core/addresses/address-text.ts";
import { formatIp, parseIp } from "../../../src/core/addresses/ip.ts";

function rewritten(text: string): string | undefined {
  const reader = new AddressReader();
  const family = reader.read(text);
  return family === 0 ? undefined : addressText(family, reader.words);
}

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["255.255.255.255", "255.255.255.255"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::", "::"],
  ["::1", "::1"],
  ["1::", "1::"],
  ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
  ["2001:0:0:1:0:0:0:1", "2001:0:0:1::1"],
  ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
  ["0:1:2:3:4:5:6:7", "0:1:2:3:4:5:6:7"],
  ["1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"],
])("%s is written %s", (text, canonical) => {
  expect(rewritten(text)).toBe(canonical);
});

test("any address is written as the parser of IP libraries writes it", () => {
  const group = fc.oneof(fc.constant(0), fc.constant(0xffff), fc.nat(0xffff));
  const six = fc.array(group, { minLength: 8, maxLength: 8 });
  fc.assert(
    fc.property(
      fc.oneof(
        fc.ipV4(),
        six.map((groups) => groups.map(hex).join(":")),
      ),
      (text) => {
        const address = parseIp(text);
        expect(rewritten(text)).toBe(address === undefined ? undefined : formatIp(address));
      },
    ),
  );
});

const hex = (group: number): string => group.toString(16);
