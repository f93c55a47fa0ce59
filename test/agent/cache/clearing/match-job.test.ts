// The matcher over many entries: many matches are kept to their scope by other means than few, with the same outcome.

import { afterAll, beforeAll, expect, test } from "vitest";
import * as fc from "fast-check";
import { IdSet } from "../../../../src/agent/cache/clearing/id-set.ts";
import { openIndexFile } from "../../../../src/agent/cache/index/index-file.ts";
import { Matcher, type MatchJob } from "../../../../src/agent/cache/clearing/match-job.ts";
import type { ClearGroup, Scope } from "../../../../src/agent/cache/entry.ts";
import { indexedText, insertTextSql } from "../../../../src/core/patterns/index-schema.ts";
import { tempDir } from "../../../support/temp-dir.ts";

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

type Question = MatchJob extends infer J
  ? J extends J
    ? Omit<J, "directory" | "incarnation">
    : never
  : never;

function matched(question: Question): number[] {
  const answer = matcher.run({ ...question, directory: dir.path, incarnation: 1 });
  if (answer.kind !== "matched") throw new Error(JSON.stringify(answer));
  return Array.from(new IdSet(answer.ids).ascending(), (id) => id - 101);
}

const all = Array.from({ length: entries }, (_, no) => no);
const scopes: [Scope, (no: number) => boolean][] = [
  [{ domain: null, host: null }, () => true],
  [{ domain: "a.test", host: null }, (no) => no % 3 < 2],
  [{ domain: "a.test", host: "shop.a.test" }, (no) => no % 3 === 1],
  [{ domain: null, host: "b.test" }, (no) => no % 3 === 2],
  [{ domain: "c.test", host: null }, () => false],
];
const later = entries + 1;
test.each(scopes)("older entries in %j", (scope, isIn) => {
  const older = (patterns: readonly string[] | null, olderThan = later): number[] =>
    matched({
      kind: "older",
      scope,
      selection: { patterns, groups: [] },
      olderThan,
      isSoft: false,
    });
  expect(older(["path:page"])).toEqual(all.filter(isIn));
  expect(older(null)).toEqual(all.filter(isIn));
  const five = all.filter((no) => no % 5 === 0 && isIn(no));
  expect(older(["path:five"])).toEqual(five);
  expect(older(["path:five", "path:nothing", "path:page NOT path:other"])).toEqual(five);
  expect(older(["path:page"], 10)).toEqual(all.filter((no) => no < 10 && isIn(no)));
});

test("older entries of groups are those of their hosts", () => {
  const scope = { domain: "a.test", host: null };
  const older = (groups: readonly ClearGroup[], patterns: readonly string[] = []): number[] =>
    matched({
      kind: "older",
      scope,
      selection: { patterns, groups },
      olderThan: later,
      isSoft: false,
    });
  const shop = all.filter((no) => no % 3 === 1);
  expect(older([{ host: "shop.a.test", patterns: null }])).toEqual(shop);
  expect(older([{ host: "b.test", patterns: null }])).toEqual([]);
  const five = all.filter((no) => no % 5 === 0);
  expect(older([{ host: "shop.a.test", patterns: ["path:five"] }])).toEqual(
    five.filter((no) => shop.includes(no)),
  );
  const both = all.filter((no) => shop.includes(no) || (no % 5 === 0 && no % 3 < 2));
  expect(older([{ host: "shop.a.test", patterns: null }], ["path:five"])).toEqual(both);
});

test("matches are those of all customers, and of this index", () => {
  const match = (patterns: readonly string[], newestNo = 0): number[] =>
    matched({ kind: "match", patterns, newestNo, checkFirst: true });
  const five = all.filter((no) => no % 5 === 0);
  expect(match(["path:page"])).toEqual(all);
  expect(match(["path:five", "path:page NOT path:other", "path:nothing"])).toEqual(five);
  expect(() => match(["path:five"], 1_000)).toThrow("older copy");
});

test("sets of ids are united, intersected and put in order", () => {
  const list = fc.array(fc.integer({ min: 1_000, max: 1_200 }));
  fc.assert(
    fc.property(fc.array(list), list, (lists, other) => {
      const union = [...new Set(lists.flat())].toSorted((a, b) => a - b);
      expect([...IdSet.of(lists).ascending()]).toEqual(union);
      const both = union.filter((id) => other.includes(id));
      expect([
        ...IdSet.of(lists)
          .intersect(IdSet.of([other]))
          .ascending(),
      ]).toEqual(both);
    }),
  );
  const far = [2 ** 40, 2 ** 40 + 31, 2 ** 40 + 32];
  expect([...IdSet.of([far.toReversed()]).ascending()]).toEqual(far);
  const moved = new IdSet({ first: 2 ** 40 - 5, words: Uint32Array.of(0xff_ff_ff_ff, 1) });
  expect([...IdSet.of([far]).intersect(moved).ascending()]).toEqual([2 ** 40]);
  expect([...moved.intersect(IdSet.of([far])).ascending()]).toEqual([2 ** 40]);
  expect(() => IdSet.of([[1, 2 ** 40]])).toThrow(RangeError);
});
