// Taking over the whole desired state: what fits is kept, what is cached is dropped, what central does not have is gone.

import { expect, test } from "vitest";
import { applySnapshot } from "../../../src/agent/steering/snapshot.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { activated, botsChanged, classesSaid, domainsChanged, snapshotOf } from "./entries.ts";
import { digestOf, digestOfSet, FakeCentral } from "./fake-sets.ts";
import { Disk } from "./disk.ts";
import { badManifest, Rig } from "./rig.ts";

const never = new AbortController().signal;
const element = { bot: "x", range: "192.0.2.1" };

function centralWith(sets: Readonly<Record<string, number>>): FakeCentral {
  const central = new FakeCentral();
  for (const [key, version] of Object.entries(sets))
    central.sets.set(key, { version, elements: [element] });
  return central;
}

test("a new agent takes everything", async () => {
  using disk = new Disk();
  const central = centralWith({ "bad/a.example": 3, "vip/sub.a.example": 1 });
  const rig = await new Rig(disk, central).boot();
  expect(await applySnapshot(rig.ports, snapshotOf(central), never)).toEqual({
    cleared: ["a.example", "c.example"],
    refused: [],
    kept_sets: [],
    entries: [{ seq: 4, phase: "applied", detail: { manifest: digestOf("three"), viewset_id: 7 } }],
  });
  expect(rig.served.domains.map(({ name, manifest }) => [name, manifest])).toEqual([
    ["a.example", digestOf("three")],
    ["c.example", null],
  ]);
  expect(rig.ports.sets.list().map(({ host, kind, version }) => [host, kind, version])).toEqual([
    ["a.example", "bad", 3],
    ["sub.a.example", "vip", 1],
  ]);
  expect(rig.served.domains[1]?.hosts[0]?.bots.unknownBotsCanAccess).toBe(true);
  // After a start it is the same.
  const next = await new Rig(disk, central).boot();
  expect(next.served.domains).toEqual(rig.served.domains);
});

test("sets that the agent has are not fetched again", async () => {
  using disk = new Disk();
  const central = centralWith({ "bad/a.example": 1, "bad/c.example": 4 });
  const rig = await new Rig(disk, central).boot();
  await rig.apply("domains.changed", domainsChanged({ "a.example": [], "c.example": [] }));
  await rig.apply("bots.changed", botsChanged("a.example", 0, [element]));
  await applySnapshot(rig.ports, snapshotOf(central), never);
  expect(central.fetches).toBe(1);
  expect(rig.steps.filter((step) => step.startsWith("replace"))).toEqual(["replace bad/c.example"]);
});

test("a set that central no longer has judges nobody", async () => {
  using disk = new Disk();
  const central = centralWith({});
  const rig = await new Rig(disk, central).boot();
  await rig.apply("domains.changed", domainsChanged({ "a.example": [] }));
  await rig.apply("bots.changed", botsChanged("a.example", 0, [element]));
  await applySnapshot(rig.ports, snapshotOf(central), never);
  expect(rig.ports.sets.list()).toEqual([
    { host: "a.example", kind: "bad", version: 1, count: 0, digest: digestOfSet([]) },
  ]);
});

test("everything cached of every domain is dropped before the new policies and viewsets are served", async () => {
  using disk = new Disk();
  const rig = await new Rig(disk).boot();
  await rig.apply("domains.changed", domainsChanged({ "a.example": [], "b.example": [] }));
  rig.steps.length = 0;
  await applySnapshot(rig.ports, snapshotOf(rig.central), never);
  const order = [
    "drop b.example done",
    "put domains viewset:b.example=null",
    "drop a.example done",
    "drop c.example done",
    "put policy policy_classes",
    "put viewset:a.example",
  ];
  expect(rig.steps.filter((step) => order.includes(step))).toEqual(order);
  expect([...disk.cached].some((host) => host.includes("b.example"))).toBe(false);
});

test("what policies say of classes of bots is taken; of an older central, which says nothing, nothing holds", async () => {
  using disk = new Disk();
  const rig = await new Rig(disk).boot();
  const classesOf = (): unknown =>
    rig.served.domains.find(({ name }) => name === "c.example")?.hosts[0]?.bots.classes;
  const policy_classes = classesSaid("c.example", { library: false });
  await applySnapshot(rig.ports, { ...snapshotOf(rig.central), policy_classes }, never);
  expect(classesOf()).toEqual({ library: false });
  await applySnapshot(rig.ports, snapshotOf(rig.central), never);
  expect(classesOf()).toBeUndefined();
});

