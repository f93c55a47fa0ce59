// Central's status as a person reads it.

import { expect, test } from "vitest";
import { centralStatusText } from "../../src/cli/central-status-text.ts";

const now = new Date("2026-01-03T05:06:07Z");
const write = (more: object): string =>
  centralStatusText({ ...status, ...more }, { now, colour: false });

const host = {
  instance_id: "6f00112233445566",
  server_name: null,
  host_name: "web-7",
  live: true,
  duplicate: false,
  applied_seq: 12,
  oldest_unfinished: null,
  position_told: "2026-01-03T05:06:00Z",
  agent_version: "1.4.0",
  behind: false,
  last_seen: "2026-01-03T05:06:05Z",
  logs_confirmed: "2026-01-03T05:06:00Z",
};
const site = {
  id: 1,
  name16: "00112233445566aa",
  journal_head: 12,
  last_seen: "2026-01-03T05:06:05Z",
  instances: [host],
  log_canary_age_seconds: 14,
};
const status = {
  version: "1.4.0",
  started: "2026-01-03T02:00:00Z",
  listen: "127.0.0.1:8443",
  base_url: "https://central.example.com",
  epoch: "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
  restored: null,
  newest_package: "1.4.0",
  logs: { days: 3, bytes: 5 * 2 ** 30, queue_bytes: 0, failing: null },
  deployment_sites: [site],
  warnings: [],
};

test("a part a line, with units and ages, and a line for each host", () => {
  expect(write({})).toBe(
    `accel-central 1.4.0: up for 3 h 6 min
service    http 127.0.0.1:8443, https://central.example.com, epoch 0f1e2d3c
warnings: none
logs       5.0 GiB of 3 days, 0 B waiting
packages   the newest release is 1.4.0

site  name16            host      name   link       journal  release  seen     logs
1     00112233445566aa  6f001122  web-7  connected  12       1.4.0    2 s ago  14 s
`,
  );
});

test("while the store is away the rest is told, and what is not known is said", () => {
  const away = { store_answers: false, epoch: null, newest_package: null, deployment_sites: null };
  const store = "postgres: accel on db.example.com:5432";
  expect(write({ ...away, store })).toBe(
    `accel-central 1.4.0: up for 3 h 6 min
service    http 127.0.0.1:8443, https://central.example.com, its store does not answer: postgres: accel on db.example.com:5432
warnings: none
logs       5.0 GiB of 3 days, 0 B waiting

hosts, packages and restores are not known while the store does not answer
`,
  );
});

test("what needs attention is told: warnings, hosts that are away, behind, unfinished or doubled", () => {
  const old = { ...host, instance_id: "7a", live: false, applied_seq: 9, behind: true };
  const stuck = {
    ...host,
    duplicate: true,
    applied_seq: 11,
    oldest_unfinished: { seq: 12, kind: "viewset.active", since: "2026-01-03T05:00:07Z" },
  };
  const text = write({
    warnings: [
      {
        code: "logs_not_stored",
        severity: "error",
        text: "disk full",
        since: "2026-01-03T05:05:07Z",
        hint: "Make room.",
      },
    ],
    logs: { days: 1, bytes: 10, queue_bytes: 2048, failing: "no space left" },
    deployment_sites: [{ ...site, instances: [old, stuck] }],
  });
  expect(text).toContain(
    "logs_not_stored (error) since 2026-01-03T05:05:07Z (1 min 0 s ago): disk full\n    Make room.\n",
  );
  expect(text).toContain("logs       10 B of 1 day, 2.0 KiB waiting; not stored: no space left\n");
  expect(text).toMatch(/ 7a +web-7 +away +9 of 12 +1\.4\.0 \(behind\) +2 s ago +14 s +–\n/);
  expect(text).toMatch(
    / connected +11 of 12 .* two hosts use this state directory, entry 12 \(viewset\.active\) for 6 min 0 s\n/,
  );
});

