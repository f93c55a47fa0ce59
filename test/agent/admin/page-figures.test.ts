// Each figure of the status page against a scrape of the same agent: what workers counted for several domains, and the gauges of main.

import fc from "fast-check";
import { expect, test } from "vitest";
import { OriginTally } from "../../../src/agent/accelerator/records/origin-tally.ts";
import { RequestTally } from "../../../src/agent/accelerator/records/request-tally.ts";
import { addSums } from "../../../src/agent/accelerator/records/visitor-sums.ts";
import { startAdminServer } from "../../../src/agent/admin/admin-server.ts";
import { LastHour, readGauges, readingOf } from "../../../src/agent/admin/last-hour.ts";
import { linkMetrics } from "../../../src/agent/link/link-telemetry.ts";
import { canaryMetrics } from "../../../src/agent/requests/ship/canary.ts";
import { laneMetrics } from "../../../src/agent/requests/ship/lane-metrics.ts";
import { spoolMetrics } from "../../../src/agent/requests/ship/spool-metrics.ts";
import { silentLog } from "../../../src/base/log.ts";
import { createMetrics, readGauge, Registry } from "../../../src/base/metrics.ts";
import { durationText, percentText, shortNumber, sizeText } from "../../../src/core/quantities.ts";
import { statusOf } from "./status-of.ts";

const periodS = 15;

/** An agent's metrics: two workers, and main. */
class CountingAgent {
  readonly #workers = [this.#worker(), this.#worker()];
  readonly #registry = new Registry();
  readonly gauges = createMetrics(
    { ...linkMetrics, ...canaryMetrics, ...laneMetrics, ...spoolMetrics },
    this.#registry,
  );

  visit(traffic: Traffic): void {
    const { worker: no, domain, cache, status, reason, originS } = traffic;
    const { requests, origins } = this.#workers[no] ?? this.#worker();
    requests.answered({ domain, cache, status, durationS: 0.1, bytesSent: 5 });
    requests.judged(domain, { kind: cache === "blocked" ? "block" : "allow", reason });
    if (cache === "blocked") requests.judged(domain, { kind: "would-block", reason });
    if (cache === "miss") origins.took(domain, originS);
  }

  async metrics() {
    const registries = [this.#registry, ...this.#workers.map(({ registry }) => registry)];
    return Promise.all(registries.map(async (registry) => registry.getMetricsAsJSON()));
  }

  async reading() {
    const sums = this.#workers.map(({ requests, origins }) => ({
      ...requests.sums(),
      ...origins.sums(),
    }));
    const gauges = await Promise.all(
      readGauges.map(async (name) => [name, await readGauge(this.#registry, name)] as const),
    );
    const values = new Map(gauges);
    return readingOf(addSums(sums), (name) => values.get(name));
  }

  #worker() {
    const registry = new Registry();
    return { registry, requests: new RequestTally(registry), origins: new OriginTally(registry) };
  }
}

const anyTraffic = fc.record({
  worker: fc.nat(1),
  domain: fc.constantFrom("a.example", "b.example", "none"),
  cache: fc.constantFrom("hit", "stale", "miss", "pass", "blocked", "none"),
  status: fc.constantFrom(200, 304, 403, 503),
  reason: fc.constantFrom("bad-set", "not-a-bot"),
  // Sums of these are exact, in whatever order they are added up.
  originS: fc.integer({ min: 1, max: 20_000 }).map((n) => n / 1_024),
});
type Traffic = typeof anyTraffic extends fc.Arbitrary<infer T> ? T : never;

/** Sums the series of a metric whose labels match. */
function scraped(text: string, name: string, labels = /^/): number {
  return text
    .split("\n")
    .map((line) => /^(\w+)(\{.*\})? (\S+)$/.exec(line))
    .filter((found) => found?.[1] === name && labels.test(found[2] ?? ""))
    .reduce((sum, found) => sum + Number(found?.[3]), 0);
}

