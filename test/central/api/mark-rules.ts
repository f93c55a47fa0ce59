// The rules of marks and their limits: a row each.

import { expect } from "vitest";
import {
  addDomain,
  addresses,
  at,
  holds,
  listOf,
  main,
  mark,
  remove,
  sub,
  type BotRule,
} from "./bot-requests.ts";

const detail = (text: string): object => ({ detail: expect.stringContaining(text) });
const custom = { custom: "True" };
const record = { id: expect.any(Number), name: "Crawler", domain: main };

export const markRules: readonly BotRule[] = [
  {
    rule: "mark: the first of a name makes the bot; the answer is its record",
    steps: [[mark("bad", "192.0.2.1"), 200, { ...record, ...holds("192.0.2.1") }]],
    told: [{ set: "bad", domain: main, from_version: 0, to_version: 1, count: 1 }],
  },
  {
    rule: "mark: ip_addresses are all that the bot holds, earlier ones included, in order of address",
    steps: [
      [mark("bad", "192.0.2.9"), 200, holds("192.0.2.9")],
      [mark("bad", "192.0.2.1"), 200, holds("192.0.2.1", "192.0.2.9")],
      [mark("bad", "2001:db8::1"), 200, holds("192.0.2.1", "192.0.2.9", "2001:db8::1")],
    ],
  },
  {
    rule: "mark: a CIDR range is one element, shown with a slash",
    steps: [[mark("bad", "192.0.2.0_25"), 200, holds("192.0.2.0/25")]],
  },
  {
    rule: "mark: the slash may be percent-encoded",
    steps: [[mark("bad", "192.0.2.0%2F25"), 200, holds("192.0.2.0/25")]],
  },
  {
    rule: "mark: a custom range _4 as bad is 5 addresses, one by one",
    steps: [
      [
        mark("bad", "192.0.2.254_4", custom),
        200,
        holds("192.0.2.254", "192.0.2.255", "192.0.3.0", "192.0.3.1", "192.0.3.2"),
      ],
    ],
  },
  {
    rule: "mark: a custom range _4 as VIP is the fewest CIDR ranges that are exactly it",
    steps: [[mark("vip", "192.0.2.4_4", custom), 200, holds("192.0.2.4/30", "192.0.2.8")]],
  },
  {
    rule: 'mark: is_custom_ip_range is true, "true" or "True"',
    steps: [true, "true", "True"].map((flag) => [
      mark("bad", "192.0.2.4_1", { custom: flag }),
      200,
      holds("192.0.2.4", "192.0.2.5"),
    ]),
  },
  {
    rule: 'mark: false, "false", "False" or no flag: _n is a prefix length',
    steps: [false, "false", "False", undefined].map((flag) => [
      mark("bad", "192.0.2.4_31", { custom: flag }),
      200,
      holds("192.0.2.4/31"),
    ]),
  },
  {
    rule: "mark: a flag that is none of these is refused",
    steps: ["yes", 1, null].map((flag) => [
      mark("bad", "192.0.2.4_1", { custom: flag }),
      400,
      at("/is_custom_ip_range"),
    ]),
  },
  {
    rule: "mark: with the flag a plain address is that address",
    steps: [[mark("vip", "192.0.2.4", custom), 200, holds("192.0.2.4")]],
  },
  {
    rule: "mark: set host bits are refused, naming the network that was meant",
    steps: [
      [mark("bad", "192.0.2.77_24"), 400, detail("192.0.2.0/24")],
      [mark("vip", "2001:db8::1_64"), 400, detail("2001:db8::/64")],
    ],
  },
  {
    rule: "limit: a custom range as VIP has n of 0 to 256",
    steps: [
      [mark("vip", "192.0.2.0_0", custom), 200, holds("192.0.2.0")],
      [
        mark("vip", "10.0.0.0_256", { ...custom, bot: "Big" }),
        200,
        holds("10.0.0.0/24", "10.0.1.0"),
      ],
      [mark("vip", "10.0.0.0_257", custom), 400, detail("0 to 256")],
    ],
  },
  {
    rule: "limit: a custom range as bad has n of 0 to 65535",
    steps: [
      [mark("bad", "10.0.0.0_65535", custom), 200, holds(...addresses("10.0", 65_536))],
      [mark("bad", "10.0.0.0_65536", custom), 400, detail("0 to 65535")],
    ],
  },
  {
    rule: "limit: a VIP range is /24 or longer in IPv4, /48 or longer in IPv6; a bad one may be any",
    steps: [
      [mark("vip", "192.0.2.0_24"), 200],
      [mark("vip", "192.0.2.0_23"), 400, detail("/24 or longer")],
      [mark("vip", "2001:db8::_48"), 200],
      [mark("vip", "2001:db8::_47"), 400, detail("/48 or longer")],
      [mark("bad", "10.0.0.0_8"), 200, holds("10.0.0.0/8")],
      [mark("bad", "::_0", { bot: "All" }), 200, holds("::/0")],
    ],
  },
  {
    rule: "mark: a custom range ends with the address space",
    steps: [
      [mark("bad", "255.255.255.254_1", custom), 200, holds("255.255.255.254", "255.255.255.255")],
      [mark("bad", "255.255.255.254_2", custom), 400],
      [mark("bad", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff_1", custom), 400],
    ],
  },
  {
    rule: "mark: an IPv4-mapped address is the IPv4 address, its prefix counts from 96",
    steps: [
      [mark("bad", "::ffff:192.0.2.1"), 200, holds("192.0.2.1")],
      [mark("vip", "::ffff:192.0.2.0_120"), 200, holds("192.0.2.0/24")],
      [mark("vip", "::ffff:192.0.2.0_119"), 400, detail("/24 or longer")],
    ],
  },
  {
    rule: "mark: IPv6 is shown in its canonical form",
    steps: [[mark("bad", "2001:DB8:0:0::0001"), 200, holds("2001:db8::1")]],
  },
  {
    rule: "mark: what is no address or range is refused",
    steps: [
      "192.0.2",
      "192.0.2.256",
      "192.0.02.1",
      "fe80::1%25eth0",
      "host.example",
      "192.0.2.0_33",
      "192.0.2.0_",
      "_24",
    ].map((text) => [mark("bad", text), 400, at("range")]),
  },
  {
    rule: "mark: bot and domain are required; other fields are refused",
    steps: [
      [{ ...mark("bad", "192.0.2.1"), body: {} }, 400, at("/attach_to_bot", "/attach_to_domain")],
      [{ ...mark("bad", "192.0.2.1"), body: remove("bad", "192.0.2.1").body ?? {} }, 400],
    ],
  },
  {
    rule: "limit: a bot's name has 1 to 255 characters, no control characters, no blanks at its ends",
    steps: [
      [mark("bad", "192.0.2.1", { bot: "n".repeat(255) }), 200],
      [mark("bad", "192.0.2.1", { bot: "" }), 400],
      ...["n".repeat(256), "a\nb", " a", "a "].map(
        (bot) => [mark("bad", "192.0.2.1", { bot }), 400, at("/attach_to_bot")] as const,
      ),
    ],
  },
  {
    rule: "mark: a domain that is not the customer's is not there",
    steps: [
      [{ ...addDomain("other.example.com"), asOther: true }, 201],
      [mark("bad", "192.0.2.1", { domain: "other.example.com" }), 404, at("/attach_to_domain")],
      [mark("bad", "192.0.2.1", { domain: "no domain" }), 404, at("/attach_to_domain")],
      [listOf("bad"), 200, []],
    ],
    told: [],
  },
  {
    rule: "mark: a main domain stands for its sub-domains too, a sub-domain for itself, in any case of letters",
    steps: [
      [mark("bad", "192.0.2.1", { domain: main.toUpperCase() }), 200, { domain: main }],
      [mark("bad", "192.0.2.2", { domain: sub }), 200, { domain: sub, ...holds("192.0.2.2") }],
    ],
    told: [
      { domain: main, count: 1 },
      { domain: sub, count: 1 },
    ],
  },
  {
    rule: "mark: what is attached already stays, and is no new version",
    steps: [
      [mark("bad", "192.0.2.1"), 200, holds("192.0.2.1")],
      [mark("bad", "192.0.2.1"), 200, holds("192.0.2.1")],
      [mark("bad", "192.0.2.1_32"), 200, holds("192.0.2.1")],
    ],
    told: [{ to_version: 1 }],
  },
  {
    rule: "mark: an address in the other list too is taken, and the answer says where",
    steps: [
      [mark("vip", "192.0.2.0_24", { bot: "Friend" }), 200],
      [
        mark("bad", "192.0.2.7"),
        200,
        {
          also_in: [
            { list: "vip", domain: main, bot: "Friend", ip_address_or_range: "192.0.2.0/24" },
          ],
        },
      ],
      [
        mark("vip", "192.0.2.0_28", { bot: "Friend" }),
        200,
        { also_in: [{ list: "bad", bot: "Crawler", ip_address_or_range: "192.0.2.7" }] },
      ],
    ],
  },
  {
    rule: "mark: also_in sees the lists of main and sub-domain together",
    steps: [
      [mark("vip", "192.0.2.0_24"), 200],
      [mark("bad", "192.0.2.7", { domain: sub }), 200, { also_in: [{ domain: main }] }],
      [mark("vip", "192.0.2.7"), 200, { also_in: [{ domain: sub }] }],
    ],
  },
  {
    rule: "limit: also_in names at most 20",
    steps: [
      [mark("bad", "192.0.2.0_29", custom), 200],
      [
        mark("vip", "192.0.2.0_24"),
        200,
        {
          also_in: addresses("192.0", 532)
            .slice(512)
            .map((text) => ({ ip_address_or_range: text })),
        },
      ],
    ],
  },
  {
    rule: "limit: a bot holds at most 10,000 elements; another bot takes more",
    steps: [
      [mark("bad", "10.1.0.0_9998", custom), 200],
      [mark("bad", "10.9.0.0_1", custom), 409, detail("10000")],
      [mark("bad", "10.9.0.0"), 200],
      [mark("bad", "10.9.0.1"), 409, detail("10000")],
      [mark("bad", "10.1.0.0_9998", custom), 200],
      [mark("bad", "10.9.0.1", { bot: "Other" }), 200],
      [mark("bad", "10.1.0.0_10000", { ...custom, bot: "Other" }), 409],
    ],
  },
];