test.each<[string | null | undefined, string | null | undefined, string]>([
  ["edge-1", "web-7", "edge-1, web-7"],
  ["edge-1", "edge-1", "edge-1"],
  ["edge-1", null, "edge-1"],
  [null, null, "–"],
  [undefined, undefined, "–"],
])("a host that is called %s and calls itself %s", (server, own, shown) => {
  const one = { ...host, server_name: server, host_name: own };
  const text = write({ deployment_sites: [{ ...site, instances: [one] }] });
  expect(text).toMatch(new RegExp(`6f001122 +${shown} +connected`));
});

test("sites without hosts, a restore, no packages and a log thread that hangs", () => {
  const alone = { ...site, instances: [], log_canary_age_seconds: null };
  const text = write({
    restored: { when_backed_up: "2026-01-01T00:00:00Z", when_restored: "2026-01-03T04:06:07Z" },
    newest_package: null,
    logs: { queue_bytes: 0, failing: null },
    deployment_sites: [alone, { ...alone, id: 2, last_seen: null }],
  });
  expect(text).toContain(
    "restored   1 h 0 min ago, from the backup of 2026-01-01T00:00:00Z: what was changed between is lost\n",
  );
  expect(text).toContain("packages   none\n");
  expect(text).toContain("logs       the log thread does not answer\n");
  expect(text).toMatch(/^1 +00112233445566aa +not seen for a day +– +– +– +– +2 s ago +–$/m);
  expect(text).toMatch(/^2 +00112233445566aa +never joined +– +– +– +– +never +–$/m);
  expect(write({ deployment_sites: [] })).toMatch(/\nno deployment sites\n$/);
});

test("request logs whose database is silent, and nothing was to be stored yet", () => {
  const place = "postgres://accel@logs:5432/accel";
  expect(write({ logs: { queue_bytes: 0, failing: null, place } })).toContain(
    `logs       how much is kept is not known now: ${place} does not answer, or the log thread that asks it\n`,
  );
  const inFiles = write({ logs: { queue_bytes: 0, failing: null, place: "/var/lib/logs" } });
  expect(inFiles).toContain("logs       the log thread does not answer\n");
});

test("request logs whose database is away", () => {
  const text = write({ logs: { queue_bytes: 0, failing: "it does not answer" } });
  expect(text).toContain(
    "logs       how much is kept is not known now; not stored: it does not answer\n",
  );
});

test("the other centrals at the store, and what this one does for all", () => {
  const started = "2026-01-03T04:06:07Z";
  const other = { id: "b2", address: "two (10.0.0.12:8000)", version: "1.4.0", started };
  const text = write({ centrals: { id: "a1", jobs: ["alerts", "outbox"], others: [other] } });
  expect(text).toContain(
    "centrals   two (10.0.0.12:8000) 1.4.0, up for 1 h 0 min\n           this one does for all: alerts, outbox\n",
  );
  const gone = { ...other, beats: false };
  const both = [{ ...other, beats: true }, gone];
  expect(write({ centrals: { id: "a1", jobs: [], others: both } })).toContain(
    "two (10.0.0.12:8000) 1.4.0, up for 1 h 0 min\n           two (10.0.0.12:8000) 1.4.0, is gone: it beats no more\n",
  );
  expect(
    write({ centrals: { id: "a1", jobs: [], others: [{ ...other, beats: null }] } }),
  ).toContain("two (10.0.0.12:8000) 1.4.0, it is not known whether it beats\n");
  expect(write({ centrals: { id: "a1", jobs: [], others: [] } })).toContain(
    "centrals   no other one is at the store\n           this one does for all: nothing\n",
  );
  expect(write({ centrals: null })).not.toContain("centrals");
});

test("a text of a stranger does not steer the terminal, and what is missing is a dash", () => {
  const evil = { ...host, agent_version: "1\u001b[2J", instance_id: null };
  const text = write({ deployment_sites: [{ ...site, instances: [evil] }] });
  expect(text).not.toContain("\u001b");
  expect(centralStatusText({}, { now, colour: false })).toMatch(/^accel-central –: up for –\n/);
});
