// The alert rules and the dashboard that are shipped: each alert fires where it should and is quiet where it should be, by promtool; and they name
// only metrics that are there.

import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { readFamilies } from "./support/metric-families.ts";
import { prometheusHint, prometheusMissing } from "./support/prometheus.ts";
import { tempDir } from "./support/temp-dir.ts";

const directory = join(import.meta.dirname, "../packaging/monitoring");
const rulesFile = join(directory, "accel.rules.yml");
type Rule = {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { severity: string };
};
const { groups } = parse(readFileSync(rulesFile, "utf8")) as {
  groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap(({ rules: some }) => some);
const dashboard = JSON.parse(readFileSync(join(directory, "accel-dashboard.json"), "utf8")) as {
  panels: readonly { readonly title: string; readonly targets: readonly { expr: string }[] }[];
};

type Series = Readonly<Record<string, string>>;
type Case = {
  /** Series by their minutes, in the notation of promtool, under which the alert fires. */
  readonly fires: Series;
  /** Others under which it fires too. */
  readonly firesToo?: Series;
  readonly quiet: Series;
  /** The time between the values. */
  readonly interval?: string;
  /** When it is looked at. */
  readonly at?: string;
};
const edge = 'job="edge-1", instance="e1:9464"';
const site = 'job="deployment-a", instance="e1:9464"';
const shop = `domain="shop.example", ${site}`;
const warningOf = (severity: string, minutes: string): Series => ({
  [`accel_agent_warning{code="origin_failing", severity="${severity}", ${edge}}`]: minutes,
});
const centralWarningOf = (severity: string, minutes: string): Series => ({
  [`accel_central_warning{code="logs_not_stored", severity="${severity}", job="accel-central", instance="c"}`]:
    minutes,
});
const asked = (perMinute: number): Series => ({
  [`accel_agent_origin_requests_total{${shop}}`]: `0+${perMinute}x60`,
});
const failures = (unanswered: number, refused: number): Series => ({
  [`accel_agent_origin_errors_total{${shop}}`]: `0+${unanswered}x60`,
  [`accel_agent_origin_server_errors_total{${shop}}`]: `0+${refused}x60`,
});
const answered = (good: number, bad: number): Series => ({
  [`accel_agent_requests_total{cache="hit", status="2xx", ${shop}}`]: `0+${good}x60`,
  [`accel_agent_requests_total{cache="miss", status="5xx", ${shop}}`]: `0+${bad}x60`,
});

const cases: Readonly<Record<string, Case>> = {
  AccelAgentDown: {
    fires: { [`up{${edge}}`]: "1 1 0x60" },
    quiet: { [`up{${edge}}`]: "1 1 0 1x60" },
  },
  AccelAgentCrashes: {
    // The count outlives the process, so a scrape that misses an end sees it later.
    fires: {
      [`accel_agent_unclean_ends_total{cause="watchdog", ${edge}}`]:
        "0x18 1x3 stale 2x2 stale 3x60",
      [`accel_agent_unclean_ends_total{cause="signal", ${edge}}`]: "7x60",
    },
    // It fails five times between two scrapes.
    firesToo: { [`accel_agent_unclean_ends_total{cause="exit", ${edge}}`]: "2x26 stale 7x60" },
    // Twice lately, once long ago; and neither a host that goes down nor a start that fails is a crash.
    quiet: {
      [`accel_agent_unclean_ends_total{cause="watchdog", ${edge}}`]: "0x5 1x14 2x4 3x60",
      [`accel_agent_unclean_ends_total{cause="host", ${edge}}`]: "0x18 1x3 2x3 3x60",
      [`accel_agent_unclean_ends_total{cause="start", ${edge}}`]: "0x18 9x60",
    },
  },
  AccelAgentError: { fires: warningOf("error", "1x60"), quiet: warningOf("warning", "1x60") },
  AccelAgentWarning: {
    fires: warningOf("warning", "1x60"),
    quiet: warningOf("info", "1x60"),
  },
  AccelOriginFailing: {
    // No answer has had a status of 500 yet: its counter has no series.
    fires: {
      ...asked(20),
      [`accel_agent_origin_errors_total{${shop}}`]: "0+15x60",
    },
    quiet: { ...asked(20), ...failures(5, 4) },
  },
  AccelErrorsServed: {
    fires: answered(90, 10),
    // In minutes 25 to 27 half of the answers were errors; at minute 30 that is over.
    quiet: {
      [`accel_agent_requests_total{cache="hit", status="2xx", ${shop}}`]:
        "0+97x24 2378+50x2 2575+97x32",
      [`accel_agent_requests_total{cache="miss", status="5xx", ${shop}}`]:
        "0+3x24 122+50x2 225+3x32",
    },
  },
  AccelAgentNotConnected: {
    fires: { [`accel_agent_link_connected{${site}}`]: "0x60" },
    quiet: { [`accel_agent_link_connected{${site}}`]: "1x25 0x3 1x60" },
  },
  AccelJournalBehind: {
    fires: {
      [`accel_agent_journal_head_seq{${site}}`]: "12x60",
      [`accel_agent_journal_applied_seq{${site}}`]: "10x60",
    },
    // Entries come all the time, and one is under way at each scrape.
    quiet: {
      [`accel_agent_journal_head_seq{${site}}`]: "1+1x60",
      [`accel_agent_journal_applied_seq{${site}}`]: "0+1x60",
    },
  },
  AccelRecordsLost: {
    fires: { [`accel_agent_log_records_dropped_total{reason="spool_full", ${site}}`]: "5x20 9x60" },
    quiet: { [`accel_agent_log_records_dropped_total{reason="spool_full", ${site}}`]: "5x60" },
  },
  AccelRecordsWaiting: {
    fires: { [`accel_agent_log_oldest_seconds{${site}}`]: "0+60x60" },
    quiet: { [`accel_agent_log_oldest_seconds{${site}}`]: "800x60" },
  },
  AccelDescriptorsLow: {
    // A flood comes in waves, and scrapes fail meanwhile; a single one that lasts half a minute calls nobody.
    fires: {
      [`accel_agent_process_open_fds{${edge}}`]: "900 700 stale ".repeat(20),
      [`accel_agent_process_max_fds{${edge}}`]: "1000 1000 stale ".repeat(20),
    },
    quiet: {
      [`accel_agent_process_open_fds{${edge}}`]: "700x36 900x2 700x20",
      [`accel_agent_process_max_fds{${edge}}`]: "1000x60",
    },
    interval: "15s",
    at: "10m",
  },
  AccelConnectionsRefused: {
    fires: { [`accel_agent_refused_connections_total{${edge}}`]: "3x28 7x60" },
    quiet: { [`accel_agent_refused_connections_total{${edge}}`]: "3x60" },
  },
  AccelWorkersReplaced: {
    fires: { [`accel_agent_worker_replacements_total{${edge}}`]: "0x10 1x3 2x3 3x60" },
    // All within the first scrape interval of an agent that started ten minutes ago; one more of an agent that has run for a day.
    firesToo: {
      [`accel_agent_worker_replacements_total{${edge}}`]: "_x20 3x60",
      [`accel_agent_process_start_time_seconds{${edge}}`]: "1200x60",
    },
    quiet: {
      [`accel_agent_worker_replacements_total{${edge}}`]: "3x10 4x60",
      [`accel_agent_process_start_time_seconds{${edge}}`]: "-86400+0x60",
    },
  },
  AccelCertificateExpires: {
    fires: { [`accel_agent_certificate_first_expiry_timestamp_seconds{${site}}`]: "1200000x120" },
    quiet: { [`accel_agent_certificate_first_expiry_timestamp_seconds{${site}}`]: "0x120" },
    at: "100m",
  },
  AccelCentralDown: {
    fires: { 'up{job="accel-central", instance="c"}': "0x60" },
    quiet: { 'up{job="another", instance="c"}': "0x60" },
  },
  AccelCentralError: {
    fires: centralWarningOf("error", "1x60"),
    quiet: centralWarningOf("error", "0x60"),
  },
  AccelCentralWarning: {
    fires: centralWarningOf("warning", "1x60"),
    quiet: centralWarningOf("warning", "1x10 _x60"),
  },
  AccelDuplicateAgents: {
    fires: { accel_central_duplicate_agents: "1x60" },
    quiet: { accel_central_duplicate_agents: "0x60" },
  },
  AccelCanaryLate: {
    fires: { 'accel_central_log_canary_age_seconds{deployment="a"}': "700x60" },
    quiet: { 'accel_central_log_canary_age_seconds{deployment="a"}': "60x60" },
  },
};

test("there is a case for each alert, and each alert has its line in the document", () => {
  expect(Object.keys(cases).toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
  const page = readFileSync(join(import.meta.dirname, "../docs/operations/monitoring.md"), "utf8");
  for (const { alert, labels } of rules) {
    expect(page, alert).toContain(`\`${alert}\``);
    expect(["page", "ticket"]).toContain(labels.severity);
  }
});

test.skipIf(prometheusMissing)(
  `each alert fires where it should, and is quiet where it should be (${prometheusHint})`,
  () => {
    using dir = tempDir();
    const tests = Object.entries(cases).flatMap(
      ([alert, { fires, firesToo, quiet, interval = "1m", at = "30m" }]) =>
        [fires, ...(firesToo === undefined ? [] : [firesToo]), quiet].map((series) => ({
          name: `${alert} ${series === quiet ? "is quiet" : "fires"}`,
          interval,
          input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
          promql_expr_test: [
            {
              expr: `count(ALERTS{alertname="${alert}", alertstate="firing"}) or vector(0)`,
              eval_time: at,
              exp_samples: [{ labels: "{}", value: series === quiet ? 0 : 1 }],
            },
          ],
        })),
    );
    const file = join(dir.path, "rules.test.yml");
    const document = { rule_files: [rulesFile], evaluation_interval: "30s", tests };
    writeFileSync(file, JSON.stringify(document));
    const checked = spawnSync("promtool", ["check", "rules", rulesFile], { encoding: "utf8" });
    expect(checked.stdout + checked.stderr).toContain(`SUCCESS: ${rules.length} rules found`);
    const run = spawnSync("promtool", ["test", "rules", file], { encoding: "utf8" });
    expect([run.status, run.stdout + run.stderr]).toEqual([0, expect.stringContaining("SUCCESS")]);
  },
);

test("rules and dashboard name only metrics that are there", async () => {
  const families = new Set((await readFamilies()).map(({ name }) => name));
  const expressions = [
    ...rules.map(({ expr }) => expr),
    ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ];
  const named = expressions.flatMap((expr) => expr.match(/\baccel_[a-z_]+/g) ?? []);
  expect(named.length).toBeGreaterThan(40);
  const base = (name: string): string =>
    families.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, "");
  expect(named.filter((name) => !families.has(base(name)))).toEqual([]);
  expect(dashboard.panels.every(({ title, targets }) => title !== "" && targets.length > 0)).toBe(
    true,
  );
});
