// The proof of a clear: the predicate is asked again after the deletion, what it finds is dropped and told; what cannot be proved is not said to be.

import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { Registry } from "../../../../src/base/metrics.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import {
  clear,
  entryScript,
  isHit,
  keyOf,
  memoryOf,
  openedRig,
  store,
  tamper,
  viewArrived,
  type Rig,
} from "../rig.ts";

const matchJob = pathToFileURL(
  join(import.meta.dirname, "../../../../src/agent/cache/clearing/match-job.ts"),
).href;

/** The matcher with a hand in it: `answer` may return undefined for the honest one. */
function matcherWith(directory: string, answer: string): URL {
  return entryScript(
    directory,
    `import { Matcher } from ${JSON.stringify(matchJob)};
     const matcher = new Matcher();
     const answer = ${answer};
     process.on("message", (job) => process.send(answer(job) ?? matcher.run(job)));
     process.once("disconnect", () => process.exit(0));`,
  );
}

const warnings = ({ health }: Rig): string[] => health.list().map(({ code }) => code);

async function metric(registry: Registry, name: string, labels = {}): Promise<number> {
  const found = (await registry.getMetricsAsJSON()).find((one) => one.name === name);
  const values = found?.values ?? [];
  return (
    values.find((one) => Object.entries(labels).every(([k, v]) => Object(one.labels)[k] === v))
      ?.value ?? 0
  );
}

test("a clear is verified: with what is fetched again after it, and also when everything of a domain went", async () => {
  using dir = tempDir();
  const registry = new Registry();
  await using rig = await openedRig(dir.path, { registry });
  const again = keyOf({ path: "/x/1" });
  for (let no = 0; no < 600; no++) await store(rig.cache, keyOf({ path: `/x/${no}` }));
  const some = clear(rig, ["path:x NOT path:7"]);
  await some.applied;
  await store(rig.cache, again);
  expect(await some.gone).toMatchObject({ removed: 599, verified: true, left: 0 });
  expect(isHit(rig.cache, again)).toBe(true);
  const all = clear(rig, ["kind:static OR kind:generated"]);
  expect(await all.gone).toMatchObject({ removed: 2, verified: true });
  expect(warnings(rig)).toEqual([]);
  const outcome = "accel_agent_cache_clear_verifications_total";
  await until("both are counted", async () => {
    return (await metric(registry, outcome, { outcome: "verified" })) === 2;
  });
});

test("what a soft clear left fresh is found, dropped and told", async () => {
  using dir = tempDir();
  using scripts = tempDir();
  const matcherEntry = matcherWith(
    scripts.path,
    `(job) => job.kind === "match" ? { kind: "matched", ids: { first: 0, words: new Uint32Array() } } : undefined`,
  );
  await using rig = await openedRig(dir.path, { matcherEntry });
  await store(rig.cache, keyOf({ path: "/x" }));
  const { applied, gone } = clear(rig, ["path:x"], { clearId: "blind", isSoft: true });
  expect(await applied).toMatchObject({ matched: 0 });
  expect(await gone).toMatchObject({ removed: 0, verified: false, left: 1 });
  expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(false);
  expect(warnings(rig)).toContain("clear_left_entries");
});

test("what a clear left behind is found, dropped and told", async () => {
  using dir = tempDir();
  using scripts = tempDir();
  // Blind for every second match of a clear; the proof asks for entries older than the clear.
  const matcherEntry = matcherWith(
    scripts.path,
    `(job) => job.kind === "match" ? { kind: "matched", ids: { first: 0, words: new Uint32Array() } } : undefined`,
  );
  const registry = new Registry();
  await using rig = await openedRig(dir.path, { matcherEntry, registry });
  await store(rig.cache, keyOf({ path: "/x" }));
  await store(rig.cache, keyOf({ path: "/y" }));
  const { applied, gone } = clear(rig, ["path:x"], { clearId: "blind" });
  expect(await applied).toMatchObject({ matched: 0 });
  expect(await gone).toMatchObject({ removed: 0, verified: false, left: 1 });
  expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(false);
  expect(isHit(rig.cache, keyOf({ path: "/y" }))).toBe(true);
  expect(warnings(rig)).toContain("clear_left_entries");
  const outcome = "accel_agent_cache_clear_verifications_total";
  await until("it is counted", async () => {
    return (await metric(registry, outcome, { outcome: "left" })) === 1;
  });
  // Who asks again is told the same.
  expect(await clear(rig, ["path:x"], { clearId: "blind" }).gone).toMatchObject({ left: 1 });
});

