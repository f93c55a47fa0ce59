// What central is told of visitors, by domain, read from the workers' own metrics so that both always say the same.

import type { MetricsData } from "../../base/metrics.ts";
import type { Traffic } from "../../wire/channel.ts";

type Sample = {
  readonly labels: Readonly<Partial<Record<string, string | number>>>;
  readonly value: number;
};

/** Answered from what was here: the label `cache` of a request. */
const hits: ReadonlySet<unknown> = new Set(["hit", "stale"]);

export function trafficOf(
  parts: readonly MetricsData[],
  domains: readonly string[],
): ReadonlyMap<string, Traffic> {
  const samples = (name: string): readonly Sample[] =>
    parts.flatMap((part) =>
      part.filter((metric) => metric.name === name).flatMap(({ values }) => values),
    );
  const asked = samples("accel_agent_requests_total");
  const requests = sums(asked);
  const fromCache = sums(asked.filter(({ labels }) => hits.has(labels["cache"])));
  const blocked = sums(samples("accel_agent_blocked_total"));
  const bytes = sums(samples("accel_agent_bytes_sent_total"));
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

function sums(samples: readonly Sample[]): ReadonlyMap<string, number> {
  const sum = new Map<string, number>();
  for (const { labels, value } of samples) {
    const domain = String(labels["domain"] ?? "");
    sum.set(domain, (sum.get(domain) ?? 0) + value);
  }
  return sum;
}