test("a viewset that central does not have is forgotten", async () => {
  using disk = new Disk();
  const rig = await new Rig(disk).boot();
  await rig.apply("domains.changed", domainsChanged({ "c.example": [] }));
  await rig.apply("viewset.activated", activated("c.example", "old"));
  await applySnapshot(rig.ports, snapshotOf(rig.central), never);
  expect(rig.served.domains.find(({ name }) => name === "c.example")?.manifest).toBeNull();
  expect(disk.db.get("viewset:c.example")).toBeUndefined();
});

test("a viewset that is refused leaves the domain what it had", async () => {
  using disk = new Disk();
  const rig = await new Rig(disk).boot();
  await rig.apply("domains.changed", domainsChanged({ "a.example": [] }));
  await rig.apply("viewset.activated", activated("a.example", "old"));
  const snapshot = snapshotOf(rig.central);
  const viewsets = [
    { ...activated("a.example", "three"), manifest: badManifest, seq: 4 },
    { ...activated("z.example", "stray"), seq: 5 },
    { ...activated("c.example", "good"), seq: 6 },
  ];
  const stray = "z.example is not linked to this deployment site";
  expect(await applySnapshot(rig.ports, { ...snapshot, viewsets }, never)).toEqual({
    cleared: ["a.example", "c.example"],
    refused: [
      { domain: "a.example", reason: "no such key" },
      { domain: "z.example", reason: stray },
    ],
    kept_sets: [],
    // Each by its own entry: the snapshot's receipt would say that all of them are applied.
    entries: [
      {
        seq: 4,
        phase: "refused",
        detail: {
          reason: "no such key",
          code: "VIEWSET_INVALID",
          serving: { manifest: digestOf("old"), viewset_id: 7, viewset_name: "old" },
        },
      },
      { seq: 5, phase: "refused", detail: { reason: stray } },
      { seq: 6, phase: "applied", detail: { manifest: digestOf("good"), viewset_id: 7 } },
    ],
  });
  expect(rig.served.domains.map(({ manifest }) => manifest)).toEqual([
    digestOf("old"),
    digestOf("good"),
  ]);
});

test("what may pass is thrown; the repetition takes the rest", async () => {
  using disk = new Disk();
  const central = centralWith({ "bad/a.example": 3 });
  const rig = await new Rig(disk, central).boot();
  rig.hold = async (name) => {
    if (name === "prepare") throw new AccelError("CENTRAL_UNREACHABLE", "down");
  };
  await expect(applySnapshot(rig.ports, snapshotOf(central), never)).rejects.toMatchObject({
    code: "CENTRAL_UNREACHABLE",
  });
  rig.hold = async () => undefined;
  await applySnapshot(rig.ports, snapshotOf(central), never);
  expect(central.fetches).toBe(1);
  expect(rig.served.domains[0]?.manifest).toBe(digestOf("three"));
});

test("an empty snapshot unlinks everything", async () => {
  using disk = new Disk();
  const rig = await new Rig(disk).boot();
  await rig.apply("domains.changed", domainsChanged({ "a.example": ["sub.a.example"] }));
  await rig.apply("bots.changed", botsChanged("a.example", 0, [element]));
  const empty = {
    ...snapshotOf(rig.central),
    domains: { domains: [] },
    policy: { domains: [] },
    viewsets: [],
    bots: [],
  };
  await applySnapshot(rig.ports, empty, never);
  expect(rig.servedHosts()).toEqual([]);
  expect(rig.ports.sets.list()).toEqual([]);
  expect([...disk.cached]).toEqual([]);
});

test("of another store of central's: what is cached is dropped later, domain by domain, unless it is to be at once", async () => {
  using disk = new Disk();
  const rig = await new Rig(disk).boot();
  await rig.apply("domains.changed", domainsChanged({ "a.example": [] }));
  rig.steps.length = 0;
  const snapshot = { ...snapshotOf(rig.central), epoch: "f".repeat(16) };
  expect(await applySnapshot(rig.ports, snapshot, never)).toMatchObject({
    cleared: [],
    clearing: { domains: ["a.example", "c.example"], within_s: 600 },
  });
  expect(rig.steps).toContain("drop later a.example c.example");
  expect(rig.steps.filter((step) => step.startsWith("drop a."))).toEqual([]);
  const atOnce = await applySnapshot(rig.ports, { ...snapshot, clear_now: true }, never);
  expect(atOnce.cleared).toEqual(["a.example", "c.example"]);
  expect(rig.steps).toContain("drop a.example done");
});
