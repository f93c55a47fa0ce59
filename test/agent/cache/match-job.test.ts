// The matcher over many entries: many matches are kept to their scope by other means than few, with the same outcome.

import { afterAll, beforeAll, expect, test } from "vitest";
import * as fc from "fast-check";
import { IdSet } from "../../../src/agent/cache/id-set.ts";
import { decodeIdRuns } from "../../../src/agent/cache/id-runs.ts";
import { openIndexFile } from "../../../src/agent/cache/index-file.ts";
import { Matcher } from "../../../src/agent/cache/match-job.ts";
import type { Scope } from "../../../src/agent/cache/entry.ts";
import { indexedText, insertTextSql } from "../../../src/core/index-schema.ts";
import { tempDir } from "../../support/temp-dir.ts";

const dir = tempDir();
const matcher = new Matcher();
/** Above what is looked up one by one. */
const entries = 24_000;
const hosts = ["a.test", "shop.a.test", "b.test"] as const;

beforeAll(async () => {
  const { db } = await openIndexFile(
    dir.path,
    {
      facts: { epoch: null, clearSeq: 0, clearNo: 0, opening: null },
      opening: "one",
      nowS: 0,
      bootId: undefined,
      clearNo: 0,
      lastId: 100,
    },
    undefined,
  );
  const insert = db.prepare<[string, string, string, number]>(
    `INSERT INTO entry (key, domain, host, kind, path, query, vary, mime, status, headers, stored_at_ms, initial_age_s, fresh_for_s,
       source_no, size, used_at_s, footprint)
     VALUES (0, ?, ?, 'generated', ?, '', '', 'text/html', 200, '[]', 0, 0, 0, ?, 0, 0, 0)`,
  );
  const insertText = db.prepare(insertTextSql("entry_text"));
  db.transaction(() => {
    for (let no = 0; no < entries; no++) {
      const host = hosts[no % 3] ?? "a.test";
      const path = `/page/${no % 5 === 0 ? "five" : "other"}/${no}`;
      const domain = host === "b.test" ? host : "a.test";
      const { lastInsertRowid } = insert.run(domain, host, path, no);
      const key = { kind: "generated", path, query: "", mime: "text/html" } as const;
      insertText.run(lastInsertRowid, ...indexedText(key));
    }
  })();
  db.close();
});
afterAll(() => {
  matcher[Symbol.dispose]();
  dir[Symbol.dispose]();
});

function matched(
  scope: Scope,
  patterns: readonly string[] | null,
  olderThan: number | null = null,
): number[] {
  const job = { kind: "match", directory: dir.path, incarnation: 1, scope, patterns, olderThan };
  const answer = matcher.run(job as Parameters<Matcher["run"]>[0]);
  if (answer.kind !== "matched") throw new Error(JSON.stringify(answer));
  return Array.from(decodeIdRuns(answer.ids), (id) => id - 101);
}

const all = Array.from({ length: entries }, (_, no) => no);
const scopes: [Scope, (no: number) => boolean][] = [
  [{ domain: null, host: null }, () => true],
  [{ domain: "a.test", host: null }, (no) => no % 3 < 2],
  [{ domain: "a.test", host: "shop.a.test" }, (no) => no % 3 === 1],
  [{ domain: null, host: "b.test" }, (no) => no % 3 === 2],
  [{ domain: "c.test", host: null }, () => false],
];
test.each(scopes)("in %j", (scope, isIn) => {
  expect(matched(scope, ["path:page"])).toEqual(all.filter(isIn));
  expect(matched(scope, null)).toEqual(all.filter(isIn));
  const five = all.filter((no) => no % 5 === 0 && isIn(no));
  expect(matched(scope, ["path:five"])).toEqual(five);
  expect(matched(scope, ["path:five", "path:nothing", "path:page NOT path:other"])).toEqual(five);
  expect(matched(scope, ["path:page"], 10)).toEqual(all.filter((no) => no < 10 && isIn(no)));
});

test("sets of ids are united, intersected and put in order", () => {
  const list = fc.array(fc.integer({ min: 1_000, max: 1_200 }));
  fc.assert(
    fc.property(fc.array(list), list, (lists, other) => {
      const union = [...new Set(lists.flat())].toSorted((a, b) => a - b);
      expect([...IdSet.of(lists).ascending()]).toEqual(union);
      const both = union.filter((id) => other.includes(id));
      expect([...IdSet.of(lists).intersect(other).ascending()]).toEqual(both);
    }),
  );
  const far = [2 ** 40, 2 ** 40 + 31, 2 ** 40 + 32];
  expect([...IdSet.of([far.toReversed()]).ascending()]).toEqual(far);
  expect(() => IdSet.of([[1, 2 ** 40]])).toThrow(RangeError);
});
