// The rules of checks and lists, and of the rate of marks: a row each.

import { expect } from "vitest";
import {
  addDomain,
  check,
  holds,
  listOf,
  main,
  mark,
  remove,
  sub,
  type BotRule,
} from "./bot-requests.ts";

const bad = (text: string, ...domains: readonly string[]): object => ({
  is_bad_bot: domains.length > 0,
  ip_address_or_range: text,
  domains,
});
const custom = { custom: true };
const other = "other.example.com";
const retry = { status: 429, title: "Too Many Requests" };

export const checkRules: readonly BotRule[] = [
  {
    rule: "check: an unknown address is no bot: 200, false",
    steps: [
      [check("bad", "192.0.2.1"), 200, bad("192.0.2.1")],
      [
        check("vip", "2001:db8::_32"),
        200,
        { is_vip_bot: false, ip_address_or_range: "2001:db8::/32", domains: [] },
      ],
    ],
  },
  {
    rule: "check: an address is in a list when an element holds it; the other list does not count",
    steps: [
      [mark("bad", "192.0.2.0_24"), 200],
      [check("bad", "192.0.2.255"), 200, bad("192.0.2.255", main)],
      [check("bad", "::ffff:192.0.2.255"), 200, bad("192.0.2.255", main)],
      [check("bad", "192.0.3.0"), 200, bad("192.0.3.0")],
      [check("vip", "192.0.2.1"), 200, { is_vip_bot: false }],
    ],
  },
  {
    rule: "check: a range must be in the list as a whole, by one element or by several, of any bots",
    steps: [
      [mark("bad", "192.0.2.0_25"), 200],
      [check("bad", "192.0.2.0_25"), 200, bad("192.0.2.0/25", main)],
      [check("bad", "192.0.2.0_26"), 200, bad("192.0.2.0/26", main)],
      [check("bad", "192.0.2.0_24"), 200, bad("192.0.2.0/24")],
      [mark("bad", "192.0.2.128_127", { ...custom, bot: "Other" }), 200],
      [check("bad", "192.0.2.0_24"), 200, bad("192.0.2.0/24", main)],
      [remove("bad", "192.0.2.200", { bot: "Other" }), 200],
      [check("bad", "192.0.2.0_24"), 200, bad("192.0.2.0/24")],
    ],
  },
  {
    rule: "check: nested elements do not hide one another",
    steps: [
      [mark("bad", "10.0.0.0_8"), 200],
      [mark("bad", "10.1.0.0_16", { bot: "Inner" }), 200],
      [mark("bad", "10.1.2.3", { bot: "Innermost" }), 200],
      [check("bad", "10.1.2.0_24"), 200, bad("10.1.2.0/24", main)],
      [check("bad", "10.0.0.0_8"), 200, bad("10.0.0.0/8", main)],
      [check("bad", "10.0.0.0_7"), 200, bad("10.0.0.0/7")],
    ],
  },
  {
    rule: "check: one of the customer's domains suffices, each is named; elements of two domains do not add up",
    steps: [
      [addDomain(other), 201],
      [mark("bad", "192.0.2.0_25"), 200],
      [mark("bad", "192.0.2.128_25", { domain: other }), 200],
      [check("bad", "192.0.2.0_24"), 200, bad("192.0.2.0/24")],
      [mark("bad", "192.0.2.0_24", { domain: other }), 200],
      [check("bad", "192.0.2.1"), 200, bad("192.0.2.1", other, main)],
    ],
  },
  {
    rule: "check: for a sub-domain its main domain's elements count too",
    steps: [
      [mark("bad", "192.0.2.0_25"), 200],
      [mark("bad", "192.0.2.128_25", { domain: sub }), 200],
      [check("bad", "192.0.2.0_24"), 200, bad("192.0.2.0/24", sub)],
      [check("bad", "192.0.2.1"), 200, bad("192.0.2.1", main)],
      [check("bad", "192.0.2.129"), 200, bad("192.0.2.129", sub)],
    ],
  },
  {
    rule: "check: whole address spaces, and what ends with them",
    steps: [
      [mark("bad", "0.0.0.0_1"), 200],
      [check("bad", "0.0.0.0_0"), 200, bad("0.0.0.0/0")],
      [mark("bad", "128.0.0.0_1"), 200],
      [check("bad", "0.0.0.0_0"), 200, bad("0.0.0.0/0", main)],
      [mark("bad", "ffff::_16"), 200],
      [check("bad", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 200, { is_bad_bot: true }],
      [check("bad", "::_0"), 200, bad("::/0")],
    ],
  },
  {
    rule: "check: host bits are refused, naming the network that was meant",
    steps: [
      [check("vip", "192.0.2.1_24"), 400, { detail: expect.stringContaining("192.0.2.0/24") }],
    ],
  },
  {
    rule: "check: another customer's lists are not seen",
    steps: [
      [{ ...mark("bad", "192.0.2.1"), asOther: true }, 200],
      [check("bad", "192.0.2.1"), 200, bad("192.0.2.1")],
      [listOf("bad"), 200, []],
    ],
    told: [],
  },
  {
    rule: "list: one record for each domain and bot, in order of id; the lists are two",
    steps: [
      [mark("bad", "192.0.2.2", { bot: "B" }), 200],
      [mark("bad", "192.0.2.1", { bot: "A" }), 200],
      [mark("bad", "192.0.2.3", { bot: "A", domain: sub }), 200],
      [mark("vip", "192.0.2.4", { bot: "A" }), 200],
      [
        listOf("bad"),
        200,
        [
          { name: "B", domain: main, ...holds("192.0.2.2") },
          { name: "A", domain: main, ...holds("192.0.2.1") },
          { name: "A", domain: sub, ...holds("192.0.2.3") },
        ],
      ],
      [listOf("vip"), 200, [{ name: "A", domain: main, ...holds("192.0.2.4") }]],
      [listOf("bad", "?limit=1"), 200, [{ name: "B" }]],
      [listOf("bad", "?limit=0"), 400],
    ],
  },
  {
    rule: "list: the record of an older name tells whom it stands for",
    steps: [
      [mark("vip", "192.0.2.4", { bot: "sistrixSISTRIX crawler" }), 200],
      [mark("vip", "192.0.2.5", { bot: "SISTRIX Crawler" }), 200],
      [
        listOf("vip"),
        200,
        [
          { name: "sistrixSISTRIX crawler", stands_for: ["SISTRIX Crawler"] },
          { name: "SISTRIX Crawler" },
        ],
      ],
    ],
  },
  {
    rule: "rate: so many marks at once, then so many a second; a removal is one too; 429 tells when",
    limits: { marksBurst: 3, marksPerSecond: 2 },
    steps: [
      [mark("bad", "192.0.2.1"), 200],
      [mark("vip", "192.0.2.1"), 200],
      [remove("bad", "192.0.2.1"), 200],
      [mark("bad", "192.0.2.1"), 429, retry],
      [remove("vip", "192.0.2.1"), 429, retry],
      { waitMs: 500 },
      [mark("bad", "192.0.2.1"), 200],
      [mark("bad", "192.0.2.2"), 429, retry],
      { waitMs: 60_000 },
      ...[1, 2, 3].map(() => [mark("bad", "192.0.2.1"), 200] as const),
      [mark("bad", "192.0.2.1"), 429, retry],
    ],
  },
  {
    rule: "rate: each customer has its own; what is refused as invalid and what only reads is not counted",
    limits: { marksBurst: 1, marksPerSecond: 1 },
    steps: [
      [mark("bad", "nonsense"), 400],
      [mark("bad", "192.0.2.1", { bot: "" }), 400],
      [check("bad", "192.0.2.1"), 200],
      [mark("bad", "192.0.2.1"), 200],
      [mark("bad", "192.0.2.1"), 429, retry],
      [check("bad", "192.0.2.1"), 200],
      [{ ...mark("bad", "192.0.2.1"), asOther: true }, 200],
    ],
  },
];
