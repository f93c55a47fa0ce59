// What the agent answers to `why IP`, `why DECISION` and `bots`, as agent/why-visitor.ts makes it.

import type { Checked, Decided, Listed } from "../../src/cli/visitor-text.ts";

const heldBySet = {
  host: "a.example",
  kind: "bad",
  version: 3,
  range: "192.0.2.0/24",
  since: "2031-05-06T07:08:09.000Z",
  version_now: 3,
  changed_at: "2031-05-06T07:09:00.000Z",
};
const onHost: Checked["hosts"][number] = {
  host: "www.a.example",
  mode: "enforce",
  verdict: "block",
  reason: "bad-set",
  bot: "evil",
  set: heldBySet,
  policy: null,
  what: "blocked with 403",
  why: "192.0.2.0/24 is evil's in the bad set of a.example, version 3",
  would_change_it: ["removing 192.0.2.0/24", "an allow_access pair"],
};

const decision = {
  decision: "0123456789abcdef",
  at: "2031-05-06T07:10:00.000Z",
  host: "www.a.example",
  verdict: "block",
  reason: "bad-set",
  bot: "evil",
  user_agent: "curl/8 \u009B2J",
};

export const checkedAnswer = {
  address: "192.0.2.1",
  user_agent: "curl/8",
  claims: { name: "curl" },
  hosts: [onHost],
} satisfies Checked;

export const addressAnswer = {
  ...checkedAnswer,
  decisions: { total: 12, newest: [decision] },
} satisfies Checked;

export const decidedAnswer = {
  ...onHost,
  ...decision,
  address: "192.0.2.1",
  set: { ...heldBySet, range: null, since: null, version_now: 4 },
  now: {
    ...onHost,
    verdict: "allow",
    reason: "not-a-bot",
    bot: null,
    set: null,
    what: "allowed",
    why: "the address is in no set and the user agent is no bot's",
  },
} satisfies Decided;

export const listedAnswer = {
  sets: [
    {
      host: "a.example",
      kind: "bad",
      version: 3,
      count: 7,
      changed_at: "2031-05-06T07:09:00.000Z",
      in_force: 3,
    },
    { host: "a.example", kind: "vip", version: 9, count: 1, changed_at: null, in_force: 8 },
  ],
  hosts: [
    {
      host: "www.a.example",
      mode: "monitor",
      unknown_bots: "allowed",
      said_by: "the policy of a.example",
      allowed_pairs: 1,
      denied_pairs: 0,
    },
  ],
  policies_changed_at: "2031-05-06T07:00:00.000Z",
} satisfies Listed;
