// A version on trial: what fails is rolled back, told to central and not tried again; what passes stays.

import { expect, test } from "vitest";
import type { Repairs } from "../../../src/agent/steering/repairs.ts";
import { Trials } from "../../../src/agent/steering/trials.ts";
import { silentLog } from "../../../src/base/log.ts";
import { encodeManifestTable } from "../../../src/core/serving/manifest-table.ts";
import type { Probe } from "../../../src/core/serving/plan-probes.ts";
import { until } from "../../support/until.ts";
import { Disk, epoch } from "./disk.ts";
import { activated } from "./entries.ts";
import { digestOf } from "./fake-sets.ts";
import { corrections, domain, failing, inForce, never, rigWith } from "./release-scene.ts";
import { Rig } from "./rig.ts";

/** A trial of a.example whose waits are ended by hand. */
function trialsOf(
  rig: Rig,
  mend: Repairs["mend"] = async () => "given-up",
): { readonly trials: Trials; readonly round: () => void } {
  const waiting: (() => void)[] = [];
  const trials = new Trials({
    serving: rig.serving,
    activations: rig.ports.activations,
    books: rig.books,
    documents: rig.documents,
    pool: rig.pool,
    watch: rig.releases,
    repairs: { mend },
    trialMs: 30_000,
    now: () => new Date(rig.nowMs),
    log: silentLog(),
    stop: never,
    wait: async (_, stop) => {
      if (stop.aborted) return false;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push(resolve);
      stop.addEventListener("abort", () => resolve(), { once: true });
      await promise;
      return !stop.aborted;
    },
  });
  return { trials, round: () => waiting.shift()?.() };
}

test("a version that fails on trial makes room for the one before, and central is told", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two", "three");
  await using stack = new AsyncDisposableStack();
  const { trials, round } = trialsOf(rig);
  stack.use(trials);
  let looks = 0;
  rig.answer = () => (looks++, undefined);
  trials.begin(domain, digestOf("three"));
  expect(trials.until(domain)).toBe("1970-01-01T00:00:30.000Z");
  await until("it was looked at", () => looks === 1);
  failing(rig, "three");
  await until("it is rolled back", () => (round(), inForce(rig) === digestOf("two")));
  await until("the trial is over", () => trials.until(domain) === undefined);
  const { quarantined, pin, releases } = rig.books.of(domain);
  expect(quarantined).toMatchObject([
    { viewset_name: "three", reason: "a.example /: EIO", entry: { epoch, seq: 3 } },
  ]);
  expect(pin).toMatchObject({ viewset_name: "two", reason: "trial" });
  expect(releases.find(({ viewset_name: name }) => name === "three")?.outcome).toBe(
    "rolled back: a.example /: EIO",
  );
  const serving = { manifest: digestOf("two"), viewset_id: 7, viewset_name: "two" };
  const detail = { reason: "a.example /: EIO", code: "VIEWSET_PROBE_FAILED", serving };
  expect(corrections(disk)).toEqual([[3, "failed", { ...detail, correction: 1 }]]);
  expect(rig.health.list()).toMatchObject([{ code: "viewset_quarantined", severity: "error" }]);
  // After a restart it is the same, and central's wish is answered at once.
  const next = await new Rig(disk).boot();
  expect(inForce(next)).toBe(digestOf("two"));
  const outcome = await next.apply("viewset.activated", activated(domain, "three"), 4);
  expect(outcome).toMatchObject({ phase: "refused", detail: { code: "VIEWSET_QUARANTINED" } });
});

test("with nothing to go back to it stays, and central is told that it fails", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  await using stack = new AsyncDisposableStack();
  const { trials, round } = trialsOf(rig);
  stack.use(trials);
  rig.answer = () => ({ kind: "failed", reason: "EIO" });
  trials.begin(domain, digestOf("one"));
  await until("it is told", () => corrections(disk).length === 1);
  expect(corrections(disk)).toMatchObject([[1, "failed", { code: "VIEWSET_PROBE_FAILED" }]]);
  expect(inForce(rig)).toBe(digestOf("one"));
  expect(rig.books.of(domain).quarantined).toEqual([]);
  expect(rig.health.list()).toMatchObject([{ code: "viewset_failing" }]);
  // What passes a later trial fails no more.
  await until("the trial is over", () => trials.until(domain) === undefined);
  rig.answer = () => undefined;
  trials.begin(domain, digestOf("one"));
  await until("the trial is over", () => (round(), trials.until(domain) === undefined));
  expect(rig.health.list()).toEqual([]);
});

