// What soft clears note of entries, step by step: since when they are stale, in the shared word and in the table; and what confirmations and other responses change of it.

import { expect, test, vi } from "vitest";
import { openSqlite } from "../../../../src/base/sqlite.ts";
import { Softenings } from "../../../../src/agent/cache/clearing/softenings.ts";
import type { NewEntry } from "../../../../src/agent/cache/entry.ts";
import type { OpenIndex } from "../../../../src/agent/cache/index/open-index.ts";
import type { Write } from "../../../../src/agent/cache/index/writes.ts";
import { Guard } from "../../../../src/agent/cache/index/guard.ts";
import { indexPath } from "../../../../src/agent/cache/index/index-file.ts";
import { explain } from "../../../../src/agent/cache/index/why.ts";
import { Lookups } from "../../../../src/agent/cache/worker/lookups.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { keyOf, metaOf } from "../rig.ts";
import { openIndexIn } from "../still-index.ts";

const key = keyOf({ path: "/page" });
const scope = { domain: key.domain, host: null };

function commitOf(meta: Partial<NewEntry["meta"]> = {}, path = key.path): Write {
  const candidate = { body: null, size: 0, invalidationMark: null } as const;
  return { kind: "commit", candidate: { ...candidate, key: { ...key, path }, meta: metaOf(meta) } };
}

function store(index: OpenIndex, meta: Partial<NewEntry["meta"]> = {}, path?: string): number {
  const [outcome] = index.write([commitOf({ sourceNo: index.clears.newest, ...meta }, path)]);
  if (outcome?.kind !== "stored") throw new Error("it was not stored");
  return outcome.id;
}

/** In force; no step of background work is taken. */
function soften(index: OpenIndex, ids: readonly number[], sinceS: number, pattern = "path:page") {
  const clearId = `soft ${index.clears.newest}`;
  const asked = { ...scope, clearId, seq: 0, patterns: [pattern], isSoft: true };
  const clearNo = index.record(asked, sinceS);
  const taken = index.soften(Float64Array.from(ids), sinceS);
  index.apply(clearNo, 0, { ids: taken, widened: false, invisibleMs: 0, softSinceS: sinceS });
}

function confirm(index: OpenIndex, id: number, confirmedNo: number, mime = "text/html") {
  const { headers, storedAtMs, initialAgeS, freshForS } = metaOf();
  const refreshed = { headers, mime, storedAtMs, initialAgeS, freshForS, confirmedNo };
  return index.write([{ kind: "refresh", id, key, refreshed }])[0]?.kind;
}

function noted(directory: string): unknown {
  const db = openSqlite(indexPath(directory), { sync: "normal", readonly: true });
  try {
    return db.prepare("SELECT id, since_s AS sinceS FROM softened ORDER BY id").all();
  } finally {
    db.close();
  }
}

test("the shared word tells of the oldest soft clear that is not noted yet, from before the bits fall", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const { index, header } = opened;
  const [a, b] = [store(index, {}, "/page/a"), store(index, {}, "/page/b")];
  soften(index, [a], 100);
  soften(index, [b], 200);
  expect(header.softSinceS).toBe(100);
  index.step();
  expect(header.softSinceS).toBe(200);
  index.step();
  expect(header.softSinceS).toBe(0);
  expect(noted(dir.path)).toEqual([
    { id: a, sinceS: 100 },
    { id: b, sinceS: 200 },
  ]);
  soften(index, [a], 300);
  soften(index, [b], 250);
  expect(header.softSinceS).toBe(250);
});

test("what was confirmed before it is noted is not noted", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const { index } = opened;
  const id = store(index);
  soften(index, [id], 100);
  const confirmedNo = index.clears.newest;
  expect(confirm(index, id, confirmedNo)).toBe("stored");
  while (index.step());
  expect([index.fresh.has(id), noted(dir.path)]).toEqual([true, []]);
  // By which the proof of the clear knows that it is fresh with reason; one that comes late takes nothing from that.
  expect(index.entries.base(id)?.confirmedNo).toBe(confirmedNo);
  index.record({ ...scope, clearId: "other", seq: 0, patterns: ["path:other"], isSoft: true });
  expect(confirm(index, id, index.clears.newest)).toBe("stored");
  expect(confirm(index, id, confirmedNo)).toBe("stored");
  expect(index.entries.base(id)?.confirmedNo).toBe(confirmedNo + 1);
});

