// The status page: everything that the status says, warnings first, in people's units, and nothing of it as HTML.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { LastHour } from "../../../src/agent/admin/last-hour.ts";
import { pathsOf, roundTime, roundTop, zoneText } from "../../../src/agent/admin/page-plots.ts";
import { pagePolicy } from "../../../src/agent/admin/page-sheet.ts";
import { statusPage, type PageView } from "../../../src/agent/admin/status-page.ts";
import type { AgentStatus } from "../../../src/agent/admin/status.ts";
import { busyHour, GivenHour } from "./hours.ts";
import { statusOf } from "./status-of.ts";

const hostile = `<script>alert("1")</script>&'\u202e`;
const noon = Date.UTC(2026, 0, 1, 12);

function pageOf(status: Partial<AgentStatus>, view: Partial<PageView> = {}): string {
  const hour = new LastHour().view(noon);
  return statusPage(statusOf(status), { hour, zone: "UTC", reloads: false, ...view });
}

/** What a reader gets: the text without markup, each blank once. */
function textOf(html: string): string {
  return html
    .replace(/<style>.*?<\/style>/s, "")
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/\s+/g, " ");
}

test("what the status says stands on the page", () => {
  const page = pageOf({});
  for (const text of [
    "0123456789abcdef",
    '<time datetime="2026-01-01T00:00:00.000Z" title="2026-01-01T00:00:00.000Z">12 h ago</time>',
    "0.0.0.0:80, no HTTPS, 2 workers, state 7",
    "<td>a.example</td><td>sub.a.example</td>",
    "spring (in force, ",
    "enforce, unreviewed blocked by default",
    "<h2>link</h2>",
    '<th scope="row">state</th><td>connected</td>',
    "<p>None.</p>",
    "· ready</h1>",
  ])
    expect(page).toContain(text);
});

test("warnings come first, errors before others, with since and what to do; the title counts them", () => {
  const warning = (
    code: string,
    severity: "error" | "warning" | "info",
    since: string,
    notBefore: string | null = since,
  ) => ({
    code,
    severity,
    text: "set aside",
    since,
    not_before: notBefore,
    hint: "Wait.",
  });
  const warnings = [
    warning("third", "info", "now"),
    warning("second", "warning", "2026-01-01T11:59:00.000Z", "2026-01-01T11:58:40.000Z"),
    warning("first", "error", "2026-01-01T11:57:00.000Z", null),
  ];
  const page = pageOf({ ready: false, warnings });
  expect(page).toContain(
    "<title>3 warnings · accel-agent 1.2.3 · not ready · 0123456789abcdef</title>",
  );
  expect(textOf(page)).toMatch(
    /not ready .* Warnings first \(error\) since 3 min ago or before, found at a start: set aside Wait\. second \(warning\) since 60 s ago or up to 20 s before, while nobody looked: set aside Wait\. third \(info\) .* Now /,
  );
});

const hostileStatus: Partial<AgentStatus> = {
  name16: hostile,
  version: hostile,
  started: hostile,
  serving: {
    state_version: 1,
    workers: 1,
    listen: hostile,
    tls_listen: null,
    domains: [
      {
        domain: hostile,
        hosts: [hostile, hostile],
        viewset: hostile,
        version: {
          viewset_name: hostile,
          viewset_id: 1,
          since: hostile,
          standing: hostile,
          on_trial_until: null,
        },
        files: null,
        bots: { mode: hostile, unknown_bots: "allowed" as const },
      },
    ],
  },
  parts: {
    link: { state: hostile },
    [hostile]: {
      [hostile]: hostile,
      deep: { [hostile]: [hostile, null, 5, { [hostile]: hostile }] },
    },
    list: [{ [hostile]: hostile }],
    bare: hostile,
  },
  warnings: [
    {
      code: hostile,
      severity: "warning",
      text: hostile,
      since: hostile,
      not_before: hostile,
      hint: hostile,
    },
  ],
};

