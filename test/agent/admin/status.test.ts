// The status page: everything that the status says, and nothing of it as HTML.

import { expect, test } from "vitest";
import { statusPage } from "../../../src/agent/admin/status.ts";
import { statusOf } from "./status-of.ts";

const hostile = `<script>alert("1")</script>&'`;

test("what the status says stands on the page", () => {
  const page = statusPage(statusOf({}));
  for (const text of [
    "0123456789abcdef",
    "2026-01-01T00:00:00.000Z",
    "0.0.0.0:80, no HTTPS, 2 workers, state 7",
    "<td>a.example</td><td>sub.a.example</td>",
    "spring (in force)",
    "enforce, unreviewed blocked by default",
    "<h2>link</h2>",
    '<th scope="row">state</th><td>connected</td>',
    "<p>None.</p>",
    "· ready</h1>",
  ])
    expect(page).toContain(text);
});

test("warnings stand there with since and what to do", () => {
  const warnings = [
    {
      code: "index_broken",
      severity: "error" as const,
      text: "set aside",
      since: "now",
      hint: "Wait.",
    },
  ];
  const page = statusPage(statusOf({ ready: false, warnings }));
  expect(page).toContain("· not ready</h1>");
  expect(page).toContain(
    '<li class="error"><strong>index_broken</strong> since <time>now</time>: set aside',
  );
});

test("nothing that comes from outside is HTML, wherever it stands", () => {
  const domain = {
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
  };
  const page = statusPage(
    statusOf({
      name16: hostile,
      version: hostile,
      started: hostile,
      serving: {
        state_version: 1,
        workers: 1,
        listen: hostile,
        tls_listen: null,
        domains: [domain],
      },
      parts: { [hostile]: { [hostile]: hostile, deep: { [hostile]: [hostile, null, 5] } } },
      warnings: [
        { code: hostile, severity: "warning", text: hostile, since: hostile, hint: hostile },
      ],
    }),
  );
  expect(page).not.toMatch(/<script/i);
  expect(page).not.toContain('"1"');
  expect(page).toContain("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;");
});

test("parts may be anything: lists, nothing, a single fact", () => {
  const page = statusPage(statusOf({ parts: { empty: {}, one: 5, list: ["a", { b: true }] } }));
  expect(page).toContain('<th scope="row">0</th><td>a</td>');
  expect(page).toContain('<th scope="row">1.b</th><td>true</td>');
  expect(page).toContain('<h2>empty</h2><table><tr><th scope="row"></th><td>none</td>');
  expect(page).toContain("<td>5</td>");
});
