// What workers that are gone had counted: without it the sums over all workers would fall when one is replaced, which a counter must not.

import type { MetricsData } from "../../../base/metrics.ts";

/** Sums the counters and histograms of all parts by name and labels. Gauges tell of what is; the dead have none. */
export function foldDeparted(parts: readonly MetricsData[]): MetricsData {
  const folded = new Map<string, { metric: MetricsData[number]; values: Map<string, Value> }>();
  for (const metric of parts.flat()) {
    if (String(metric.type) === "gauge") continue;
    let known = folded.get(metric.name);
    if (known === undefined) folded.set(metric.name, (known = { metric, values: new Map() }));
    for (const value of metric.values) {
      // A histogram's values have a name of their own (`…_bucket`, `…_sum`), which the library's types leave out.
      const key = JSON.stringify([value.labels, "metricName" in value ? value.metricName : ""]);
      const sum = (known.values.get(key)?.value ?? 0) + value.value;
      known.values.set(key, { ...value, value: sum });
    }
  }
  return [...folded.values()].map(({ metric, values }) => ({
    ...metric,
    values: [...values.values()],
  }));
}

type Value = MetricsData[number]["values"][number];
