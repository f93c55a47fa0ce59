// The rules of removals, and what becomes of marks when their domain is deleted: a row each.

import { expect } from "vitest";
import { at, check, holds, listOf, main, mark, remove, sub, type BotRule } from "./bot-requests.ts";

const detail = (text: string): object => ({ detail: expect.stringContaining(text) });
const custom = { custom: "True" };
const record = { id: expect.any(Number), name: "Crawler", domain: main };

export const removalRules: readonly BotRule[] = [
  {
    rule: "remove: elements go as they were attached; the answer is the record of what stays",
    steps: [
      [mark("bad", "192.0.2.0_25"), 200],
      [mark("bad", "192.0.2.200_2", custom), 200],
      [
        remove("bad", "192.0.2.0_25"),
        200,
        { ...record, ...holds("192.0.2.200", "192.0.2.201", "192.0.2.202") },
      ],
      [remove("bad", "192.0.2.201"), 200, holds("192.0.2.200", "192.0.2.202")],
      [remove("bad", "192.0.2.200_2", custom), 200, holds()],
    ],
    told: [{ count: 1 }, { count: 4 }, { count: 3 }, { count: 2 }, { to_version: 5, count: 0 }],
  },
  {
    rule: "remove: a custom VIP range goes by its cover",
    steps: [
      [mark("vip", "192.0.2.4_4", custom), 200],
      [remove("vip", "192.0.2.8"), 200, holds("192.0.2.4/30")],
      [remove("vip", "192.0.2.4_3", custom), 200, holds()],
    ],
  },
  {
    rule: "remove: an emptied bot stays in the list",
    steps: [
      [mark("vip", "192.0.2.1"), 200],
      [remove("vip", "192.0.2.1"), 200, { ...record, ...holds() }],
      [listOf("vip"), 200, [{ ...record, ...holds() }]],
    ],
  },
  {
    rule: "remove: 404 where it is not attached: not to the bot, no such bot, the other list, another host, no such domain",
    steps: [
      [mark("bad", "192.0.2.1"), 200],
      [remove("bad", "192.0.2.2"), 404, detail("192.0.2.2 at Crawler")],
      [remove("bad", "192.0.2.1", { bot: "Nobody" }), 404],
      [remove("vip", "192.0.2.1"), 404],
      [remove("bad", "192.0.2.1", { domain: sub }), 404],
      [remove("bad", "192.0.2.1", { domain: "other.example.com" }), 404, at("/remove_from_domain")],
    ],
    told: [{ to_version: 1 }],
  },
  {
    rule: "remove: 409 where only a larger element holds it, naming that",
    steps: [
      [mark("bad", "192.0.2.0_24"), 200],
      [remove("bad", "192.0.2.7"), 409, detail("192.0.2.0/24")],
      [remove("bad", "192.0.2.0_25"), 409, detail("192.0.2.0/24")],
      [remove("bad", "192.0.1.254_3", custom), 409, detail("192.0.2.0/24")],
      [mark("vip", "192.0.2.4_4", custom), 200],
      [remove("vip", "192.0.2.5_2", custom), 409, detail("192.0.2.4/30")],
      [remove("bad", "192.0.0.0_16"), 404],
    ],
    told: [
      { set: "bad", to_version: 1 },
      { set: "vip", to_version: 1 },
    ],
  },
  {
    rule: "remove: of a custom range what is attached goes",
    steps: [
      [mark("bad", "192.0.2.1_1", custom), 200],
      [remove("bad", "192.0.2.2_9", custom), 200, holds("192.0.2.1")],
    ],
  },
  {
    rule: "remove: a VIP range of any size can be named, as imports may hold it",
    steps: [[remove("vip", "10.0.0.0_8", { bot: "Crawler" }), 404]],
  },
  {
    rule: "remove: host bits and custom limits are those of marks; the fields have names of their own",
    steps: [
      [remove("bad", "192.0.2.77_24"), 400, detail("192.0.2.0/24")],
      [remove("vip", "10.0.0.0_257", custom), 400, detail("0 to 256")],
      [
        { ...remove("bad", "192.0.2.1"), body: {} },
        400,
        at("/remove_from_bot", "/remove_from_domain"),
      ],
    ],
  },
  {
    rule: "domain: deleting it takes its marks and policy away",
    steps: [
      [mark("bad", "192.0.2.1"), 200],
      [
        {
          method: "POST",
          path: "/bot-access-policy/",
          body: { deny_access: [{ domain: sub, bot: "A" }] },
        },
        200,
      ],
      [{ method: "DELETE", path: `/domain/${main}/` }, 204],
      [listOf("bad"), 200, []],
      [check("bad", "192.0.2.1"), 200, { is_bad_bot: false, domains: [] }],
      [{ method: "GET", path: "/bot-access-policy/" }, 200, { deny_access: [] }],
    ],
  },
];
