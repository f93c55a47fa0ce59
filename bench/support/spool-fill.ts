// A spool as an agent leaves it after central was away for long: lanes of an earlier run, segments of 4 MiB, a frame for each few milliseconds' records.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatSegmentName } from "../../src/agent/requests/spool/segment.ts";
import { encodeFrame, encodeSegmentHeader } from "../../src/core/journal/spool-frame.ts";
import type { RequestRecord } from "../../src/wire/request-log.ts";
import { requestRecord } from "../../test/support/request-records.ts";

export type Fill = {
  /** Of the state. */
  readonly directory: string;
  readonly lanes: number;
  readonly recordsPerLane: number;
  /** Lines of one frame: at 100 records a second over two workers it is one. */
  readonly recordsPerFrame: number;
};

const epoch = "00000000000000aa";
const segmentBytesMax = 4 * 2 ** 20;
const text = new TextEncoder();

/** Bytes written. */
export function fillSpool({ directory, lanes, recordsPerLane, recordsPerFrame }: Fill): number {
  const spool = join(directory, "spool");
  mkdirSync(spool, { recursive: true, mode: 0o700 });
  let bytes = 0;
  for (let no = 1; no <= lanes; no++) {
    for (let seq = 1; seq <= recordsPerLane;) {
      const firstSeq = seq;
      const parts: Uint8Array[] = [];
      for (let size = 0; seq <= recordsPerLane && size < segmentBytesMax;) {
        const count = Math.min(recordsPerFrame, recordsPerLane - seq + 1);
        const lines = Array.from({ length: count }, (_, at) => lineOf(no, seq + at));
        const frame = encodeFrame({ firstSeq: seq, count, payload: text.encode(lines.join("")) });
        parts.push(frame);
        size += frame.byteLength;
        seq += count;
      }
      const header = encodeSegmentHeader({ epoch, laneNo: no, firstSeq, reservedTo: seq - 1 });
      const name = formatSegmentName({ lane: { epoch, no }, firstSeq, part: 0 });
      const segment = Buffer.concat([header, ...parts]);
      writeFileSync(join(spool, name), segment, { mode: 0o600 });
      bytes += segment.byteLength;
    }
  }
  return bytes;
}

/** Of different sizes and texts, so that compression and central's indexes have something to do. */
function lineOf(lane: number, seq: number): string {
  const record: Partial<RequestRecord> = {
    uri_path: `/articles/${(seq * 7_919) % 100_003}/${seq.toString(36)}?page=${seq % 17}&lane=${lane}`,
    client_ip: `203.0.${(seq >>> 8) & 255}.${seq & 255}`,
    bytes_sent: (seq * 31_337) % 200_000,
    duration: ((seq * 17) % 10_000) / 1_000_000,
    domain: `site-${seq % 20}.example.com`,
    authority: `site-${seq % 20}.example.com`,
    when: 1_700_000_000 + seq / 100,
    user_agent: `Mozilla/5.0 (X11; Linux x86_64; rv:${100 + (seq % 40)}.0) Gecko/20100101 Firefox/${100 + (seq % 40)}.0`,
  };
  return `${JSON.stringify(requestRecord(seq, record))}\n`;
}