/** The figures that the page must show, made of two scrapes alone. */
function expectedOf(before: string, after: string): Readonly<Record<string, string>> {
  const grown = (name: string, labels?: RegExp): number =>
    scraped(after, name, labels) - scraped(before, name, labels);
  const gauge = (name: string): number => scraped(after, `accel_agent_${name}`);
  const requests = grown("accel_agent_requests_total");
  const waits = grown("accel_agent_origin_duration_seconds_count");
  const waiting = gauge("log_records_spooled") + gauge("log_records_in_memory");
  const oldest = waiting > 0 ? `, the oldest for ${durationText(gauge("log_oldest_seconds"))}` : "";
  return {
    "Requests a second": shortNumber(requests / periodS),
    "Hit ratio": percentText(
      grown("accel_agent_requests_total", /cache="(?:hit|stale)"/),
      requests,
    ),
    "Origin time":
      waits === 0 ? "–" : durationText(grown("accel_agent_origin_duration_seconds_sum") / waits),
    "Blocked a second": shortNumber(grown("accel_agent_blocked_total") / periodS),
    "Records waiting": `${shortNumber(waiting)} for central, ${sizeText(gauge("log_spool_bytes"))} on disk${oldest}`,
    "Behind the journal": shortNumber(gauge("journal_head_seq") - gauge("journal_applied_seq")),
    "Log canary": durationText(gauge("log_canary_age_seconds")),
  };
}

test("each figure of now is what two scrapes say", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyTraffic, { maxLength: 200 }),
      fc.array(anyTraffic, { maxLength: 200 }),
      fc.array(fc.nat(100_000), { minLength: 7, maxLength: 7 }),
      async (
        first,
        second,
        [spooled = 0, memory = 0, bytes = 0, oldest = 0, applied = 0, ahead = 0, age = 0],
      ) => {
        const agent = new CountingAgent();
        const lastHour = new LastHour();
        let nowMs = Date.UTC(2026, 0, 1);
        await using admin = await startAdminServer({
          listen: { host: "127.0.0.1", port: 0 },
          nodeExporterUrl: undefined,
          metrics: async () => agent.metrics(),
          oldPages: false,
          status: async () => statusOf({}),
          lastHour,
          zone: () => "UTC",
          now: () => new Date(nowMs),
          log: silentLog(),
        });
        const get = async (path: string): Promise<string> =>
          (await fetch(`http://127.0.0.1:${admin.port}${path}`)).text();
        const sample = async (): Promise<string> => {
          nowMs += periodS * 1_000;
          lastHour.take(await agent.reading(), { wallMs: nowMs, steadyMs: nowMs });
          return get("/metrics/deployment");
        };
        for (const traffic of first) agent.visit(traffic);
        const before = await sample();
        for (const traffic of second) agent.visit(traffic);
        const { gauges } = agent;
        gauges.accel_agent_log_records_spooled.set(spooled);
        gauges.accel_agent_log_records_in_memory.set(memory);
        gauges.accel_agent_log_spool_bytes.set(bytes);
        gauges.accel_agent_log_oldest_seconds.set(oldest / 100);
        gauges.accel_agent_journal_applied_seq.set(applied);
        gauges.accel_agent_journal_head_seq.set(applied + ahead);
        gauges.accel_agent_log_canary_age_seconds.set(age / 100);
        const after = await sample();
        const page = await get("/");
        const tiles = [
          ...page.matchAll(/<dt>(.*?)<\/dt><dd><b>(.*?)<\/b><\/dd><dd><small>(.*?)<\/small>/g),
        ];
        const shown = tiles.map(([, name = "", value = "", note = ""]) => [
          name,
          name === "Records waiting" ? `${value} ${note}` : value,
        ]);
        expect(Object.fromEntries(shown)).toEqual(expectedOf(before, after));
        // The plots' words have the same now.
        for (const [name = "", value = ""] of shown)
          expect(page).toMatch(
            new RegExp(
              `<h3>${name} <small>[^<]*</small></h3><p>(?:now <b>${value.split(" for ")[0]}</b>|nothing known yet)`,
            ),
          );
      },
    ),
    { numRuns: 30 },
  );
});

test("what the metrics do not say yet is told as unknown, not as 0", async () => {
  const agent = new CountingAgent();
  agent.gauges.accel_agent_journal_head_seq.remove();
  expect(await agent.reading()).toMatchObject({ requests: 0, waiting: 0, journalLag: Number.NaN });
});
