// What each journal entry does, in which order: durable and in force before the outcome, refused with the reason, the same when repeated.

import { expect, test } from "vitest";
import type { EntryOutcome } from "../../../src/agent/link/entry-outcome.ts";
import { AccelError } from "../../../src/core/faults.ts";
import type { JournalBody } from "../../../src/wire/journal.ts";
import {
  activated,
  botsChanged,
  cleared,
  domainsChanged,
  importing,
  classesSaid,
  policyChanged,
} from "./entries.ts";
import { digestOf, digestOfSet, FakeCentral } from "./fake-sets.ts";
import { Disk } from "./disk.ts";
import { badManifest, Rig } from "./rig.ts";

/** a.example with a sub-domain, b.example with an active viewset. */
async function linkedRig(disk: Disk, central?: FakeCentral): Promise<Rig> {
  const rig = await new Rig(disk, central).boot();
  await rig.apply(
    "domains.changed",
    domainsChanged({ "a.example": ["sub.a.example"], "b.example": [] }),
  );
  await rig.apply("viewset.activated", activated("b.example", "one"));
  rig.steps.length = 0;
  return rig;
}

test("an activation is prepared, staged, committed, flipped", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const outcome = await rig.apply("viewset.activated", activated("a.example", "two"));
  expect(outcome).toEqual({
    phase: "applied",
    detail: { manifest: digestOf("two"), viewset_id: 7 },
  });
  expect(rig.steps).toEqual(["prepare", "stage", "put viewset:a.example", "put done", "flip"]);
  expect(rig.served.domains.map(({ name, manifest }) => [name, manifest])).toEqual([
    ["a.example", digestOf("two")],
    ["b.example", digestOf("one")],
  ]);
});

test("a policy is staged, committed, flipped", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const outcome = await rig.apply("policy.changed", policyChanged("a.example", true));
  expect(outcome).toEqual({ phase: "applied", detail: { domains: 1 } });
  expect(rig.steps).toEqual(["stage", "put policy", "put done", "flip"]);
  expect(rig.served.domains[0]?.hosts[0]?.bots.unknownBotsCanAccess).toBe(true);
});

test("what a policy says of classes of bots comes into force with it, in one step", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const classesOf = (): readonly unknown[] =>
    rig.served.domains.flatMap(({ hosts }) => hosts.map(({ bots }) => bots.classes ?? null));
  const outcome = await rig.apply("policy.classes", classesSaid("a.example", { feed: true }));
  expect(outcome).toEqual({ phase: "applied", detail: { domains: 1 } });
  expect(rig.steps).toEqual(["put told_classes", "put done"]);
  expect(new Set(classesOf())).toEqual(new Set([null]));
  rig.steps.length = 0;
  await rig.apply("policy.changed", policyChanged("a.example", false));
  expect(rig.steps).toEqual(["stage", "put policy policy_classes", "put done", "flip"]);
  expect(classesOf()).toContainEqual({ feed: true });
  // What the next policy will say does not hold yet, be it after a restart.
  await rig.apply("policy.classes", classesSaid("a.example", { library: true }));
  const again = await new Rig(disk).boot();
  expect(again.served.domains[0]?.hosts[0]?.bots.classes).toEqual({ feed: true });
  await again.apply("policy.classes", { domains: [] });
  await again.apply("policy.changed", policyChanged("a.example", true));
  expect(again.served.domains[0]?.hosts[0]?.bots.classes).toBeUndefined();
});

const challenge = {
  host: "sub.a.example",
  token: "t-1",
  key_authorization: "t-1.key",
  until: "2031-01-01T00:00:00.000Z",
};

test("challenges are staged, committed, flipped; an end, and an unlinked domain, leave none", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const body = { domain: "a.example", challenges: [challenge] };
  const open = (): readonly number[] =>
    rig.served.domains.flatMap(({ hosts }) => hosts.map(({ challenges }) => challenges?.size ?? 0));
  expect(await rig.apply("challenges.changed", body)).toEqual({
    phase: "applied",
    detail: { domain: "a.example", challenges: 1 },
  });
  expect(rig.steps).toEqual(["stage", "put challenges:a.example", "put done", "flip"]);
  expect(open()).toEqual([0, 1, 0]);
  const restarted = await new Rig(disk).boot();
  expect(restarted.served.domains[0]?.hosts[1]?.challenges?.get("t-1")).toEqual({
    keyAuthorization: "t-1.key",
    untilMs: Date.parse(challenge.until),
  });
  // A start after their end leaves them out.
  const late = new Rig(disk);
  late.nowMs = Date.parse(challenge.until);
  await late.boot();
  expect(late.served.domains[0]?.hosts[1]?.challenges).toBeUndefined();
  await rig.apply("challenges.changed", { domain: "a.example", challenges: [] });
  expect(open()).toEqual([0, 0, 0]);
  await rig.apply("challenges.changed", body);
  await rig.apply("domains.changed", domainsChanged({ "b.example": [] }));
  await rig.apply("domains.changed", domainsChanged({ "a.example": ["sub.a.example"] }));
  expect(open()).toEqual([0, 0]);
  const refused = await rig.apply("challenges.changed", { ...body, domain: "c.example" });
  expect(refused.phase).toBe("refused");
});

