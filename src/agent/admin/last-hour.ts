// The last hour of what the status page plots, in the memory of main: a restart, and a hand-over, begin anew. What is read are the counters and gauges that
// Prometheus gets. A rate is the difference of two readings over the steady time between them; it is unknown (NaN)
//
//   - at the first sample, and behind one that was missed, as while the host slept
//   - when a counter went back: how much was counted since then cannot be known
//
// A sample costs 2 ms of CPU time over all threads with 8 workers and one domain, and 4 ms with a hundred domains, most of it for waking the workers. Every series
// of every metric would cost 5 ms and 40 ms: so workers add up where they count (VisitorSums).

import { repeating, type EveryOptions } from "../../base/wait.ts";

export const samplePeriodMs = 15_000;
export const samplesMax = 240;
const hourMs = samplePeriodMs * samplesMax;
/** Between two samples that are further apart, one was missed. */
const gapMsMax = samplePeriodMs * 1.5;
/** A newest sample that is older says nothing of now: a sample may have to wait a second for a worker. */
const nowMsMax = samplePeriodMs * 2;

/** What the metrics say at one moment. NaN: they do not say it. */
export type MetricsReading = {
  // Counters since the start, over all workers and domains.
  readonly requests: number;
  readonly hits: number;
  readonly blocked: number;
  readonly originWaits: number;
  readonly originWaitS: number;
  // Gauges.
  /** Request records that central does not have, on disk and in memory. */
  readonly waiting: number;
  readonly spoolBytes: number;
  readonly oldestS: number;
  readonly journalLag: number;
  readonly canaryAgeS: number;
};

/** What is kept of each sample. */
export const hourSeries = [
  "requestRate",
  "hitRatio",
  "originS",
  "blockedRate",
  "waiting",
  "oldestS",
  "journalLag",
  "canaryAgeS",
] as const;
export type HourSeries = (typeof hourSeries)[number];

/** `steadyMs` comes from a clock that nobody sets. */
export type SampleTime = { readonly wallMs: number; readonly steadyMs: number };

/** Samples of the hour before a moment, the oldest first. NaN: unknown. */
export type HourView = {
  readonly nowMs: number;
  readonly atMs: readonly number[];
  readonly values: Readonly<Record<HourSeries, readonly number[]>>;
  /** The newest reading; undefined if it is too old to be told as of now. */
  readonly latest: { readonly reading: MetricsReading; readonly atMs: number } | undefined;
};

type Sample = Readonly<Record<HourSeries, number>>;

export class LastHour {
  readonly #atMs = new Float64Array(samplesMax);
  readonly #values: Readonly<Record<HourSeries, Float64Array>>;
  /** Of all samples that were taken: the newest one is at `taken - 1` modulo the size. */
  #taken = 0;
  /** So many of the newest ones are valid. */
  #kept = 0;
  #before: (SampleTime & { readonly reading: MetricsReading }) | undefined;

  constructor() {
    const arrays = hourSeries.map((name) => [name, new Float64Array(samplesMax)] as const);
    // Object.fromEntries forgets which keys there are.
    this.#values = Object.fromEntries(arrays) as Record<HourSeries, Float64Array>;
  }

  take(reading: MetricsReading, { wallMs, steadyMs }: SampleTime): void {
    const before = this.#before;
    // Where the clock was set back, what was taken before would lie ahead.
    if (before !== undefined && wallMs <= before.wallMs) this.#kept = 0;
    const isNext =
      before !== undefined &&
      wallMs - before.wallMs <= gapMsMax &&
      steadyMs - before.steadyMs <= gapMsMax;
    const sample = isNext
      ? sampleOf(before.reading, reading, (steadyMs - before.steadyMs) / 1_000)
      : sampleOf(undefined, reading, 0);
    const slot = this.#taken % samplesMax;
    this.#atMs[slot] = wallMs;
    for (const name of hourSeries) this.#values[name][slot] = sample[name];
    this.#taken++;
    this.#kept = Math.min(this.#kept + 1, samplesMax);
    this.#before = { reading, wallMs, steadyMs };
  }

