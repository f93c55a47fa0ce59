// What batches become in PostgreSQL, as rows: any text of a record comes back as it was, and each number and count is where it
// belongs.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  copyText,
  rowsOf,
  storable,
} from "../../../../src/central/agents/postgres-logs/batch-rows.ts";
import { requestRecord } from "../../../support/request-records.ts";

const lane = { epoch: "00000000000000e1", no: 3 };
const nowMs = Date.parse("2030-01-15T12:00:00Z");

/** Reads a field as COPY in text does (PostgreSQL's manual, COPY, text format). */
function readField(field: string): string {
  const named: Readonly<Record<string, string>> = { t: "\t", r: "\r", n: "\n", "\\": "\\" };
  return field.replace(/\\(.)/g, (_, letter: string) => named[letter] ?? letter);
}

test("whatever a line holds, one row of six fields comes back with it", () => {
  const anyLine = fc.string({ unit: fc.constantFrom("\\", "t", "n", "\t", "\r", '"', "é", ".") });
  fc.assert(
    fc.property(fc.array(anyLine, { maxLength: 5 }), (lines) => {
      const records = lines.map((line, at) => ({
        id: at + 7,
        row: { siteId: 1, domain: "", atUs: 5, seq: at, lane: { siteId: 1, ...lane }, line },
        seriesId: 2,
        laneId: 4,
      }));
      const rows = Buffer.from(copyText(records)).toString("utf8").split("\n").slice(0, -1);
      expect(rows.map((row) => row.split("\t").map(readField))).toEqual(
        lines.map((line, at) => [String(at + 7), "5", String(at), "2", "4", line]),
      );
    }),
  );
});

test("what no text of PostgreSQL holds becomes U+FFFD, and nothing else changes", () => {
  expect(storable("a\0b\ud800c")).toBe("a\uFFFDb\uFFFDc");
  expect(storable("é\u{1f600}\n")).toBe("é\u{1f600}\n");
});

test("records, canaries, gaps and marks of several batches", () => {
  const record = requestRecord(1, { when: 60.000_001, domain: "a.example.test" });
  const own = { domain: "a.example.test", when: record.when, line: "{1}", record };
  const rows = rowsOf([
    {
      siteId: 9,
      lane,
      lastSeq: 4,
      records: [{ ...own, seq: 1 }],
      canaries: [{ seq: 2, at: 1e11, line: "{2}" }],
      gaps: [{ fromSeq: 3, toSeq: 4, reason: "x\0", atLeast: 1 }],
      nowMs,
    },
    {
      siteId: 9,
      lane,
      lastSeq: 5,
      records: [{ ...own, seq: 5, domain: null, when: 59.999_999 }],
      canaries: [],
      gaps: [],
      nowMs: nowMs + 1,
    },
  ]);
  expect(rows.marks).toEqual([{ siteId: 9, ...lane, mark: 5, nowMs: nowMs + 1 }]);
  expect(rows.records.map(({ domain, seq, atUs }) => [domain, seq, atUs])).toEqual([
    ["a.example.test", 1, 60_000_001],
    ["", 2, nowMs * 1_000],
    ["", 5, 59_999_999],
  ]);
  // A canary whose clock is ahead is one of now, and is no record of the span.
  expect(rows.canaries).toEqual([{ siteId: 9, atUs: nowMs * 1_000, arrivedMs: nowMs }]);
  expect([rows.firstUs, rows.lastUs]).toEqual([59_999_999, 60_000_001]);
  expect(rows.gaps).toMatchObject([{ fromSeq: 3, toSeq: 4, atLeast: 1, reason: "x\uFFFD" }]);
  expect(
    rows.counted.map(({ domain, minute, records, missing }) => [
      domain,
      minute,
      records.length,
      missing,
    ]),
  ).toEqual([
    ["a.example.test", 1, 1, []],
    ["", 1, 0, [{ atLeast: 1, atMost: 2 }]],
    ["", 0, 1, []],
  ]);
});
