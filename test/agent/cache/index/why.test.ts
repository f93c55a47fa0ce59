// Why an URL is cached or is not any more: what went, by what, and which clears do not match it.

import { expect, test } from "vitest";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { clear, keyOf, openedRig, store, tamper, type Rig } from "../rig.ts";

async function whyOf({ client }: Rig, path: string) {
  const [known] = (await client.why([keyOf({ path })])).keys;
  if (known === undefined) throw new Error("one key was asked for");
  return known;
}

const reasons = ({ departures }: Awaited<ReturnType<typeof whyOf>>): string[] =>
  departures.map(({ reason }) => reason);

test("what is cached is told with its variants; what was cleared with the clear; what a clear does not match as well", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  await store(rig.cache, keyOf({ path: "/x" }), "one", { vary: { "accept-language": "de" } });
  await store(rig.cache, keyOf({ path: "/x" }), "two", { vary: { "accept-language": "en" } });
  expect((await whyOf(rig, "/x")).entries).toMatchObject([
    { servable: true, size: 3, vary: { "accept-language": "en" } },
    { servable: true, size: 3, vary: { "accept-language": "de" } },
  ]);
  expect(await whyOf(rig, "/never")).toMatchObject({ entries: [], departures: [], mime: null });
  const orders = [
    clear(rig, ["path:y", "mime:css"], { clearId: "no-match", seq: 5 }),
    clear(rig, ["path:x"], { clearId: "of-another-host", host: "shop.a.test" }),
    clear(rig, ["path:z", "path:x"], { clearId: "local-1" }),
  ];
  for (const { gone } of orders) await gone;
  const known = await whyOf(rig, "/x");
  expect(known.entries).toEqual([]);
  const by = { clearId: "local-1", seq: 0, patterns: ["path:z", "path:x"], matched: 2 };
  expect(known.departures).toMatchObject([
    { reason: "cleared", mime: "text/html", clear: by },
    { reason: "cleared", mime: "text/html", clear: by },
  ]);
  expect(known.clears).toMatchObject([
    { clearId: "local-1", matches: true },
    { clearId: "no-match", seq: 5, matches: false, domain: "a.test", host: null },
  ]);
});

test("a clear by tag matches what has or had the tag", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  await store(rig.cache, keyOf({ path: "/tagged" }), "one", { tags: "productz2d7" });
  await clear(rig, ["tag:productz2d7"], { clearId: "soft", isSoft: true }).gone;
  const stale = await whyOf(rig, "/tagged");
  expect(stale.entries).toMatchObject([{ servable: true, softenedS: expect.any(Number) }]);
  expect(stale.clears).toMatchObject([{ clearId: "soft", isSoft: true, matches: true }]);
  await clear(rig, ["tag:productz2d7"], { clearId: "hard" }).gone;
  const gone = await whyOf(rig, "/tagged");
  expect(gone.departures).toMatchObject([{ reason: "cleared", clear: { clearId: "hard" } }]);
  expect(gone.clears[0]).toMatchObject({ clearId: "hard", matches: true });
});

test("what went otherwise is told as such", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path, { diskMax: 400_000, memoryMax: 0 });
  const body = "x".repeat(10_000);
  await store(rig.cache, keyOf({ path: "/replaced" }));
  await store(rig.cache, keyOf({ path: "/replaced" }), "newer");
  expect(reasons(await whyOf(rig, "/replaced"))).toEqual(["replaced"]);
  await store(rig.cache, keyOf({ path: "/form" }));
  await rig.cache.invalidate(keyOf({ path: "/form" }));
  expect(reasons(await whyOf(rig, "/form"))).toEqual(["invalidated"]);
  await store(rig.cache, keyOf({ path: "/lost" }), "x".repeat(40_000));
  const [lost] = rig.cache.find(keyOf({ path: "/lost" }));
  tamper(dir.path, `UPDATE entry SET object = 'aa/missing' WHERE id = ${lost?.id}`);
  expect(lost && (await rig.cache.open(lost))).toBe(undefined);
  await until("it is dropped", async () => reasons(await whyOf(rig, "/lost")).join() === "lost");
  for (let no = 0; no < 60; no++) await store(rig.cache, keyOf({ path: `/${no}` }), body);
  await until("the first is evicted", async () => {
    return reasons(await whyOf(rig, "/0")).join() === "evicted";
  });
});

test("what is remembered survives a restart; when the index was made anew is told", async () => {
  using dir = tempDir();
  {
    await using rig = await openedRig(dir.path);
    await store(rig.cache, keyOf({ path: "/x" }));
    await clear(rig, ["path:x"]).gone;
  }
  {
    await using rig = await openedRig(dir.path);
    expect(reasons(await whyOf(rig, "/x"))).toEqual(["cleared"]);
    expect((await rig.client.why([])).anew).toBe(null);
  }
  tamper(dir.path, "UPDATE opening SET id = 'a copy', before = ''");
  await using rig = await openedRig(dir.path);
  expect(await whyOf(rig, "/x")).toMatchObject({ departures: [], clears: [] });
  expect((await rig.client.why([])).anew).toMatchObject({
    reason: expect.stringContaining("older copy"),
    atS: expect.closeTo(Date.now() / 1_000, -2),
  });
});

test("a search takes several patterns and one host; over budget it says so and counts nothing", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  for (const path of ["/x/1", "/x/2", "/y"]) await store(rig.cache, keyOf({ path }));
  await store(rig.cache, keyOf({ path: "/x/3", host: "shop.a.test" }));
  const ask = (host: string | null, patterns: readonly string[], budgetMs?: number) =>
    rig.client.search({
      scope: { domain: "a.test", host },
      patterns,
      limit: 2,
      ...(budgetMs !== undefined && { budgetMs }),
    });
  const found = await ask(null, ["path:x", "path:^y"]);
  expect(found.matched).toBe(4);
  expect(found.samples.map(({ path }) => path)).toEqual(["/x/3", "/y"]);
  expect(await ask("shop.a.test", ["path:x"])).toMatchObject({ matched: 1 });
  expect(await ask(null, ["path:x"], 0)).toEqual({ matched: 0, samples: [], overBudget: true });
  expect((await rig.client.stats()).entries).toBe(5); // And the probe.
});