test("what is unlinked is no longer served, then dropped, then forgotten", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  expect([...disk.cached].sort()).toEqual([
    "a.example of a.example",
    "b.example of b.example",
    "sub.a.example of a.example",
  ]);
  const body = domainsChanged({ "a.example": [], "c.example": [] });
  const outcome = await rig.apply("domains.changed", body);
  expect(outcome).toEqual({
    phase: "applied",
    detail: { domains: 2, dropped: ["b.example", "sub.a.example"] },
  });
  expect(rig.steps).toEqual([
    "stage",
    "flip",
    "drop b.example",
    "drop b.example done",
    "drop host sub.a.example",
    "drop host sub.a.example done",
    "keep sets",
    "put domains viewset:b.example=null",
    "put done",
    "look",
  ]);
  expect(rig.servedHosts()).toEqual(["a.example of a.example", "c.example of c.example"]);
  expect([...disk.cached].sort()).toEqual(["a.example of a.example", "c.example of c.example"]);
});

test("a sub-domain that becomes a domain of its own, or another's, loses what was cached", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const own = domainsChanged({ "a.example": [], "b.example": [], "sub.a.example": [] });
  const first = await rig.apply("domains.changed", own);
  expect(first.detail["dropped"]).toEqual(["sub.a.example"]);
  const others = domainsChanged({ "a.example": [], "b.example": ["sub.a.example"] });
  const second = await rig.apply("domains.changed", others);
  expect(second.detail["dropped"]).toEqual(["sub.a.example"]);
  expect([...disk.cached].sort()).toEqual([
    "a.example of a.example",
    "b.example of b.example",
    "sub.a.example of b.example",
  ]);
});

test("a clear is applied, later gone", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const { later, onAmended, ...outcome } = await rig.apply("cache.clear", cleared("c1", "path:a"));
  expect(outcome).toEqual({
    phase: "applied",
    detail: { clear_id: "c1", clear_no: 1, matched: 1, widened: false, invisible_ms: 1 },
  });
  expect(await later).toEqual({
    phase: "gone",
    detail: { clear_id: "c1", removed: 1, blocked_in_flight: 0, gone_ms: 2, verified: true },
  });
  const amended: unknown[] = [];
  onAmended?.((told) => amended.push(told));
  const late = { removed: 1, blockedInFlight: 3, goneMs: 2, verified: true, left: 0 };
  rig.lateClears.get("c1")?.(late);
  const { detail } = outcome;
  const more = { clear_id: "c1", removed: 1, blocked_in_flight: 3, gone_ms: 2, verified: true };
  expect(amended).toEqual([{ detail, later: { phase: "gone", detail: more } }]);
});

test("a delta is durable before it is published", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const body = botsChanged("a.example", 0, [{ bot: "x", range: "192.0.2.1" }]);
  const outcome = await rig.apply("bots.changed", body);
  expect(rig.steps).toEqual(["delta", "stage", "flip"]);
  expect(outcome).toEqual({
    phase: "applied",
    detail: {
      domain: "a.example",
      set: "bad",
      version: 1,
      count: 1,
      digest: body.digest,
      whole: false,
    },
  });
  expect(rig.served.domains[0]?.hosts.map(({ bots }) => bots.bad.length)).toEqual([1, 1]);
});

test("a mismatch fetches the whole set once, whatever else is waiting", async () => {
  using disk = new Disk();
  const central = new FakeCentral();
  const elements = [1, 2, 3].map((i) => ({ bot: "x", range: `192.0.2.${i}` }));
  central.sets.set("bad/a.example", { version: 9, elements });
  const rig = await linkedRig(disk, central);
  const outcomes: EntryOutcome[] = [];
  for (const from of [6, 7, 8])
    outcomes.push(await rig.apply("bots.changed", botsChanged("a.example", from, elements)));
  expect(outcomes.map(({ phase, detail }) => [phase, detail["version"], detail["whole"]])).toEqual([
    ["applied", 9, true],
    ["applied", 9, false],
    ["applied", 9, false],
  ]);
  expect(central.fetches).toBe(1);
  expect(rig.ports.sets.list()).toEqual([
    { host: "a.example", kind: "bad", version: 9, count: 3, digest: digestOfSet(elements) },
  ]);
});

