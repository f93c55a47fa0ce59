// What survives an end, and what must not: clean stop, SIGKILL, a thread that dies, power loss, an index that is out of date, damaged or gone.

import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { openSqlite } from "../../../../src/base/sqlite.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import {
  bodyOf,
  clear,
  inlineBodies,
  isHit,
  keyOf,
  openedRig,
  store,
  tamper,
  viewArrived,
  entryScript,
  killThread,
  memoryOf,
  mortalIndexer,
  objectFiles,
} from "../rig.ts";

const indexFile = (stateDir: string): string => join(stateDir, "cache/index.db");

/** Fills and clears in a process that is killed right after it has said what it proved; nothing is closed. */
async function fillAndKill(
  stateDir: string,
  count: number,
  pattern = "",
  bodyBytes = 0,
): Promise<void> {
  using scripts = tempDir();
  const script = entryScript(
    scripts.path,
    `import { clear, keyOf, openedRig, store } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, "../rig.ts")).href)};
     const [stateDir, count, pattern, bodyBytes] = process.argv.slice(2);
     const rig = await openedRig(stateDir);
     for (let i = 0; i < count; i += 100)
       await Promise.all(Array.from({ length: 100 }, (_, n) =>
         store(rig.cache, keyOf({ path: "/page/" + (i + n) }), ("body " + (i + n)).padEnd(Number(bodyBytes)))));
     if (pattern !== "") await clear(rig, [pattern], { clearId: "in-process", seq: 7 }).applied;
     process.send("done");`,
  );
  const child = fork(script, [stateDir, String(count), pattern, String(bodyBytes)], {
    execArgv: [],
  });
  await once(child, "message");
  child.kill("SIGKILL");
  await once(child, "exit");
}

test("after a clean stop everything is there but what was cleared, and clears go on counting", async () => {
  using dir = tempDir();
  let sourceNo: number;
  {
    await using rig = await openedRig(dir.path);
    await store(rig.cache, keyOf({ path: "/x" }), "x");
    await store(rig.cache, keyOf({ path: "/y" }), "y");
    await clear(rig, ["path:x"]).applied;
    sourceNo = rig.cache.sourceNo();
  }
  await using rig = await openedRig(dir.path);
  expect(rig.cache.sourceNo()).toBe(sourceNo);
  expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(false);
  expect(await bodyOf(rig.cache, keyOf({ path: "/y" }))).toBe("y");
  // What has its source from before the clear, like a 304 to an old entry, is still held against it.
  const inherited = { sourceNo: sourceNo - 1 };
  expect((await store(rig.cache, keyOf({ path: "/x" }), "x", inherited)).kind).toBe("blocked");
  expect((await store(rig.cache, keyOf({ path: "/z" }), "z", inherited)).kind).toBe("stored");
});

test("SIGKILL right after `applied`: nothing cleared comes back, the deletion is finished, the rest is still there", async () => {
  using dir = tempDir();
  await fillAndKill(dir.path, 3_000, "path:page NOT path:7");
  await using rig = await openedRig(dir.path);
  for (let i = 0; i < 3_000; i += 97)
    expect(isHit(rig.cache, keyOf({ path: `/page/${i}` }))).toBe(false);
  expect(await bodyOf(rig.cache, keyOf({ path: "/page/7" }))).toBe("body 7");
  const again = clear(rig, ["path:page"], { clearId: "in-process", seq: 7 });
  expect(await again.applied).toMatchObject({ matched: 2_999, widened: false });
  await again.gone;
  const { entries } = await rig.client.stats();
  expect(entries).toBe(2); // And the probe.
  expect(inlineBodies(dir.path)).toBe(entries);
});

test("an index that knows fewer clears than the agent has acknowledged starts empty", async () => {
  using dir = tempDir();
  await fillAndKill(dir.path, 100, "path:nothing");
  {
    await using rig = await openedRig(dir.path, { memory: memoryOf(dir.path, { clearSeq: 7 }) });
    expect(isHit(rig.cache, keyOf({ path: "/page/1" }))).toBe(true);
  }
  await using rig = await openedRig(dir.path, { memory: memoryOf(dir.path, { clearSeq: 8 }) });
  expect(isHit(rig.cache, keyOf({ path: "/page/1" }))).toBe(false);
  expect(rig.health.list()[0]?.text).toContain("up to journal entry 7");
});

test("an index that is gone is made anew, without the bodies of the old one", async () => {
  using dir = tempDir();
  await fillAndKill(dir.path, 100, "", 40_000);
  expect(objectFiles(dir.path).length).toBe(100);
  for (const suffix of ["", "-wal", "-shm"]) rmSync(indexFile(dir.path) + suffix, { force: true });
  await using rig = await openedRig(dir.path);
  expect(isHit(rig.cache, keyOf({ path: "/page/1" }))).toBe(false);
  await until("the old bodies are swept", () => objectFiles(dir.path).length === 0);
});

test.each([
  { what: "noise", damage: (path: string) => writeFileSync(path, "noise ".repeat(10_000)) },
  { what: "cut short", damage: (path: string) => truncateSync(path, 5_000) },
])("an index file that is $what is set aside, and the cache starts empty", async ({ damage }) => {
  using dir = tempDir();
  {
    await using rig = await openedRig(dir.path);
    await store(rig.cache, keyOf({ path: "/x" }));
  }
  damage(indexFile(dir.path));
  await using rig = await openedRig(dir.path);
  expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(false);
  expect(existsSync(`${indexFile(dir.path)}.corrupt-1`)).toBe(true);
  expect(rig.health.list().map(({ code }) => code)).toEqual(["cache_dropped"]);
});

