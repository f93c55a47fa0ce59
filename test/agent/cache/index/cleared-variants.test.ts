// Rows that were cleared and are not deleted yet stand beside the variants of their URL: they are none of the 32, neither where one is stored nor where one is looked up.

import { expect, test } from "vitest";
import { Lookups } from "../../../../src/agent/cache/worker/lookups.ts";
import type { OpenIndex } from "../../../../src/agent/cache/index/open-index.ts";
import type { Write } from "../../../../src/agent/cache/index/writes.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { keyOf, metaOf } from "../rig.ts";
import { openIndexIn } from "../still-index.ts";

const key = keyOf({ path: "/varies" });

function commitOf(language: string, mime: string, sourceNo: number): Write {
  const meta = metaOf({ sourceNo, mime, vary: { "accept-language": language } });
  return { kind: "commit", candidate: { key, meta, body: null, size: 0, invalidationMark: null } };
}

function store(index: OpenIndex, languages: readonly string[], mime: string): readonly number[] {
  const sourceNo = index.clears.newest;
  const outcomes = index.write(languages.map((language) => commitOf(language, mime, sourceNo)));
  return outcomes.flatMap((outcome) => (outcome?.kind === "stored" ? [outcome.id] : []));
}

/** In force, and nothing of it deleted: no step of background work is taken. */
function clear(index: OpenIndex, ids: readonly number[]): void {
  const scope = { domain: key.domain, host: null };
  const clearNo = index.record({ ...scope, clearId: `c${ids[0]}`, seq: 0, patterns: ["path:no"] });
  const hidden = index.hideAll(Float64Array.from(ids));
  index.apply(clearNo, 0, { ids: hidden, widened: false, invisibleMs: 0 });
}

const languages = (from: number, count: number): string[] =>
  Array.from({ length: count }, (_, no) => `l-${from + no}`);

test("a live variant is pushed out by live ones alone", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const { index } = opened;
  const live = store(index, languages(0, 20), "text/html");
  clear(index, store(index, languages(100, 12), "image/png"));
  // Twelve live ones more make 32: whatever was cleared takes no place of theirs.
  const more = store(index, languages(200, 12), "text/html");
  expect(live.filter((id) => index.bits.has(id))).toHaveLength(20);
  expect(more.filter((id) => index.bits.has(id))).toHaveLength(12);
  // The 33rd pushes out one of them, and of what was cleared nothing: that is the deletion's.
  const before = index.entries.count;
  store(index, ["l-300"], "text/html");
  expect([...live, ...more].filter((id) => index.bits.has(id))).toHaveLength(31);
  expect(index.entries.count).toBe(before);
  while (index.step());
  expect(index.entries.count).toBe(32);
});

test("a live variant is found behind more cleared ones than a look-up reads at a time", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const { index } = opened;
  const [oldest = 0] = store(index, ["de"], "text/html");
  for (let round = 0; round < 5; round++)
    clear(index, store(index, languages(round * 100, 31), "image/png"));
  expect(index.entries.count).toBe(1 + 5 * 31);
  using lookups = new Lookups(dir.path, index.incarnation);
  const found = lookups.find(key, ({ id }) => index.bits.has(id));
  expect(found.map(({ id }) => id).filter((id) => index.bits.has(id))).toEqual([oldest]);
});
