// Request logs and the numbers of them in one directory, without threads: batches in, folds, questions, and what the stored
// records themselves add up to.

import { join } from "node:path";
import { AnalyticsStore } from "../../src/central/agents/analytics.ts";
import type { AnalyticsQuery } from "../../src/central/agents/analytics-view.ts";
import type { LogWriter } from "../../src/central/agents/log-engine.ts";
import { analyticsShape, type Analytics } from "../../src/wire/customer/analytics.ts";
import type { RequestRecord } from "../../src/wire/request-log.ts";
import { openTestCounting, openTestDays, openTestWriter } from "./any-logs.ts";
import { requestRecord } from "./request-records.ts";

export const analyticsDomain = "www.example.test";
export const firstDayMs = Date.parse("2030-01-15T12:00:00Z");
const lane = { epoch: "00000000000000e1", no: 1 };
const everything = { since: 0, until: 1e11 };

type Gap = { readonly gap: { readonly count: number; readonly reason: string } };
export type Line = Partial<RequestRecord> | Gap;

export class AnalyticsRig implements Disposable {
  readonly path: string;
  readonly logs: string;
  readonly broken: string[] = [];
  nowMs = firstDayMs;
  bytesMax = 1e9;
  #store: LogWriter | undefined;
  #analytics: AnalyticsStore | undefined;
  readonly #seqs = new Map<number, number>();

  /** `directory` holds `logs/`, which must exist, and `analytics.db`, or another central's file of that name. */
  constructor(directory: string, name = "analytics.db") {
    this.logs = join(directory, "logs");
    this.path = join(directory, name);
  }

  get store(): LogWriter {
    const broken = (path: string): void => void this.broken.push(path);
    return (this.#store ??= openTestWriter(this.logs, broken));
  }

  get analytics(): AnalyticsStore {
    const broken = (path: string): void => void this.broken.push(path);
    const place = { path: this.path, bytesMax: this.bytesMax };
    if (this.#analytics !== undefined) return this.#analytics;
    const { days, kept } = openTestCounting(this.logs);
    return (this.#analytics = new AnalyticsStore(days, place, broken, kept));
  }

  /** Sends one batch of a site's only lane; each line is a record's fields, or a gap. Returns the batch. */
  send(lines: readonly Line[], siteId = 1) {
    const first = (this.#seqs.get(siteId) ?? 0) + 1;
    let seq = first;
    const texts = lines.map((line) => {
      if (!("gap" in line)) {
        const when = this.nowMs / 1e3;
        return JSON.stringify(requestRecord(seq++, { domain: analyticsDomain, when, ...line }));
      }
      const { count, reason } = line.gap;
      const gap = { from_seq: seq, to_seq: seq + count - 1, reason };
      seq += count;
      return JSON.stringify({ gap });
    });
    this.#seqs.set(siteId, seq - 1);
    const batch = {
      siteId,
      lane,
      firstSeq: first,
      lastSeq: seq - 1,
      encoding: "identity" as const,
      body: Buffer.from(texts.map((text) => `${text}\n`).join("")),
      nowMs: this.nowMs,
    };
    return { batch, outcome: this.store.append([batch])[0] };
  }

  /** Folds all, and sets aside what is found broken, as the main thread does. */
  fold(): readonly string[] {
    for (;;) {
      const step = this.analytics.fold(this.nowMs);
      if (step.kind === "broken") this.store.setAside(step.day, new Error(step.message));
      else if (!step.isMore) return this.analytics.done(this.nowMs);
    }
  }

  /** Asks by the day for all time that days are kept, unless told otherwise. */
  ask(query: Partial<AnalyticsQuery> = {}): Analytics {
    const isTop = query.by?.startsWith("top_") === true;
    const sinceDays = isTop ? 80 : query.step === undefined || query.step === "day" ? 700 : 1;
    const answer = this.analytics.answer({
      siteIds: [1, 2],
      linkedSiteIds: [1],
      domain: analyticsDomain,
      since: this.nowMs / 1e3 - sinceDays * 86_400,
      until: this.nowMs / 1e3 + 86_400,
      step: "day",
      by: undefined,
      nowMs: this.nowMs,
      ...query,
    });
    if (answer.kind !== "numbers") throw new Error(JSON.stringify(answer));
    const decoded = analyticsShape.decode(JSON.parse(answer.text));
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
    return decoded.value;
  }

  /** The records that are stored of the domain. */
  records(domain = analyticsDomain): readonly RequestRecord[] {
    using days = openTestDays(this.logs);
    return days
      .list()
      .flatMap((day) => days.view(day)?.arrived(0, 1_000_000) ?? [])
      .filter((record) => record.domain === domain)
      .map(({ line }) => JSON.parse(line) as RequestRecord)
      .filter(({ when }) => when >= everything.since && when <= everything.until);
  }

  /** Ends both, as a stop or a kill does: all that was answered is on disk. */
  restart(): void {
    this.#store?.[Symbol.dispose]();
    this.#analytics?.[Symbol.dispose]();
    this.#store = this.#analytics = undefined;
  }

  [Symbol.dispose](): void {
    this.restart();
  }
}

/** What records add up to, as the totals of an answer tell it. */
export function sumsOf(records: readonly RequestRecord[], by: "status" | "cache" = "status") {
  const hits = records.filter(({ cache }) => cache === "hit" || cache === "stale");
  const counts: Record<string, number> = {};
  for (const record of records) {
    const key = by === "status" ? String(record.response_status) : record.cache;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  const bytes = (some: readonly RequestRecord[]): number =>
    some.reduce((sum, one) => sum + one.bytes_sent, 0);
  return {
    requests: records.length,
    hits: hits.length,
    bytes: bytes(records),
    saved_bytes: bytes(hits),
    counts,
  };
}