test("a trial ends with the next version, with a rollback, and when its time is over", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  await using stack = new AsyncDisposableStack();
  const { trials, round } = trialsOf(rig);
  stack.use(trials);
  trials.begin(domain, digestOf("two"));
  trials.begin(domain, digestOf("two"));
  await rig.ports.activations.rollBack(domain, "one", never);
  rig.answer = () => ({ kind: "failed", reason: "EIO" });
  await until("the trial is over", () => (round(), trials.until(domain) === undefined));
  expect(inForce(rig)).toBe(digestOf("one"));
  expect(rig.books.of(domain).quarantined).toEqual([]);

  rig.answer = () => undefined;
  await rig.apply("viewset.activated", activated(domain, "three"), 3);
  let rounds = 0;
  const count = (probe: Probe): undefined => void (probe.path === null && rounds++);
  rig.answer = count;
  trials.begin(domain, digestOf("three"));
  await until("the trial is over", () => (round(), trials.until(domain) === undefined));
  expect(rounds).toBe(7);
  expect(rig.health.list()).toEqual([]);
});

test("a trial that a restart cut short goes on; one that is over does not, nor one of a pinned version", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  await using stack = new AsyncDisposableStack();
  const { trials } = trialsOf(rig);
  stack.use(trials);
  // What is missing on this disk is fetched again: no trial is about that.
  trials.resume([domain]);
  expect(trials.until(domain)).toBeUndefined();
  trials.resume();
  expect(trials.until(domain)).toBeDefined();
  const later = trialsOf(rig);
  stack.use(later.trials);
  rig.nowMs = 30_000;
  later.trials.resume();
  expect(later.trials.until(domain)).toBeUndefined();
  await rig.ports.activations.rollBack(domain, "one", never);
  later.trials.resume();
  expect(later.trials.until(domain)).toBeUndefined();
});

/** Version two has an index that this disk damages; how often it was fetched again. */
async function damagedOnTrial(disk: Disk, { timesDamaged }: { readonly timesDamaged: number }) {
  const rig = await rigWith(disk, "one");
  const page = { path: "index.html", sha256: digestOf("page"), size: 4, mime: "text/html" };
  rig.tables.set(digestOf("two"), encodeManifestTable([page]));
  const right = { kind: "file", digest: page.sha256, size: page.size } as const;
  rig.answer = () => (rig.staged?.domains[0]?.manifest === digestOf("two") ? right : undefined);
  await rig.apply("viewset.activated", activated(domain, "two"), 2);
  const mended: unknown[] = [];
  rig.answer = () => {
    if (rig.staged?.domains[0]?.manifest !== digestOf("two")) return undefined;
    return mended.length < timesDamaged ? { kind: "damaged" } : right;
  };
  const { trials, round } = trialsOf(rig, async (...damage) => {
    mended.push(damage);
    return "whole";
  });
  trials.begin(domain, digestOf("two"));
  await until("the trial is over", () => (round(), trials.until(domain) === undefined));
  return { rig, trials, mended };
}

test("what this disk damages during a trial is fetched again, and is no fault of the version", async () => {
  using disk = new Disk();
  const { rig, trials, mended } = await damagedOnTrial(disk, { timesDamaged: 1 });
  await using _ = trials;
  expect(inForce(rig)).toBe(digestOf("two"));
  expect(rig.books.of(domain).quarantined).toEqual([]);
  const reason = expect.stringContaining("is damaged on this disk");
  expect(mended).toEqual([[domain, digestOf("two"), [digestOf("page")], reason]]);
});

test("what is damaged again as soon as it was fetched again ends the trial", async () => {
  using disk = new Disk();
  const { rig, trials, mended } = await damagedOnTrial(disk, { timesDamaged: 2 });
  await using _ = trials;
  expect(mended.length).toBe(1);
  expect(inForce(rig)).toBe(digestOf("one"));
  expect(rig.books.of(domain).quarantined).toMatchObject([{ viewset_name: "two" }]);
});