test("nothing that comes from outside is HTML, wherever it stands, and nothing turns the direction of reading", () => {
  const page = pageOf(hostileStatus, { hour: busyHour().view() });
  expect(page).not.toMatch(/<script/i);
  expect(page).not.toMatch(/alert\("/);
  expect(page).not.toContain("\u202e");
  expect(
    page.match(/&lt;script&gt;alert\(&quot;1&quot;\)&lt;\/script&gt;&amp;&#39;/g)?.length,
  ).toBe(32);
});

test("the policy allows the sheet and nothing else, and nothing else is needed", () => {
  const page = pageOf(hostileStatus, { hour: busyHour().view() });
  const [, sheet = ""] = /<style>(.*?)<\/style>/s.exec(page) ?? [];
  const digest = createHash("sha256").update(sheet).digest("base64");
  expect(pagePolicy).toBe(
    `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
  const tags = page.match(/<[^>]*>/g) ?? [];
  expect(tags.filter((tag) => /\s(?:style|on\w+|src|action)\s*=/i.test(tag))).toEqual([]);
  expect(page.match(/<style/g)).toHaveLength(1);
});

test("it loads itself again only if that was asked for", () => {
  expect(pageOf({})).not.toContain("http-equiv");
  expect(pageOf({})).toContain('<a href="/?reload=15">');
  const again = pageOf({}, { reloads: true });
  expect(again).toContain('<meta http-equiv="refresh" content="15">');
  expect(again).toContain('<a href="/">Stop reloading</a>');
});

test("parts are in people's units, with the exact value in a title", () => {
  const parts = {
    cache: { bytes: 48_800_000, disk_max: 2 ** 31, wal_bytes: 512, is_open: true, entries: 12_345 },
    link: { head_told_at: "2026-01-01T11:57:00.000Z", next_try_at: "2026-01-01T12:00:40.000Z" },
    spool: { oldest_s: 185, canary_round_trip_ms: 1_011, nothing: null, applied_seq: 123_456 },
    workers: { port: 23_080, tlsPort: null },
  };
  const page = pageOf({ parts });
  for (const [name, value] of [
    ["bytes", '<span title="48800000 bytes">46.5 MiB</span>'],
    ["disk max", '<span title="2147483648 bytes">2 GiB</span>'],
    ["wal", '<span title="512 bytes">512 B</span>'],
    ["is open", "yes"],
    ["entries", "12,345"],
    [
      "head told at",
      '<time datetime="2026-01-01T11:57:00.000Z" title="2026-01-01T11:57:00.000Z">3 min ago</time>',
    ],
    [
      "next try at",
      '<time datetime="2026-01-01T12:00:40.000Z" title="2026-01-01T12:00:40.000Z">in 40 s</time>',
    ],
    ["oldest", '<span title="185 s">3 min</span>'],
    ["canary round trip", '<span title="1011 ms">1.01 s</span>'],
    ["nothing", "–"],
    ["applied seq", "123456"],
    ["port", "23080"],
    ["tlsPort", "–"],
  ])
    expect(page).toContain(`<th scope="row">${name}</th><td>${value}</td>`);
});

test("parts may be anything: lists, nothing, a single fact", () => {
  const page = pageOf({
    parts: {
      empty: {},
      one: 5,
      list: ["a", { b: true }],
      plain: { names: ["a", "b"], none: [] },
      sets: [{ name: "x", bytes: 2_048 }, { name: "y" }],
    },
  });
  expect(page).toContain('<th scope="row">0</th><td>a</td>');
  expect(page).toContain('<th scope="row">1, b</th><td>yes</td>');
  expect(page).toContain("<h2>empty</h2><p>None.</p>");
  expect(page).toContain("<h2>one</h2><p>5</p>");
  expect(page).toContain('<th scope="row">names</th><td>a, b</td>');
  expect(page).toContain('<th scope="row">none</th><td>none</td>');
  expect(page).toContain(
    '<th scope="col">name</th><th scope="col">bytes</th></tr></thead><tbody><tr><td>x</td><td><span title="2048 bytes">2 KiB</span></td></tr><tr><td>y</td><td>–</td></tr>',
  );
});

test("each plot says in words what it shows, and when nothing was measured", () => {
  const given = new GivenHour();
  for (const requests of [0, 150, 195]) given.take({ requests });
  given.take({ requests: 900, waiting: 7, journalLag: Number.NaN }, undefined, 600_000);
  const page = pageOf({}, { hour: given.view() });
  const text = textOf(page);
  expect(text).toContain("Requests a second answered now – , least 3 at 12:00, most 10 at 12:00");
  expect(text).toContain(
    "Records waiting that central does not have now 7 , least 0 at 12:00, most 7 at 12:11",
  );
  expect(text).toContain("Behind the journal entries that are not done now – , 0 all the time");
  expect(text).toContain("Origin time to the head of its answer, on average nothing known yet");
  expect(text).toContain("A sample every 15 s since 12:00 UTC");
  expect(text).toContain("Nothing was measured from 12:00 to 12:11.");
  // Two runs: the line breaks where nothing was measured.
  const [, waiting = ""] = /<h3>Records waiting.*?class="run"[^>]* d="([^"]*)"/s.exec(page) ?? [];
  expect(waiting.match(/M/g)).toHaveLength(2);
});

test("the figures of now come without plots too, and say when they were measured", () => {
  const given = new GivenHour().take({ requests: 1_000, hits: 900 }).take({
    requests: 1_030,
    hits: 927,
    waiting: 5,
    oldestS: 200,
    spoolBytes: 2_048,
    canaryAgeS: 12,
  });
  const text = textOf(pageOf({}, { hour: given.view() }));
  for (const figure of [
    "Measured at 12:00:30 UTC",
    "Requests a second 2 answered",
    "Hit ratio 90.0 % of all requests, from the cache",
    "Origin time – no origin was asked yet",
    "Records waiting 5 for central, 2 KiB on disk, the oldest for 3 min",
    "Behind the journal 0 link: connected",
    "Log canary 12 s age of the newest that central has",
  ])
    expect(text).toContain(figure);
  const stale = textOf(pageOf({}, { hour: given.hour.view(given.wallMs + 60_000) }));
  expect(stale).toContain("Now Nothing was measured within the last half minute");
});

test.each([
  ["UTC", "Times are UTC, and so are the host's (zone UTC)."],
  ["Africa/Abidjan", "Times are UTC, and so are the host's (zone Africa/Abidjan)."],
  [
    "Europe/Berlin",
    "Times are UTC. The host's zone is Europe/Berlin (UTC+01:00): it is 13:00 there.",
  ],
  [
    "Asia/Kolkata",
    "Times are UTC. The host's zone is Asia/Kolkata (UTC+05:30): it is 17:30 there.",
  ],
])("of which zone the times are: %s", (zone, words) => {
  expect(zoneText(noon, zone)).toBe(words);
});

test.each([
  [0, 1, 1],
  [0.003, 0.005, 0.005],
  [1, 1, 1],
  [1.01, 2, 2],
  [49, 50, 50],
  [51, 100, 60],
  [70, 100, 120],
  [3_500, 5_000, 3_600],
  [90_000, 100_000, 172_800],
  [200_000, 200_000, 432_000],
])("a plot of at most %d ends at a round number, and at a round time", (most, top, time) => {
  expect([roundTop(most), roundTime(most)]).toEqual([top, time]);
});

test("lines go through the points, areas down to zero, a point alone is a dot, what is outside is left out", () => {
  const span = { fromMs: 0, untilMs: 1_000 };
  const runs = [
    [
      { atMs: -5, value: 9 },
      { atMs: 0, value: 10 },
      { atMs: 500, value: 5 },
    ],
    [{ atMs: 750, value: 0 }],
    [{ atMs: 1_001, value: 1 }],
  ];
  expect(pathsOf(runs, span, 10)).toEqual({
    line: "M0 0L500 50M750 100h0",
    area: "M0 100L0 0L500 50L500 100ZM750 100L750 100h0L750 100Z",
  });
});
