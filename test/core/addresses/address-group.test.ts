// Whose requests count together.

import { expect, test } from "vitest";
import { addressGroups } from "../../../src/core/addresses/address-group.ts";

test.each([
  ["192.0.2.1", ["192.0.2.1"]],
  ["::ffff:192.0.2.1", ["::ffff:192.0.2.1"]],
  ["2001:db8:1:2:3:4:5:6", ["2001:db8:1:2::/64", "2001:db8:1::/56", "2001:db8:1::/48"]],
  ["2001:db8:1:102::", ["2001:db8:1:102::/64", "2001:db8:1:100::/56", "2001:db8:1::/48"]],
  ["2001:db8:2:3::1", ["2001:db8:2:3::/64", "2001:db8:2::/56", "2001:db8:2::/48"]],
  ["::1", ["::/64", "::/56", "::/48"]],
  ["unknown", ["unknown"]],
])("%s counts as %j", (address, groups) => {
  expect(addressGroups(address)).toEqual(groups);
});
