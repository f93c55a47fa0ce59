// What central is told of origins and visitors, by domain. It is read from the workers' own metrics, so that
// both always say the same.

import type { MetricsData } from "../../base/metrics.ts";
import { isFromCache } from "../../core/analytics/request-counts.ts";
import type { CheckVerdict } from "../../core/serving/origin-checks.ts";
import type { Report, Traffic } from "../../wire/channel.ts";

type Sample = {
  readonly metricName?: string;
  readonly labels: Readonly<Partial<Record<string, string | number>>>;
  readonly value: number;
};

export type OriginFacts = Pick<Report["domains"][number], "domain" | "backend">;

/**
 * Makes one row for each domain. An origin is unreachable if there were requests since the last report and
 * all of them failed.
 */
export class OriginReport {
  readonly #before = new Map<string, { requests: number; errors: number }>();

  take(
    parts: readonly MetricsData[],
    domains: readonly string[],
    checks: ReadonlyMap<string, CheckVerdict>,
  ): readonly OriginFacts[] {
    const requests = sumByDomain(samplesOf(parts, "accel_agent_origin_requests_total"));
    const errors = sumByDomain(samplesOf(parts, "accel_agent_origin_errors_total"));
    const buckets = samplesOf(parts, "accel_agent_origin_duration_seconds").filter(
      ({ metricName }) => metricName?.endsWith("_bucket") === true,
    );
    return domains.map((domain) => {
      const now = { requests: requests.get(domain) ?? 0, errors: errors.get(domain) ?? 0 };
      const before = this.#before.get(domain) ?? { requests: 0, errors: 0 };
      this.#before.set(domain, now);
      const asked = now.requests - before.requests;
      const checked = checks.get(domain);
      return {
        domain,
        backend: {
          ...now,
          latency_buckets: bucketsOf(buckets, domain),
          reachable: asked <= 0 || now.errors - before.errors < asked,
          ...(checked !== undefined && { checks: checked }),
        },
      };
    });
  }
}

export function trafficOf(
  parts: readonly MetricsData[],
  domains: readonly string[],
): ReadonlyMap<string, Traffic> {
  const asked = samplesOf(parts, "accel_agent_requests_total");
  const requests = sumByDomain(asked);
  const fromCache = sumByDomain(asked.filter(({ labels }) => isFromCache(String(labels["cache"]))));
  const blocked = sumByDomain(samplesOf(parts, "accel_agent_blocked_total"));
  const bytes = sumByDomain(samplesOf(parts, "accel_agent_bytes_sent_total"));
  return new Map(
    domains.map((domain) => [
      domain,
      {
        requests: requests.get(domain) ?? 0,
        hits: fromCache.get(domain) ?? 0,
        blocked: blocked.get(domain) ?? 0,
        bytes: bytes.get(domain) ?? 0,
      },
    ]),
  );
}

/** Returns how many requests were answered, and how many of them with a status of 500 or more. */
export function visitorAnswers(parts: readonly MetricsData[]): {
  readonly requests: number;
  readonly errors: number;
} {
  const samples = samplesOf(parts, "accel_agent_requests_total");
  const sum = (of: readonly Sample[]): number => of.reduce((total, { value }) => total + value, 0);
  return {
    requests: sum(samples),
    errors: sum(samples.filter(({ labels }) => labels["status"] === "5xx")),
  };
}

/** Sums a metric of all workers by domain. */
export function sumsByDomain(
  parts: readonly MetricsData[],
  name: string,
): ReadonlyMap<string, number> {
  return sumByDomain(samplesOf(parts, name));
}

/** Sums a metric of all workers by its label `kind`, and each kind by domain. */
export function sumsByKind(
  parts: readonly MetricsData[],
  name: string,
): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const samples = Map.groupBy(samplesOf(parts, name), ({ labels }) => String(labels["kind"] ?? ""));
  return new Map([...samples].map(([kind, some]) => [kind, sumByDomain(some)]));
}

/** Sums a metric of all workers. */
export function sumOf(parts: readonly MetricsData[], name: string): number {
  return samplesOf(parts, name).reduce((sum, { value }) => sum + value, 0);
}

function samplesOf(parts: readonly MetricsData[], name: string): readonly Sample[] {
  return parts.flatMap((part) =>
    part.filter((metric) => metric.name === name).flatMap(({ values }) => values),
  );
}

function sumByDomain(samples: readonly Sample[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { labels, value } of samples) {
    const domain = String(labels["domain"] ?? "");
    sums.set(domain, (sums.get(domain) ?? 0) + value);
  }
  return sums;
}

function bucketsOf(samples: readonly Sample[], domain: string): Record<string, number> {
  const buckets: Record<string, number> = {};
  for (const { labels, value } of samples) {
    if (labels["domain"] !== domain) continue;
    const le = String(labels["le"]);
    buckets[le] = (buckets[le] ?? 0) + value;
  }
  return buckets;
}