  view(nowMs: number): HourView {
    const slots = Array.from(
      { length: this.#kept },
      (_, at) => (this.#taken - this.#kept + at) % samplesMax,
    ).filter((slot) => nowMs - (this.#atMs[slot] ?? 0) <= hourMs);
    const read = (array: Float64Array): readonly number[] =>
      slots.map((slot) => array[slot] ?? Number.NaN);
    const values = hourSeries.map((name) => [name, read(this.#values[name])] as const);
    const { reading, wallMs: atMs = 0 } = this.#before ?? {};
    const isNow = reading !== undefined && this.#kept > 0 && nowMs - atMs <= nowMsMax;
    return {
      nowMs,
      atMs: read(this.#atMs),
      values: Object.fromEntries(values) as Record<HourSeries, readonly number[]>,
      latest: isNow ? { reading, atMs } : undefined,
    };
  }
}

/** `before` is undefined where nothing is known of the time before. */
function sampleOf(
  before: MetricsReading | undefined,
  now: MetricsReading,
  seconds: number,
): Sample {
  const grown = (name: "requests" | "hits" | "blocked" | "originWaits" | "originWaitS"): number => {
    const by = before === undefined ? Number.NaN : now[name] - before[name];
    return by < 0 ? Number.NaN : by;
  };
  const [requests, hits, originWaits] = [grown("requests"), grown("hits"), grown("originWaits")];
  const { waiting, oldestS, journalLag, canaryAgeS } = now;
  return {
    requestRate: requests / seconds,
    hitRatio: ratio(hits, requests),
    originS: ratio(grown("originWaitS"), originWaits),
    blockedRate: grown("blocked") / seconds,
    waiting,
    oldestS,
    journalLag,
    canaryAgeS,
  };
}

/** Without a request there is no ratio, and where no origin was asked there is no time of it. */
function ratio(part: number, of: number): number {
  return of === 0 ? Number.NaN : part / of;
}

export type HourPoint = { readonly atMs: number; readonly value: number };

/** Returns the points of a series that are known, in runs between which there is a hole. */
export function runsOf(
  { atMs, values }: Pick<HourView, "atMs" | "values">,
  name: HourSeries,
): readonly (readonly HourPoint[])[] {
  const runs: HourPoint[][] = [];
  let lastMs = -Infinity;
  for (const [at, value] of values[name].entries()) {
    if (Number.isNaN(value)) continue;
    const point = { atMs: atMs[at] ?? 0, value };
    const isNext = lastMs === atMs[at - 1] && point.atMs - lastMs <= gapMsMax;
    if (isNext) runs.at(-1)?.push(point);
    else runs.push([point]);
    lastMs = point.atMs;
  }
  return runs;
}

/** Returns the times without samples between the first one and the last one. */
export function holesOf(
  atMs: readonly number[],
): readonly { readonly fromMs: number; readonly untilMs: number }[] {
  return atMs
    .slice(1)
    .map((untilMs, at) => ({ fromMs: atMs[at] ?? untilMs, untilMs }))
    .filter(({ fromMs, untilMs }) => untilMs - fromMs > gapMsMax);
}

export type HourSummary = {
  /** NaN if it is not known now. */
  readonly now: number;
  readonly least: HourPoint;
  readonly most: HourPoint;
};

/** Sums a series up; undefined if nothing is known of the whole hour. Of several extremes the newest counts. */
export function summaryOf(view: HourView, name: HourSeries): HourSummary | undefined {
  const points = runsOf(view, name).flat();
  const [first] = points;
  if (first === undefined) return undefined;
  const pick = (isBetter: (one: HourPoint, than: HourPoint) => boolean): HourPoint =>
    points.reduce((best, one) => (isBetter(one, best) ? one : best), first);
  return {
    now: view.latest === undefined ? Number.NaN : (view.values[name].at(-1) ?? Number.NaN),
    least: pick((one, than) => one.value <= than.value),
    most: pick((one, than) => one.value >= than.value),
  };
}

/** The gauges that a reading needs. Main's registry has them, without labels. */
export const readGauges = [
  "accel_agent_log_records_spooled",
  "accel_agent_log_records_in_memory",
  "accel_agent_log_spool_bytes",
  "accel_agent_log_oldest_seconds",
  "accel_agent_journal_applied_seq",
  "accel_agent_journal_head_seq",
  "accel_agent_log_canary_age_seconds",
] as const;

export type CountedSums = Pick<
  MetricsReading,
  "requests" | "hits" | "blocked" | "originWaits" | "originWaitS"
>;

/** `gauge` returns undefined for one without a value. */
export function readingOf(
  sums: CountedSums,
  gauge: (name: (typeof readGauges)[number]) => number | undefined,
): MetricsReading {
  const value = (name: (typeof readGauges)[number]): number => gauge(name) ?? Number.NaN;
  return {
    ...sums,
    waiting: value("accel_agent_log_records_spooled") + value("accel_agent_log_records_in_memory"),
    spoolBytes: value("accel_agent_log_spool_bytes"),
    oldestS: value("accel_agent_log_oldest_seconds"),
    journalLag: value("accel_agent_journal_head_seq") - value("accel_agent_journal_applied_seq"),
    canaryAgeS: value("accel_agent_log_canary_age_seconds"),
  };
}

/** Takes samples until stopped or disposed, the first one at once. */
export function sampling(
  hour: LastHour,
  read: () => Promise<MetricsReading>,
  { now, ...options }: EveryOptions & { readonly now: () => Date },
): AsyncDisposable {
  const take = async (): Promise<void> => {
    const reading = await read();
    hour.take(reading, { wallMs: now().getTime(), steadyMs: performance.now() });
  };
  const first = take().catch(options.onError);
  const rest = repeating(samplePeriodMs, take, options);
  return {
    [Symbol.asyncDispose]: async () => {
      await rest[Symbol.asyncDispose]();
      await first;
    },
  };
}