test("what workers see changes in an order in which nothing is fresh that is not, and nothing is stale that nobody tells of", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const { index, header } = opened;
  const seen: unknown[] = [];
  const { bits, fresh } = index;
  const [set, take, move] = [
    bits.set.bind(bits),
    fresh.take.bind(fresh),
    header.moveKeyMark.bind(header),
  ];
  vi.spyOn(bits, "set").mockImplementation((ids) => {
    seen.push(["servable", ids.every((id) => fresh.has(id))]);
    set(ids);
  });
  vi.spyOn(fresh, "take").mockImplementation((ids) => {
    seen.push(["stale", header.softSinceS]);
    return take(ids);
  });
  const id = store(index);
  soften(index, [id], 100);
  vi.spyOn(header, "moveKeyMark").mockImplementation((place) => {
    seen.push(["changed", fresh.has(id)]);
    move(place);
  });
  confirm(index, id, index.clears.newest);
  expect(seen).toEqual([
    ["servable", true],
    ["stale", 100],
    ["changed", true],
  ]);
});

test("what goes is no longer noted", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const { index } = opened;
  const id = store(index);
  soften(index, [id], 100);
  while (index.step());
  expect(noted(dir.path)).toEqual([{ id, sinceS: 100 }]);
  store(index);
  expect(noted(dir.path)).toEqual([]);
});

test("what was replaced or removed before it is noted is not noted either", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const { index } = opened;
  const id = store(index);
  soften(index, [id], 100);
  expect(store(index)).toBeGreaterThan(id);
  while (index.step());
  // Nothing would ever take it out.
  expect(noted(dir.path)).toEqual([]);
});

test("a clear has ended when all of its entries are noted, however many steps that takes", () => {
  let elapsedMs = 0;
  const steps: number[] = [];
  const finished: number[] = [];
  const softenings = new Softenings({
    entries: { soften: (ids) => void steps.push(ids.length) },
    clears: {
      finish: (clearNo, removed, goneMs) => {
        finished.push(clearNo);
        return { removed, blockedInFlight: 0, goneMs, verified: null, left: 0 };
      },
    },
    fresh: { has: () => false },
    clock: { elapsedMs: () => (elapsedMs += 30) },
    header: { softSinceS: 0 },
    commit: (action) => action(),
  });
  softenings.add(
    1,
    Float64Array.from({ length: 4_500 }, (_, id) => id),
    100,
  );
  softenings.step();
  expect(finished).toEqual([]);
  while (softenings.count > 0) softenings.step();
  expect([finished, steps]).toEqual([[1], [2_000, 2_000, 500]]);
});

test("a response that is older by its date is stored over what is stale, and not over what is stored in the same turn", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const { index } = opened;
  const dated = (second: number): Partial<NewEntry["meta"]> => ({
    sourceNo: index.clears.newest,
    headers: [["Date", `Tue, 14 Nov 2023 22:13:${second} GMT`]],
  });
  const id = store(index, dated(20));
  expect(index.write([commitOf(dated(19))])).toEqual([{ kind: "blocked" }]);
  soften(index, [id], 100);
  expect(index.write([commitOf(dated(30)), commitOf(dated(29))])).toMatchObject([
    { kind: "stored" },
    { kind: "blocked" },
  ]);
  const [held] = index.entries.place({ key, meta: metaOf() }).held;
  soften(index, [held?.id ?? 0], 100);
  expect(index.write([commitOf(dated(10))])).toMatchObject([{ kind: "stored" }]);
});

