// Central's side of request logs, as strict as the contract: numbers without hole or overlap behind the mark, else 409. Keeps every record it ever took.

import { gunzipSync, zstdDecompressSync } from "node:zlib";
import type { Posted } from "../../src/agent/requests/ship/ship-plan.ts";
import {
  batchBytesMax,
  batchRecordsMax,
  decodeCanaryLine,
  decodeGapLine,
  decodeRequestRecord,
  type RequestRecord,
} from "../../src/wire/request-log.ts";

export type ToldGap = { readonly from: number; readonly to: number; readonly reason: string };
type CentralLane = {
  mark: number;
  records: Map<number, RequestRecord>;
  gaps: ToldGap[];
  canaries: Map<number, number>;
};

export type Batch = {
  readonly lane: string;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly encoding: "zstd" | "gzip" | "identity";
  readonly body: Uint8Array;
};

const decoders = {
  zstd: zstdDecompressSync,
  gzip: gunzipSync,
  identity: (body: Uint8Array) => body,
};

export const posted = (status: number, answer: unknown, retryAfterMs?: number): Posted => ({
  status,
  answer,
  retryAfterMs,
});

export const refused = (status: number, code: string, mark?: number): Posted =>
  posted(status, { code, message: code, ...(mark === undefined ? {} : { mark }) });

export class LogCentral {
  readonly lanes = new Map<string, CentralLane>();
  /** Records it answers 400 to. */
  isPoison: (record: RequestRecord) => boolean = () => false;
  encodings: ReadonlySet<string> = new Set(Object.keys(decoders));
  linesMax = batchRecordsMax;
  batches = 0;

  post({ lane: id, firstSeq, lastSeq, encoding, body }: Batch): Posted {
    if (!this.encodings.has(encoding)) return posted(415, undefined);
    return this.take(id, firstSeq, lastSeq, decoders[encoding](body));
  }

  take(id: string, firstSeq: number, lastSeq: number, ndjson: Uint8Array): Posted {
    this.batches++;
    const lane = this.lane(id);
    if (lastSeq <= lane.mark) return posted(200, { committed_through: lane.mark });
    if (firstSeq !== lane.mark + 1) return refused(409, "conflict", lane.mark);
    const lines = Buffer.from(ndjson).toString("utf8").split("\n").slice(0, -1);
    if (lines.length > this.linesMax || ndjson.byteLength > batchBytesMax)
      return refused(413, "too_large");
    const records: [number, RequestRecord][] = [];
    const gaps: ToldGap[] = [];
    const canaries: [number, number][] = [];
    let next = firstSeq;
    for (const line of lines) {
      const raw: unknown = JSON.parse(line);
      const gap = decodeGapLine(raw);
      if (gap.ok) {
        const { from_seq: from, to_seq: to, reason } = gap.value.gap;
        if (from !== next || to < from) return refused(400, "invalid");
        gaps.push({ from, to, reason });
        next = to + 1;
        continue;
      }
      const canary = decodeCanaryLine(raw);
      if (canary.ok) {
        canaries.push([next++, canary.value.canary.at]);
        continue;
      }
      const record = decodeRequestRecord(raw);
      if (!record.ok || this.isPoison(record.value)) return refused(400, "invalid");
      records.push([next++, record.value]);
    }
    if (next !== lastSeq + 1) return refused(400, "invalid");
    for (const [seq, record] of records) lane.records.set(seq, record);
    for (const [seq, at] of canaries) lane.canaries.set(seq, at);
    lane.gaps.push(...gaps);
    lane.mark = lastSeq;
    return posted(200, { committed_through: lastSeq });
  }

  lane(id: string): CentralLane {
    const known = this.lanes.get(id) ?? {
      mark: 0,
      records: new Map(),
      gaps: [],
      canaries: new Map(),
    };
    this.lanes.set(id, known);
    return known;
  }

  /** As a restored backup is. */
  forget(id: string, mark: number): void {
    const lane = this.lane(id);
    lane.mark = Math.min(lane.mark, mark);
    for (const seq of lane.records.keys()) if (seq > lane.mark) lane.records.delete(seq);
    lane.gaps = lane.gaps.filter(({ from }) => from <= lane.mark);
  }

  /** Every record of all lanes, lanes in order of their first batch. */
  records(): readonly RequestRecord[] {
    return [...this.lanes.values()].flatMap(({ records }) => [...records.values()]);
  }

  gaps(): readonly ToldGap[] {
    return [...this.lanes.values()].flatMap(({ gaps }) => gaps);
  }

  lost(): number {
    return this.gaps().reduce((sum, { from, to }) => sum + to - from + 1, 0);
  }
}
