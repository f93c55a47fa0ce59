// The agent's status as a person reads it.

import { expect, test } from "vitest";
import { agentStatusText } from "../../src/cli/status-text.ts";
import { durationOf } from "../../src/cli/status-words.ts";
import { statusOf } from "../agent/admin/status-of.ts";

const now = new Date("2026-01-03T05:06:07Z");
const write = (more: Parameters<typeof statusOf>[0]): string =>
  agentStatusText(statusOf(more), { now, colour: false });

test("what systemd says of the unit, which the agent does not know, comes before what the agent warns of", () => {
  const unit = { text: "accel-agent is masked: it runs", hint: "systemctl unmask accel-agent." };
  const text = agentStatusText(statusOf({ parts: {} }), { now, colour: false, unit });
  expect(text.split("\n").slice(1, 5)).toEqual([
    "site       0123456789abcdef, 2 workers, http 0.0.0.0:80, no HTTPS, state 7",
    "unit       accel-agent is masked: it runs",
    "           systemctl unmask accel-agent.",
    "warnings: none",
  ]);
  expect(write({ parts: {} })).not.toContain("unit  ");
});

test("each part in a line or two, with units and durations", () => {
  const parts = {
    link: {
      state: "connected",
      since: "2026-01-03T05:00:00Z",
      central_url: "https://central.example.com",
      applied_seq: 41,
      head_seq: 43,
      lag: 2,
      receipts_unacknowledged: 3,
      last_error: {
        code: "X",
        message: "reset",
        at: "2026-01-03T04:06:07Z",
        over_at: "2026-01-03T04:06:37Z",
      },
    },
    cache: {
      is_open: true,
      entries: 12_345,
      bytes: 3 * 2 ** 29,
      disk_max: 2 ** 31,
      withheld_bytes: 2 ** 29,
      clear_no: 9,
      unfinished_clears: 0,
    },
    spool: {
      accepted: 1_000,
      committed: 900,
      spooled: 80,
      in_memory: 5,
      dropped: { full: 10, corrupt: 5 },
      unproven: 16,
      unknown: 309,
      bytes: 2_048,
      oldest_s: 75,
      shipping: "moving",
      canary_age_s: 4,
      lanes_total: 3,
    },
    vault: {
      keys: 1,
      locked_keys: 0,
      certificates: 2,
      next_to_expire: [{ names: "www.example.com", not_after: "2026-01-10T05:06:07Z" }],
    },
    scrub: { schedule: "17 2 * * *", state: "resting", last: null },
    decisions: { kept: 4, dropped: 0 },
    of_a_later_release: { some: 1 },
  };
  expect(write({ parts })).toBe(
    [
      "accel-agent 1.2.3: ready, up for 2 d 5 h",
      "site       0123456789abcdef, 2 workers, http 0.0.0.0:80, no HTTPS, state 7",
      "warnings: none",
      "link       connected for 6 min 7 s, https://central.example.com",
      "           journal 41 of 43, 2 behind",
      "           not taken by central yet: 3 receipts",
      "           last error 1 h 0 min ago, over 59 min 30 s ago: reset",
      "cache      open, 12,345 entries, 1.5 GiB of 2.0 GiB (75 %)",
      "           512.0 MiB of that are withheld, for the disk lacks room",
      "           clears: number 9, none unfinished",
      "spool      1,000 accepted = 900 committed + 80 spooled + 5 in memory + 15 dropped (full 10, corrupt 5)",
      "           unproven: at most 16 more lost",
      "           unknown: 309 more that central has as records or as gaps: the disk took nothing when they came, so this host cannot tell",
      "           shipping moving, 2.0 KiB in 3 lanes, the oldest record waits for 1 min 15 s, canary 4 s ago",
      "vault      1 key, 2 certificates, the first to expire in 7 d 0 h: www.example.com",
      "scrub      resting, schedule 17 2 * * *",
      "decisions  4 kept to be explained, 0 dropped",
      "of_a_later_release:",
      "  some  1",
      "",
      "domain     hosts  version  standing  for      files  bots     unreviewed bots",
      "a.example  2      spring   in force  2 d 5 h  12     enforce  blocked by default",
      "",
    ].join("\n"),
  );
});

test("a cache whose index is closed tells no figures: they would be those of an empty one", () => {
  const cache = { is_open: false, entries: 0, bytes: 0, disk_max: 2 ** 31, clear_no: 0 };
  expect(write({ parts: { cache: { ...cache, unfinished_clears: 0 } } })).toContain(
    "\ncache      closed: everything is fetched from the origin; what it holds, and its clears, are told when it is open\n\n",
  );
});

