// Metrics are declared in one table per program: name, kind, help, labels. Names are checked against the
// usual naming rules when the table is read.

import type { Health } from "./health.ts";
import type { Log } from "./log.ts";
import { AggregatorRegistry, Counter, Gauge, Histogram, Registry } from "prom-client";
import { TallyCounter, TallyHistogram } from "./tallies.ts";

/** The registry that a part counts on, the health that it warns by, and the log that it writes to. */
export type Instruments = {
  readonly registry: Registry;
  readonly health: Health;
  readonly log: Log;
};

export type MetricSpec = {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Every label must have a bound on its values: never an address, a path or a user agent. */
  readonly labels?: readonly string[];
  readonly buckets?: readonly number[];
};
export type MetricTable = Readonly<Record<string, MetricSpec>>;
/** Seconds. */
const bucketsDefault = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10];

type Made<S extends MetricSpec> = S["kind"] extends "counter"
  ? Counter
  : S["kind"] extends "gauge"
    ? Gauge
    : Histogram;
export type Metrics<T extends MetricTable> = { readonly [K in keyof T]: Made<T[K]> };

export type TallyTable = Readonly<
  Record<string, MetricSpec & { readonly kind: "counter" | "histogram" }>
>;
export type Tallies<T extends TallyTable> = {
  readonly [K in keyof T]: T[K]["kind"] extends "counter" ? TallyCounter : TallyHistogram;
};

export function createMetrics<const T extends MetricTable>(
  table: T,
  registry: Registry,
): Metrics<T> {
  const made = Object.entries(table).map(([name, spec]) => {
    checkSpec(name, spec);
    const common = {
      name,
      help: spec.help,
      labelNames: [...(spec.labels ?? [])],
      registers: [registry],
    };
    if (spec.kind === "counter") return [name, new Counter(common)];
    if (spec.kind === "gauge") return [name, new Gauge(common)];
    return [
      name,
      new Histogram({
        ...common,
        buckets: [...(spec.buckets ?? bucketsDefault)],
      }),
    ];
  });
  // Object.entries loses the relation between key and kind that Made states.
  return Object.fromEntries(made) as Metrics<T>;
}

/** As createMetrics, for what is counted with every request (base/tallies.ts). */
export function createTallies<const T extends TallyTable>(
  table: T,
  registry: Registry,
): Tallies<T> {
  const made = Object.entries(table).map(([name, spec]) => {
    checkSpec(name, spec);
    const { help, labels = [], buckets = bucketsDefault } = spec;
    const tally =
      spec.kind === "counter"
        ? new TallyCounter(name, help, labels)
        : new TallyHistogram(name, help, labels, buckets);
    // The registry asks a metric for its name and for `get`; its type names the library's own classes.
    registry.registerMetric(tally as unknown as Counter);
    return [name, tally] as const;
  });
  // As above.
  return Object.fromEntries(made) as Tallies<T>;
}

function checkSpec(name: string, spec: MetricSpec): void {
  const wellNamed =
    /^accel_(?:agent|central)_[a-z0-9_]+$/.test(name) &&
    (spec.kind === "counter") === name.endsWith("_total");
  if (!wellNamed) throw new TypeError(`metric ${name}: wrong prefix, or counter without _total`);
  const bounds = spec.buckets ?? [];
  if (bounds.some((bound, i) => bound <= (bounds[i - 1] ?? -Infinity)))
    throw new TypeError(`metric ${name}: buckets that do not ascend count wrongly`);
}

export { Registry };

/** A registry's content as plain data: what a worker thread answers when the main thread is scraped. */
export type MetricsData = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** Reads a gauge without labels; undefined if there is none of this name, or if it has no value. */
export async function readGauge(registry: Registry, name: string): Promise<number | undefined> {
  return (await registry.getSingleMetric(name)?.get())?.values[0]?.value;
}

/** Exposes several threads' metrics as one (text format 0.0.4): equal names and labels are summed. */
export async function exposeMetrics(
  parts: readonly MetricsData[],
  keep: (name: string) => boolean = () => true,
): Promise<string> {
  // The library types its input as `object`, not as the data that its own registries give.
  const filtered = parts.map((part) => part.filter(({ name }) => keep(name)) as unknown as object);
  return AggregatorRegistry.aggregate(filtered).metrics();
}

export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";