test("a proof that cannot be had is not given, and the clear is in force all the same", async () => {
  using dir = tempDir();
  using scripts = tempDir();
  const matcherEntry = matcherWith(
    scripts.path,
    `(job) => job.kind === "match" ? undefined : process.exit(9)`,
  );
  await using rig = await openedRig(dir.path, { matcherEntry });
  await store(rig.cache, keyOf({ path: "/x" }));
  const { applied, gone } = clear(rig, ["path:x"]);
  expect(await applied).toMatchObject({ matched: 1, widened: false });
  expect(await gone).toMatchObject({ removed: 1, verified: false, left: 0 });
  expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(false);
  expect(warnings(rig)).toContain("clear_unverified");
});

test("a commit that fails under a clear widens it to everything, durably", async () => {
  using dir = tempDir();
  const memory = memoryOf(dir.path);
  {
    await using rig = await openedRig(dir.path, { memory });
    await store(rig.cache, keyOf({ path: "/x" }));
    await store(rig.cache, keyOf({ path: "/y", domain: "b.test" }));
    tamper(
      dir.path,
      "CREATE TRIGGER full BEFORE UPDATE OF phase ON clear BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END",
    );
    const { applied, gone } = clear(rig, ["path:x"]);
    const { widened, clearNo } = await applied;
    expect(widened).toBe(true);
    expect(memory.read().clearNo).toBe(clearNo);
    expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(false);
    expect(await gone).toMatchObject({ verified: true });
    expect(warnings(rig)).toContain("cache_dropped");
    await viewArrived(rig);
    expect((await store(rig.cache, keyOf({ path: "/x" }))).kind).toBe("stored");
  }
  await using rig = await openedRig(dir.path, { memory });
  expect(isHit(rig.cache, keyOf({ path: "/y", domain: "b.test" }))).toBe(false);
  expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(true);
});

test("a clear given on this host counts only when agent.db knows its number; one of the journal has its receipt there", async () => {
  using dir = tempDir();
  const memory = memoryOf(dir.path);
  const state = { isFull: false };
  await using rig = await openedRig(dir.path, {
    memory: {
      read: () => memory.read(),
      note: (changes) => {
        if (state.isFull) throw new Error("database or disk is full");
        memory.note(changes);
      },
    },
  });
  await store(rig.cache, keyOf({ path: "/x" }));
  await store(rig.cache, keyOf({ path: "/y" }));
  state.isFull = true;
  const own = clear(rig, ["path:x"], { clearId: "own" });
  await expect(own.applied).rejects.toMatchObject({
    code: "DISK_FAILED",
    message: expect.stringContaining("in force"),
  });
  await expect(own.gone).rejects.toMatchObject({ code: "DISK_FAILED" });
  expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(false);
  const later = await clear(rig, ["path:y"], { seq: 4 }).applied;
  expect(later.matched).toBe(1);
  state.isFull = false;
  const { clearNo } = await clear(rig, ["path:x"], { clearId: "own" }).applied;
  // The number of the journal's clear is noted within a second, and covers this one.
  expect([clearNo, later.clearNo]).toContain(memory.read().clearNo);
});

const copies = [
  { what: "an earlier opening", rig: 2, reason: "another opening" },
  { what: "this opening, before a clear", rig: 1, reason: "was acknowledged" },
];
test.each(copies)(
  "a copy of index.db of $what that is put back is not served",
  async ({ rig: openings, reason }) => {
    using dir = tempDir();
    using aside = tempDir();
    const cache = join(dir.path, "cache");
    for (let opening = 1; opening <= openings; opening++) {
      await using rig = await openedRig(dir.path);
      await store(rig.cache, keyOf({ path: "/x" }));
      if (opening === 1) {
        cpSync(cache, aside.path, { recursive: true });
        await clear(rig, ["path:x"]).applied;
        await store(rig.cache, keyOf({ path: "/x" }));
      }
    }
    {
      await using rig = await openedRig(dir.path);
      expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(true); // What is its own is kept.
    }
    if (openings === 1) {
      // As if the process had been killed in the opening in which the copy was made.
      const { opening } = await openingOf(aside.path);
      memoryOf(dir.path).note({ opening });
    }
    rmSync(cache, { recursive: true });
    cpSync(aside.path, cache, { recursive: true });
    await using rig = await openedRig(dir.path);
    expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(false);
    expect(rig.health.list().find(({ code }) => code === "cache_dropped")?.text).toContain(reason);
  },
);