test("what is missing is a dash, and no text of a stranger steers the terminal", () => {
  const text = agentStatusText(
    {
      warnings: [{ code: "a", severity: "error", text: "x\u001B[2J", since: "never", hint: "" }],
      parts: { link: {} },
    },
    { now, colour: false },
  );
  expect(text).toContain("– –: not ready, up for –\n");
  expect(text).toContain("  a (error) since never: x?[2J\n    –\n");
  expect(text).toContain("no domains are linked to this deployment site\n");
});

test("a warning is told with the moment at which it began, and how sure that is", () => {
  const started = "2026-01-03T05:00:00Z";
  const warning = { severity: "error", text: "x", hint: "y" };
  const [found, later] = ["2026-01-03T05:00:09.123Z", "2026-01-03T05:05:07.000Z"];
  const link = { oldest_unfinished: { seq: 7, kind: "viewset.active", since: found } };
  const text = agentStatusText(
    {
      started,
      warnings: [
        { ...warning, code: "unknown", since: found, not_before: null },
        { ...warning, code: "between", since: found, not_before: "2026-01-03T04:59:40.000Z" },
        {
          ...warning,
          code: "recalled",
          since: "2026-01-03T04:20:00.500Z",
          not_before: "2026-01-03T04:20:00.500Z",
        },
        { ...warning, code: "later", since: later, not_before: later },
        { ...warning, code: "older_release", since: later },
      ],
      parts: { link },
    },
    { now, colour: false },
  );
  const lines = text.split("\n").filter((line) => line.endsWith(": x"));
  expect(lines).toEqual([
    "  unknown (error) since 2026-01-03T05:00:09Z (5 min 58 s ago) or before, found at a start: x",
    "  between (error) since 2026-01-03T05:00:09Z (5 min 58 s ago) or up to 29 s before, while nobody looked: x",
    "  recalled (error) since 2026-01-03T04:20:00Z (46 min 7 s ago): x",
    "  later (error) since 2026-01-03T05:05:07Z (1 min 0 s ago): x",
    "  older_release (error) since 2026-01-03T05:05:07Z (1 min 0 s ago): x",
  ]);
  expect(text).toContain(
    "unfinished: entry 7 (viewset.active) since the start, 2026-01-03T05:00:09Z (5 min 58 s ago)\n",
  );
});

test.each([
  [0, "0 s"],
  [59.6, "1 min 0 s"],
  [3_599, "59 min 59 s"],
  [86_399, "23 h 59 min"],
  [200_000, "2 d 7 h"],
  [-5, "0 s"],
  [null, "–"],
])("%s s is %s", (seconds, text) => {
  expect(durationOf(seconds)).toBe(text);
});

test("a link that is up and silent says for how long, and that its place is old", () => {
  const link = {
    state: "connected",
    since: "2026-01-03T05:05:30Z",
    head_told_at: "2026-01-03T05:05:31Z",
  };
  const of = (heard_at: string): string =>
    agentStatusText(statusOf({ parts: { link: { ...link, lag: 0, heard_at } } }), {
      now,
      colour: false,
    });
  const silent = of("2026-01-03T05:05:45Z");
  expect(silent).toContain("connected for 37 s, but nothing was heard of central for 22 s");
  expect(silent).toContain("nothing behind, when last told, 36 s ago");
  const heard = of("2026-01-03T05:06:00Z");
  expect(heard).not.toContain("nothing was heard");
  expect(heard).not.toContain("when last told");
});

test("what an agent does not know of before its start is not told as if it did", () => {
  const started = "2026-01-03T05:06:00Z";
  const since = "2026-01-03T05:06:01Z";
  const link = { state: "disconnected", since, heard_at: null };
  const of = (spool: Readonly<Record<string, unknown>>): string =>
    agentStatusText(statusOf({ started, parts: { link, spool } }), { now, colour: false });
  const none = of({ canary_age_s: 7, canary_round_trip_ms: null });
  expect(none).toContain("disconnected since the start, 2026-01-03T05:06:01Z (6 s ago)");
  // It was connected for a moment first, or does not tell.
  for (const heard of [{ heard_at: "2026-01-03T05:06:00Z" }, {}]) {
    const other = { state: "disconnected", since, ...heard };
    expect(
      agentStatusText(statusOf({ started, parts: { link: other } }), { now, colour: false }),
    ).toContain("disconnected since 2026-01-03T05:06:01Z (6 s ago)");
  }
  expect(none).toContain("no canary has arrived since the start 7 s ago\n");
  expect(of({ canary_age_s: 7, canary_round_trip_ms: 20 })).toContain(", canary 7 s ago\n");
  expect(of({ canary_age_s: null, canary_round_trip_ms: null })).toContain(", no canaries\n");
});
