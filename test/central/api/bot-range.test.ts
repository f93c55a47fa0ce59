// Addresses in paths: the three forms, their limits, how they are shown back.

import { describe, expect, test } from "vitest";
import { formatRange } from "../../../src/core/addresses/ip.ts";
import {
  parseMarkedRange,
  parsePlainRange,
  parseRemovedRange,
} from "../../../src/central/api/bot-range.ts";

describe("marks", () => {
  test.each([
    ["192.0.2.1", "bad", false, ["192.0.2.1"]],
    ["192.0.2.0_24", "bad", false, ["192.0.2.0/24"]],
    ["192.0.2.0/24", "bad", false, ["192.0.2.0/24"]],
    ["10.0.0.0_8", "bad", false, ["10.0.0.0/8"]],
    ["2001:DB8::_32", "bad", false, ["2001:db8::/32"]],
    ["192.0.2.4_4", "bad", true, ["192.0.2.4", "192.0.2.5", "192.0.2.6", "192.0.2.7", "192.0.2.8"]],
    ["192.0.2.4_0", "bad", true, ["192.0.2.4"]],
    ["192.0.2.4", "bad", true, ["192.0.2.4"]],
    ["192.0.2.4_4", "vip", true, ["192.0.2.4/30", "192.0.2.8"]],
    ["192.0.2.0_24", "vip", false, ["192.0.2.0/24"]],
    ["2001:db8::_48", "vip", false, ["2001:db8::/48"]],
    ["2001:db8::ffff_1", "vip", true, ["2001:db8::ffff", "2001:db8::1:0"]],
  ] as const)("%s as %s, custom %s: %j", (text, set, isCustom, elements) => {
    const parsed = parseMarkedRange(text, { set, isCustom });
    expect(parsed.ok && parsed.elements.map((range) => formatRange(range))).toEqual(elements);
  });

  test.each([
    ["192.0.2.1_24", "bad", false, "192.0.2.0/24"],
    ["192.0.0.0_23", "vip", false, "/24 or longer"],
    ["2001:db8::_47", "vip", false, "/48 or longer"],
    ["192.0.2.0_33", "bad", false, "0 to 32"],
    ["192.0.2.4_257", "vip", true, "0 to 256"],
    ["10.0.0.0_65536", "bad", true, "0 to 65535"],
    ["255.255.255.255_1", "bad", true, "past the last address"],
    ["192.0.2.256", "bad", false, "not an IPv4"],
    ["192.0.2.4_x", "bad", true, "0 to 65535"],
    ["_4", "bad", true, "not an IPv4"],
  ] as const)("%s as %s, custom %s is refused: %s", (text, set, isCustom, reason) => {
    const parsed = parseMarkedRange(text, { set, isCustom });
    expect(parsed.ok ? "accepted" : parsed.reason).toContain(reason);
  });

  test.each([
    ["10.0.0.0_8", "10.0.0.0/8"],
    ["2001:db8::_32", "2001:db8::/32"],
  ])("%s as vip is no mark, but can be removed", (text, element) => {
    const meant = { set: "vip", isCustom: false } as const;
    expect(parseMarkedRange(text, meant).ok).toBe(false);
    const parsed = parseRemovedRange(text, meant);
    expect(parsed.ok && parsed.elements.map((range) => formatRange(range))).toEqual([element]);
  });

  test("the largest custom ranges", () => {
    const count = (set: "bad" | "vip", text: string): number => {
      const parsed = parseMarkedRange(text, { set, isCustom: true });
      return parsed.ok ? parsed.elements.length : 0;
    };
    expect(count("bad", "10.1.0.0_65535")).toBe(65_536);
    expect(count("vip", "10.1.0.0_256")).toBe(2);
  });
});

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["192.0.2.0_24", "192.0.2.0/24"],
  ["10.0.0.0_8", "10.0.0.0/8"],
  ["192.0.2.1_32", "192.0.2.1/32"],
  ["::ffff:192.0.2.0_120", "192.0.2.0/24"],
  ["2001:0db8::_48", "2001:db8::/48"],
])("a check of %s shows %s", (text, shown) => {
  const parsed = parsePlainRange(text);
  expect(parsed.ok && parsed.text).toBe(shown);
});