async function openingOf(cacheDirectory: string): Promise<{ opening: string }> {
  const { openSqlite } = await import("../../../../src/base/sqlite.ts");
  const db = openSqlite(join(cacheDirectory, "index.db"), { sync: "normal" });
  const opening = db.prepare<[], string>("SELECT id FROM opening").pluck().get() ?? "";
  db.close();
  return { opening };
}

test("an index of another store's journal, or one that agent.db does not know, starts empty; a missing one is told", async () => {
  using dir = tempDir();
  const filled = async (memory = memoryOf(dir.path)): Promise<boolean> => {
    await using rig = await openedRig(dir.path, { memory });
    const hit = isHit(rig.cache, keyOf({ path: "/x" }));
    await store(rig.cache, keyOf({ path: "/x" }));
    rig.client.setConfirmed();
    await rig.client.stats();
    return hit;
  };
  expect(await filled()).toBe(false);
  expect(await filled()).toBe(true);
  const epoch = "e".repeat(32);
  expect(await filled(memoryOf(dir.path, { epoch }))).toBe(false);
  expect(await filled(memoryOf(dir.path, { epoch }))).toBe(true);
  expect(await filled(memoryOf(dir.path, { epoch, opening: null }))).toBe(false);
  rmSync(join(dir.path, "cache"), { recursive: true });
  await using rig = await openedRig(dir.path, { memory: memoryOf(dir.path, { epoch }) });
  expect(
    rig.health
      .list()
      .map(({ text }) => text)
      .join(),
  ).toContain("index.db was missing");
});

test("the index of a state directory that was copied starts empty once, and says that it was copied", async () => {
  using dir = tempDir();
  const path = "/x";
  const moved = "this state directory is a copy";
  const epoch = "e".repeat(32);
  {
    await using rig = await openedRig(dir.path, { memory: memoryOf(dir.path, { epoch }) });
    await store(rig.cache, keyOf({ path }));
    rig.client.setConfirmed();
    await rig.client.stats();
  }
  {
    // The history went with the instance.
    await using rig = await openedRig(dir.path, {
      memory: memoryOf(dir.path, { epoch: null, moved }),
    });
    expect(isHit(rig.cache, keyOf({ path }))).toBe(false);
    expect(rig.health.list().map(({ code, text }) => `${code}: ${text}`)).toEqual([
      `cache_dropped: everything cached was dropped: ${moved}`,
    ]);
    expect((await rig.client.why([keyOf({ path })])).anew?.reason).toBe(moved);
    await store(rig.cache, keyOf({ path }));
  }
  await using rig = await openedRig(dir.path, { memory: memoryOf(dir.path, { epoch: null }) });
  expect(isHit(rig.cache, keyOf({ path }))).toBe(true);
});

test("an invalidation is remembered across a copy too, within a second", async () => {
  using dir = tempDir();
  const memory = memoryOf(dir.path);
  await using rig = await openedRig(dir.path, { memory });
  await store(rig.cache, keyOf({ path: "/form" }));
  await rig.cache.invalidate(keyOf({ path: "/form" }));
  const before = rig.cache.sourceNo();
  expect(before).toBeGreaterThan(0);
  await until("it is noted", () => memory.read().clearNo === before);
});

test("what an unlinked domain or host had cached stays gone, also after a restart and when it is linked again", async () => {
  using dir = tempDir();
  const keys = {
    domain: keyOf({ path: "/x" }),
    host: keyOf({ path: "/x", domain: "b.test", host: "shop.b.test" }),
    kept: keyOf({ path: "/x", domain: "b.test" }),
  };
  const memory = memoryOf(dir.path);
  {
    await using rig = await openedRig(dir.path, { memory });
    for (const key of Object.values(keys)) await store(rig.cache, key);
    const sourceNo = rig.cache.sourceNo();
    expect(await rig.client.dropDomain("a.test")).toEqual({ removed: 1 });
    expect(await rig.client.dropHost("shop.b.test")).toEqual({ removed: 1 });
    expect(memory.read().clearNo).toBe(rig.cache.sourceNo());
    // What was being fetched then is not stored.
    expect((await store(rig.cache, keys.domain, "old", { sourceNo })).kind).toBe("blocked");
  }
  await using rig = await openedRig(dir.path, { memory });
  const hits = Object.entries(keys).filter(([, key]) => isHit(rig.cache, key));
  expect(hits.map(([name]) => name)).toEqual(["kept"]);
});