test("after a boot of the host without a clean stop files are used only when they are what was written", async () => {
  using dir = tempDir();
  await fillAndKill(dir.path, 100, "", 40_000);
  tamper(dir.path, "UPDATE state SET boot_id = 'another'");
  await using rig = await openedRig(dir.path, { memoryMax: 0 });
  const page = (i: number): ReturnType<typeof keyOf> => keyOf({ path: `/page/${i}` });
  const [torn, whole] = [rig.cache.find(page(1))[0], rig.cache.find(page(2))[0]];
  const db = openSqlite(indexFile(dir.path), { sync: "normal", readonly: true });
  const row = db.prepare<[number], { object: string; is_verified: number }>(
    "SELECT object, is_verified FROM entry WHERE id = ?",
  );
  const name = row.get(torn?.id ?? 0)?.object ?? "";
  // As long as it was: only its digest tells.
  writeFileSync(
    objectFiles(dir.path).find((path) => path.endsWith(name)) ?? "",
    Buffer.alloc(40_000),
  );
  expect(await bodyOf(rig.cache, page(1))).toBe(undefined);
  await until("the torn one is dropped", () => !isHit(rig.cache, page(1)));
  expect(await bodyOf(rig.cache, page(2))).toBe("body 2".padEnd(40_000));
  await until("it is verified once", () => row.get(whole?.id ?? 0)?.is_verified === 1);
  db.close();
  // What is stored after the boot is as it was written.
  expect((await store(rig.cache, keyOf({ path: "/new" }), "n".repeat(40_000))).kind).toBe("stored");
  expect((await bodyOf(rig.cache, keyOf({ path: "/new" })))?.length).toBe(40_000);
});

test("an index of another shape is made anew", async () => {
  using dir = tempDir();
  await fillAndKill(dir.path, 100);
  tamper(dir.path, "PRAGMA user_version = 1");
  await using rig = await openedRig(dir.path);
  expect(isHit(rig.cache, keyOf({ path: "/page/1" }))).toBe(false);
  expect(rig.health.list()[0]?.text).toContain("shape 1");
  expect(existsSync(`${indexFile(dir.path)}.corrupt-1`)).toBe(false);
});

test("a text index that does not cover the entries is rebuilt from them", async () => {
  using dir = tempDir();
  await fillAndKill(dir.path, 100);
  tamper(
    dir.path,
    "DELETE FROM entry_text WHERE rowid IN (SELECT id FROM entry WHERE path = '/page/1')",
  );
  await using rig = await openedRig(dir.path);
  expect(isHit(rig.cache, keyOf({ path: "/page/1" }))).toBe(true);
  expect(await clear(rig, ['path:^"page 1 xend"']).applied).toMatchObject({ matched: 1 });
  expect(isHit(rig.cache, keyOf({ path: "/page/1" }))).toBe(false);
  expect(await rig.client.check()).toEqual({ ok: true, problems: [] });
});

test("a clear that was recorded and not applied is given again", async () => {
  using dir = tempDir();
  await fillAndKill(dir.path, 100);
  tamper(
    dir.path,
    `INSERT INTO clear (clear_no, clear_id, seq, domain, patterns, phase) VALUES (99, 'half', 1, 'a.test', '["path:page"]', 0)`,
  );
  tamper(dir.path, "UPDATE state SET clear_no = 99");
  await using rig = await openedRig(dir.path);
  expect(rig.cache.sourceNo()).toBe(99);
  expect(await clear(rig, ["path:page"], { clearId: "half", seq: 1 }).applied).toMatchObject({
    matched: 100,
  });
  expect(rig.cache.sourceNo()).toBe(100);
});

test("an index thread that dies is replaced: meanwhile nothing is servable, afterwards nothing cleared or outdated is", async () => {
  using dir = tempDir();
  using scripts = tempDir();
  const entry = mortalIndexer(scripts.path);
  await using rig = await openedRig(dir.path, { entry });
  const keys = {
    kept: keyOf({ path: "/kept" }),
    cleared: keyOf({ path: "/x" }),
    form: keyOf({ path: "/form" }),
  };
  const kept = await store(rig.cache, keys.kept);
  await store(rig.cache, keys.cleared);
  const sourceNo = rig.cache.sourceNo();
  await clear(rig, ["path:x"]).applied;
  await store(rig.cache, keys.form);
  const before = rig.cache.sourceNo();
  // The thread that would settle it is the one that dies.
  rig.health.raise("cache_not_stored", "warning", "responses cannot be stored", "");

  killThread(dir.path);
  await until(
    "nothing is servable",
    () => kept.kind === "stored" && !rig.cache.servable({ id: kept.id, baseId: null }),
  );
  expect((await store(rig.cache, keys.kept)).kind).toBe("failed");
  // Asked while there is no thread: answered by the next.
  const invalidated = rig.cache.invalidate(keys.form);
  const { applied } = clear(rig, ["path:nothing"]);
  expect(await applied).toMatchObject({ matched: 0 });
  await invalidated;
  expect(isHit(rig.cache, keys.form)).toBe(false);
  await viewArrived(rig);
  expect(isHit(rig.cache, keys.kept)).toBe(true);
  expect(isHit(rig.cache, keys.cleared)).toBe(false);
  expect(rig.cache.sourceNo()).toBeGreaterThan(before);
  for (const path of ["/x", "/form", "/other"])
    expect((await store(rig.cache, keyOf({ path }), "old", { sourceNo })).kind).toBe("blocked");
  await until("the warning is settled", () => rig.health.list().length === 0);
});