test("an import tells what it uploaded", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  rig.locals.set("a.example", { viewsDir: "/srv/a", devlove: null });
  expect(await rig.apply("viewset.import", importing("a.example"))).toEqual({
    phase: "applied",
    detail: {
      import_id: "i1",
      manifest: digestOf("imported"),
      files: 3,
      bytes: 100,
      left_out: 0,
      left_out_names: [],
    },
  });
});

test("what cannot be done is refused with the reason and changes nothing", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const [before, served] = [disk.content(), rig.served];
  const refusals = [
    await rig.apply("viewset.activated", activated("z.example", "one")),
    await rig.apply("viewset.activated", { ...activated("a.example", "x"), manifest: badManifest }),
    await rig.apply("viewset.import", importing("z.example")),
    await rig.apply("viewset.import", importing("a.example")),
    await rig.apply("cache.clear", cleared("c2", "bad")),
  ];
  expect(refusals).toEqual([
    { phase: "refused", detail: { reason: "z.example is not linked to this deployment site" } },
    { phase: "refused", detail: { reason: "no such key", code: "VIEWSET_INVALID" } },
    { phase: "refused", detail: { reason: "z.example is not linked to this deployment site" } },
    { phase: "refused", detail: { reason: "no views_dir", code: "IMPORT_NO_SITE" } },
    { phase: "refused", detail: { reason: "no such column", code: "PATTERN_INVALID" } },
  ]);
  expect(rig.books.of("a.example").wish).toMatchObject({ manifest: badManifest });
  disk.db.put({ "wish:a.example": null });
  expect(disk.content()).toEqual(before);
  expect(rig.served).toBe(served);
});

test("a set that shrinks beyond reason is refused, the old one stays in force", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const many = Array.from({ length: 200 }, (_, i) => ({ bot: "x", range: `10.0.0.${i}` }));
  await rig.apply("bots.changed", botsChanged("a.example", 0, many));
  const body = {
    ...botsChanged("a.example", 1, []),
    removed: many,
    count: 0,
    digest: digestOfSet([]),
  };
  const outcome = await rig.apply("bots.changed", body);
  expect(outcome).toEqual({
    phase: "refused",
    detail: { reason: expect.stringContaining("from 200 to 0") },
  });
  expect(rig.ports.sets.list()[0]?.count).toBe(200);
});

test("faults that may pass are thrown, not receipted", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  rig.hold = async () => Promise.reject(new AccelError("CENTRAL_UNREACHABLE", "down"));
  const activation = rig.apply("viewset.activated", activated("a.example", "two"));
  await expect(activation).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
  const clear = rig.apply("cache.clear", cleared("c3", "path:a"));
  await expect(clear).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
});

test("where the commit fails nothing is in force", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const before = disk.content();
  rig.onStep = (_, name) => {
    if (name.startsWith("put ")) throw new Error("disk full");
  };
  await expect(rig.apply("policy.changed", policyChanged("a.example", true))).rejects.toThrow(
    "disk full",
  );
  await expect(rig.apply("viewset.activated", activated("a.example", "two"))).rejects.toThrow(
    "disk full",
  );
  rig.onStep = () => undefined;
  expect(disk.content()).toEqual(before);
  // The next publish must not carry what was not committed.
  await rig.serving.publish();
  expect(rig.served.domains[0]).toMatchObject({
    manifest: null,
    hosts: [{ bots: { unknownBotsCanAccess: null } }, {}],
  });
});

test("a repeated entry gives the same state and the same outcome", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  rig.locals.set("a.example", { viewsDir: "/srv/a", devlove: null });
  const element = { bot: "x", range: "192.0.2.1" };
  const clear = cleared("c1", "path:a");
  const nobodyAsks = (): void => undefined;
  const apply = async (): Promise<readonly EntryOutcome[]> => [
    await rig.apply("viewset.activated", activated("a.example", "two")),
    await rig.apply("bots.changed", botsChanged("a.example", 0, [element])),
    await rig.apply("policy.changed", policyChanged("a.example", true)),
    {
      ...(await rig.apply("cache.clear", clear)),
      later: Promise.resolve({ phase: "gone", detail: {} }),
      onAmended: nobodyAsks,
    },
    await rig.apply("viewset.import", importing("a.example")),
  ];
  const first = await apply();
  const content = disk.content();
  expect(await apply()).toEqual(first);
  expect(disk.content()).toEqual(content);
  const body: JournalBody<"domains.changed"> = domainsChanged({ "a.example": [] });
  await rig.apply("domains.changed", body);
  const after = disk.content();
  await rig.apply("domains.changed", body);
  expect(disk.content()).toEqual(after);
});
