// What is counted of the requests of one domain in one span of time. Counts add up; they are kept as compact bytes.

import { PackedFault, PackedReader, PackedWriter } from "./packed-bytes.ts";
import { QuantileSketch, cappedSum } from "./quantile-sketch.ts";

/** The fields of a request record that are counted. */
export type CountedRequest = {
  readonly response_status: number;
  readonly bytes_sent: number;
  /** Seconds; 0 if no origin was asked. */
  readonly backend_time: number;
  /** Seconds, the origin's included. */
  readonly duration: number;
  readonly cache: string;
  /** `<verdict> <reason>`, or a verdict alone. */
  readonly verdict: string;
  readonly bot: string | null;
};

/** By what requests can be told apart; each is a tally of names. */
export const tallies = ["status", "cache", "verdict", "reason", "bot"] as const;
export type TallyName = (typeof tallies)[number];

/** The most names of one tally; what comes under further ones counts as `other`. */
export const talliedNamesMax = 64;
const otherName = "other";

const formatNow = 1;

/** Whether this use of the cache (the field `cache` of a record) was an answer from it, fresh or stale. */
export function isFromCache(cache: string): boolean {
  return cache === "hit" || cache === "stale";
}

export class RequestCounts {
  requests = 0;
  /** Answers from the cache, fresh or stale. */
  hits = 0;
  bytes = 0;
  /** The bytes of hits, which no origin sent. */
  savedBytes = 0;
  /** Records that agents told as lost: at least and at most so many. */
  missingAtLeast = 0;
  missingAtMost = 0;
  /** The time of origins, of requests for which one was asked. */
  origin = new QuantileSketch();
  /** The rest of each request's time. */
  edge = new QuantileSketch();
  readonly by: Readonly<Record<TallyName, Map<string, number>>> = {
    status: new Map(),
    cache: new Map(),
    verdict: new Map(),
    reason: new Map(),
    bot: new Map(),
  };

  add(request: CountedRequest): void {
    const { bytes_sent: bytes, backend_time: originS, cache, verdict, bot } = request;
    this.requests++;
    this.bytes = cappedSum(this.bytes, bytes);
    if (isFromCache(cache)) {
      this.hits++;
      this.savedBytes = cappedSum(this.savedBytes, bytes);
    }
    if (originS > 0) this.origin.add(originS * 1e6);
    this.edge.add((request.duration - originS) * 1e6);
    const blank = verdict.indexOf(" ");
    tally(this.by.status, String(request.response_status), 1);
    tally(this.by.cache, cache, 1);
    tally(this.by.verdict, blank < 0 ? verdict : verdict.slice(0, blank), 1);
    if (blank >= 0) tally(this.by.reason, verdict.slice(blank + 1), 1);
    if (bot !== null) tally(this.by.bot, bot, 1);
  }

  miss(atLeast: number, atMost: number): void {
    this.missingAtLeast = cappedSum(this.missingAtLeast, atLeast);
    this.missingAtMost = cappedSum(this.missingAtMost, atMost);
  }

  merge(other: RequestCounts): void {
    this.requests += other.requests;
    this.hits += other.hits;
    this.bytes = cappedSum(this.bytes, other.bytes);
    this.savedBytes = cappedSum(this.savedBytes, other.savedBytes);
    this.miss(other.missingAtLeast, other.missingAtMost);
    this.origin.merge(other.origin);
    this.edge.merge(other.edge);
    for (const name of tallies)
      for (const [value, count] of other.by[name]) tally(this.by[name], value, count);
  }

  bytesOf(): Uint8Array {
    const to = new PackedWriter();
    to.number(formatNow);
    const { requests, hits, bytes, savedBytes, missingAtLeast, missingAtMost } = this;
    for (const count of [requests, hits, bytes, savedBytes, missingAtLeast, missingAtMost])
      to.number(count);
    this.origin.write(to);
    this.edge.write(to);
    for (const name of tallies) {
      to.number(this.by[name].size);
      for (const [value, count] of this.by[name]) {
        to.text(value);
        to.number(count);
      }
    }
    return to.bytes();
  }

  /**
   * Reads counts; of the tallies only those that are wanted, because they are most of the work. Throws PackedFault for
   * bytes that are not of `bytesOf`.
   */
  static of(packed: Uint8Array, wanted: readonly TallyName[] = tallies): RequestCounts {
    const from = new PackedReader(packed);
    const format = from.number();
    if (format !== formatNow) throw new PackedFault(`counts of the format ${format} are not known`);
    const counts = new RequestCounts();
    counts.requests = from.number();
    counts.hits = from.number();
    counts.bytes = from.number();
    counts.savedBytes = from.number();
    counts.missingAtLeast = from.number();
    counts.missingAtMost = from.number();
    counts.origin = QuantileSketch.read(from);
    counts.edge = QuantileSketch.read(from);
    for (const name of tallies)
      for (let left = from.number(talliedNamesMax + 1); left > 0; left--) {
        if (!wanted.includes(name)) {
          from.skipText();
          from.number();
          continue;
        }
        const value = from.text();
        if (counts.by[name].has(value)) throw new PackedFault("a name is there twice");
        counts.by[name].set(value, from.number());
      }
    from.end();
    return counts;
  }
}

function tally(names: Map<string, number>, told: string, count: number): void {
  const counted = names.get(told);
  if (counted !== undefined) {
    names.set(told, counted + count);
    return;
  }
  // Halves of surrogate pairs have no UTF-8: written and read again, two names would be one.
  const sound = told.toWellFormed();
  const isKept = names.has(sound) || names.size < talliedNamesMax;
  const name = isKept ? sound : otherName;
  names.set(name, (names.get(name) ?? 0) + count);
}
