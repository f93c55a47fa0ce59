// The verdict on a visitor, from sets and user agent.

import { expect, test } from "vitest";
import { judgeVisitor } from "../../../src/agent/bots/evidence.ts";
import { buildRangeTable } from "../../../src/core/range-table.ts";
import type { HostBots } from "../../../src/core/serving-state.ts";

const bots: HostBots = {
  mode: "enforce",
  unknownBotsCanAccess: null,
  allow: new Set(["Googlebot", "friend"]),
  deny: new Set(),
  vip: [buildRangeTable([{ bot: "Googlebot", range: "66.249.64.0/19" }])],
  bad: [
    buildRangeTable([{ bot: "own", range: "192.0.2.7" }]),
    buildRangeTable([
      { bot: "evil", range: "192.0.2.0/24" },
      { bot: "evil", range: "2001:db8::/32" },
    ]),
  ],
};

test.each([
  ["192.0.2.1", undefined, "block", "bad-set", "evil"],
  ["192.0.2.7", undefined, "block", "bad-set", "own"],
  ["::ffff:192.0.2.1", undefined, "block", "bad-set", "evil"],
  ["2001:db8::5", "curl", "block", "bad-set", "evil"],
  ["66.249.66.1", "Googlebot", "allow", "allow-pair", "Googlebot"],
  ["203.0.113.5", "Googlebot", "block", "unreviewed-blocked-by-default", "Googlebot"],
  ["203.0.113.5", "friend", "allow", "allow-pair", "friend"],
  ["203.0.113.5", undefined, "allow", "not-a-bot", null],
  ["not an address", undefined, "allow", "not-a-bot", null],
])("%s claiming %s: %s because %s", (ip, claimed, kind, reason, bot) => {
  expect(judgeVisitor(bots, ip, claimed)).toEqual({ kind, reason, bot });
});
