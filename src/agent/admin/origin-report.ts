// What central is told of the origins, read from the workers' own metrics so that both always say the same.

import type { MetricsData } from "../../base/metrics.ts";
import type { CheckVerdict } from "../../core/serving/origin-checks.ts";
import type { Report } from "../../wire/channel.ts";

type Sample = {
  readonly metricName?: string;
  readonly labels: Readonly<Partial<Record<string, string | number>>>;
  readonly value: number;
};

export type OriginFacts = Pick<Report["domains"][number], "domain" | "backend">;

/** One row a domain. An origin is unreachable when all of its requests since the last report failed, and there were some. */
export class OriginReport {
  readonly #before = new Map<string, { requests: number; errors: number }>();

  take(
    parts: readonly MetricsData[],
    domains: readonly string[],
    checks: ReadonlyMap<string, CheckVerdict>,
  ): readonly OriginFacts[] {
    const samples = (name: string): readonly Sample[] =>
      parts
        .flatMap((part) => part.filter((metric) => metric.name === name))
        .flatMap(({ values }) => values);
    const requests = sumByDomain(samples("accel_agent_origin_requests_total"));
    const errors = sumByDomain(samples("accel_agent_origin_errors_total"));
    const buckets = samples("accel_agent_origin_duration_seconds").filter(
      ({ metricName }) => metricName?.endsWith("_bucket") === true,
    );
    return domains.map((domain) => {
      const now = { requests: requests.get(domain) ?? 0, errors: errors.get(domain) ?? 0 };
      const before = this.#before.get(domain) ?? { requests: 0, errors: 0 };
      this.#before.set(domain, now);
      const asked = now.requests - before.requests;
      return {
        domain,
        backend: {
          ...now,
          latency_buckets: bucketsOf(buckets, domain),
          reachable: asked <= 0 || now.errors - before.errors < asked,
          ...withChecks(checks.get(domain)),
        },
      };
    });
  }
}

function withChecks(checks: CheckVerdict | undefined): { readonly checks?: CheckVerdict } {
  return checks === undefined ? {} : { checks };
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