test("to a confirmation with other words clears count since its source was read, soft ones since it was asked for", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const { index } = opened;
  const words = 'mime:"image/png"';
  const [soft, hard] = [store(index), store(index, {}, "/hard")];
  soften(index, [], 100, words);
  expect(confirm(index, soft, index.clears.newest, "image/png")).toBe("stored");
  const clearNo = index.record({ ...scope, clearId: "hard", seq: 0, patterns: [words] });
  index.apply(clearNo, 0, { ids: new Float64Array(), widened: false, invisibleMs: 0 });
  expect(confirm(index, hard, index.clears.newest, "image/png")).toBe("blocked");
  expect(index.bits.has(hard)).toBe(false);
});

test("it is so after a restart, too", async () => {
  using dir = tempDir();
  const first = await openIndexIn(dir.path);
  const id = store(first.index);
  soften(first.index, [], 100, 'mime:"image/png"');
  const { opening } = first;
  await first[Symbol.asyncDispose]();
  await using second = await openIndexIn(dir.path, { opening });
  const { index } = second;
  expect(confirm(index, id, index.clears.newest, "image/png")).toBe("stored");
});

test("a confirmation that was asked for before a clear that is no longer known changes nothing", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const { index } = opened;
  const id = store(index);
  const before = index.clears.newest;
  soften(index, [id], 100);
  // So long that all before it are forgotten with it.
  const patterns = [`path:${"x".repeat(16_777_217)}`];
  const clearNo = index.record({ ...scope, clearId: "long", seq: 0, patterns, isSoft: true });
  index.apply(clearNo, 0, {
    ids: new Float64Array(),
    widened: false,
    invisibleMs: 0,
    softSinceS: 1,
  });
  expect(confirm(index, id, before)).toBe("blocked");
  expect(index.fresh.has(id)).toBe(false);
  expect(confirm(index, id, clearNo)).toBe("stored");
});

test("what was not noted yet is stale after a restart, since then, and is noted then", async () => {
  using dir = tempDir();
  const first = await openIndexIn(dir.path);
  const [id, other] = [store(first.index), store(first.index, {}, "/other")];
  soften(first.index, [id], 100);
  await first[Symbol.asyncDispose]();
  await using second = await openIndexIn(dir.path, { opening: first.opening });
  const { index, header } = second;
  expect([index.fresh.has(id), index.fresh.has(other)]).toEqual([false, true]);
  expect(header.softSinceS).toBe(100);
  while (index.step());
  expect([noted(dir.path), header.softSinceS]).toEqual([[{ id, sinceS: 100 }], 0]);
  expect([index.bits.has(id), index.entries.count]).toEqual([true, 2]);
});

test("who waits for a soft clear is told when everything goes with the file, and refused when the index is closed", async () => {
  using dir = tempDir();
  const opened = await openIndexIn(dir.path);
  const { index } = opened;
  soften(index, [store(index)], 100);
  const clearNo = index.clears.newest;
  expect(index.unfinishedClears).toBe(1);
  const ended = index.gone(clearNo);
  expect(ended).toBeInstanceOf(Promise);
  const anew = await opened.makeAnew();
  expect(await ended).toMatchObject({ removed: 0, verified: true, left: 0 });

  soften(anew, [store(anew)], 100);
  const broken = anew.gone(anew.clears.newest);
  await opened[Symbol.asyncDispose]();
  await expect(broken).rejects.toMatchObject({ code: "INDEX_BROKEN" });
});

test("a coded body is as stale as what it was made of, whoever is asked, noted or not yet", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const { index } = opened;
  const id = store(index);
  const body = { kind: "inline", bytes: Buffer.alloc(10) } as const;
  const [coded] = index.write([
    { kind: "variant", baseId: id, key, form: "br", body, size: body.bytes.length },
  ]);
  expect(coded?.kind).toBe("stored");
  const since = (): readonly (number | null)[] => {
    using lookups = new Lookups(dir.path, index.incarnation);
    using guard = new Guard();
    const [known] = explain({ index, lookups, guard }, [key]).keys;
    return known?.entries.map(({ softenedS }) => softenedS) ?? [];
  };
  expect(since()).toEqual([null, null]);
  soften(index, [id], 100);
  expect(since()).toEqual([100, 100]); // By the shared word.
  while (index.step());
  soften(index, [], 50);
  expect(since()).toEqual([100, 100]); // By the table, whatever else is in force.
});
