// What is served while several entries are under way: lanes run side by side, and no publish may carry what an earlier one took away.

import { expect, test } from "vitest";
import type { ReadyViewset } from "../../../src/core/serving/compose-state.ts";
import { encodeManifestTable } from "../../../src/core/serving/manifest-table.ts";
import { nothingServed } from "../../../src/core/serving/serving-state.ts";
import { until } from "../../support/until.ts";
import { activated, botsChanged, domainsChanged, policyChanged } from "./entries.ts";
import { digestOf } from "./fake-sets.ts";
import { Disk } from "./disk.ts";
import { Rig } from "./rig.ts";

const element = { bot: "x", range: "192.0.2.1" };

async function linkedRig(disk: Disk): Promise<Rig> {
  const rig = await new Rig(disk).boot();
  await rig.apply(
    "domains.changed",
    domainsChanged({ "a.example": ["sub.a.example"], "b.example": [] }),
  );
  rig.steps.length = 0;
  return rig;
}

/** Holds the step up until let go. */
function holdUp(
  rig: Rig,
  step: string,
): { readonly isHeld: () => boolean; readonly letGo: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isHeld = false;
  rig.hold = async (name) => {
    if (name !== step) return;
    isHeld = true;
    await promise;
  };
  return { isHeld: () => isHeld, letGo: resolve };
}

test("a mark while an unlinked domain is dropped does not serve it again", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const drop = holdUp(rig, "drop b.example");
  const unlinked = rig.apply("domains.changed", domainsChanged({ "a.example": [] }));
  await until("the drop is under way", drop.isHeld);
  expect(rig.serving.names("b.example")).toBeUndefined();
  await rig.apply("bots.changed", botsChanged("a.example", 0, [element]));
  await rig.apply("policy.changed", policyChanged("a.example", true));
  expect(rig.servedHosts()).toEqual(["a.example of a.example"]);
  drop.letGo();
  await unlinked;
  expect(rig.servedHosts()).toEqual(["a.example of a.example"]);
  expect([...disk.cached]).toEqual(["a.example of a.example"]);
});

test("a viewset that was fetched while its domain was unlinked is refused and leaves nothing", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const fetching = holdUp(rig, "prepare");
  const activation = rig.apply("viewset.activated", activated("b.example", "late"));
  await until("it is fetched", fetching.isHeld);
  await rig.apply("domains.changed", domainsChanged({ "a.example": [] }));
  fetching.letGo();
  expect(await activation).toEqual({
    phase: "refused",
    detail: { reason: "b.example is no longer linked to this deployment site" },
  });
  expect(disk.db.get("viewset:b.example")).toBeUndefined();
  // Linked again, it begins without one.
  await rig.apply("domains.changed", domainsChanged({ "a.example": [], "b.example": [] }));
  expect(rig.served.domains.map(({ name, manifest }) => [name, manifest])).toEqual([
    ["a.example", null],
    ["b.example", null],
  ]);
});

test("entries of different lanes at once: the last state has them all", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const staging = holdUp(rig, "stage");
  const all = [
    rig.apply("viewset.activated", activated("a.example", "one")),
    rig.apply("viewset.activated", activated("b.example", "two")),
    rig.apply("bots.changed", botsChanged("a.example", 0, [element])),
    rig.apply("policy.changed", policyChanged("a.example", true)),
  ];
  await until("one is staged", staging.isHeld);
  staging.letGo();
  await Promise.all(all);
  expect(rig.served.domains.map(({ name, manifest }) => [name, manifest])).toEqual([
    ["a.example", digestOf("one")],
    ["b.example", digestOf("two")],
  ]);
  const [host] = rig.served.domains[0]?.hosts ?? [];
  expect(host?.bots.unknownBotsCanAccess).toBe(true);
  expect(host?.bots.bad).toHaveLength(1);
  expect(rig.serving.state).toBe(rig.served);
});

test("a viewset that is withdrawn gives way to the host's own site", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  rig.locals.set("a.example", { viewsDir: "/srv/a", devlove: { domains: {} } });
  await rig.apply("viewset.activated", activated("a.example", "one"));
  await rig.serving.publish({ viewset: { domain: "a.example", ready: null } });
  const [domain] = rig.served.domains;
  expect(domain?.manifest).toBeNull();
  expect(domain?.hosts[0]?.views).toEqual({ kind: "directory", root: "/srv/a" });
});

test("before the first publish nothing is served; after a start what was committed", async () => {
  using disk = new Disk();
  expect(new Rig(disk).serving.state).toBe(nothingServed);
  await linkedRig(disk);
  const next = new Rig(disk);
  expect(next.serving.names("a.example")).toEqual({
    name: "a.example",
    subDomains: ["sub.a.example"],
  });
  expect(next.serving.names("sub.a.example")).toBeUndefined();
  await next.boot();
  expect(next.servedHosts()).toEqual([
    "a.example of a.example",
    "sub.a.example of a.example",
    "b.example of b.example",
  ]);
});

test("the table of a version that was replaced is let go when every thread has left it, and no other", async () => {
  using disk = new Disk();
  const rig = await linkedRig(disk);
  const versionOf = (name: string): ReadyViewset => ({
    manifest: digestOf(name),
    devlove: { domains: {} },
    table: encodeManifestTable([]),
  });
  const [one, two, other] = ["one", "two", "other"].map(versionOf);
  if (one === undefined || two === undefined || other === undefined) throw new Error("none");
  await rig.serving.publish({ viewset: { domain: "a.example", ready: one } });
  await rig.serving.publish({ viewset: { domain: "b.example", ready: other } });
  const leaving = holdUp(rig, "left");
  const failed = rig.serving.publish({ viewset: { domain: "a.example", ready: two } }, () => {
    throw new Error("the disk is full");
  });
  await expect(failed).rejects.toThrow("the disk is full");
  await rig.serving.publish({ viewset: { domain: "a.example", ready: two } });
  await until("it is asked for", leaving.isHeld);
  expect(rig.tablesLeft).toEqual([]);
  leaving.letGo();
  await until("it is let go", () => rig.tablesLeft.length > 0);
  expect(rig.tablesLeft).toEqual([one.table]);
  await rig.apply("domains.changed", domainsChanged({ "a.example": [] }));
  await until("the other as well", () => rig.tablesLeft.length > 1);
  expect(rig.tablesLeft.slice(1)).toEqual([other.table]);
});
