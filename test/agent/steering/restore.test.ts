// At a start: what was committed is served from the disk; what is torn is fetched again, unless something newer took its place.

import { expect, test } from "vitest";
import { healViewset, restoreState } from "../../../src/agent/steering/restore.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { until } from "../../support/until.ts";
import { activated, domainsChanged } from "./entries.ts";
import { digestOf } from "./fake-sets.ts";
import { Disk } from "./disk.ts";
import { Rig } from "./rig.ts";

/** An agent that started with the viewset of a.example torn. */
async function tornRig(disk: Disk): Promise<Rig> {
  const before = await new Rig(disk).boot();
  await before.apply("domains.changed", domainsChanged({ "a.example": [], "b.example": [] }));
  await before.apply("viewset.activated", activated("a.example", "one"));
  await before.apply("viewset.activated", activated("b.example", "two"));
  const rig = new Rig(disk);
  rig.tornManifests.add(digestOf("one"));
  expect(await restoreState(rig.restorePorts)).toEqual(["a.example"]);
  return rig;
}

const manifests = (rig: Rig): unknown => rig.served.domains.map(({ manifest }) => manifest);

test("what is whole is served at once, what is torn when it is whole again", async () => {
  using disk = new Disk();
  const rig = await tornRig(disk);
  expect(manifests(rig)).toEqual([null, digestOf("two")]);
  await healViewset("a.example", rig.restorePorts);
  expect(manifests(rig)).toEqual([digestOf("one"), digestOf("two")]);
});

test("one without some of its files is served, and whole later; health says so until then", async () => {
  using disk = new Disk();
  const before = await new Rig(disk).boot();
  await before.apply("domains.changed", domainsChanged({ "a.example": [] }));
  await before.apply("viewset.activated", activated("a.example", "one"));
  const rig = new Rig(disk);
  rig.holedManifests.add(digestOf("one"));
  expect(await restoreState(rig.restorePorts)).toEqual(["a.example"]);
  expect(manifests(rig)).toEqual([digestOf("one")]);
  rig.health.raise("viewset_damaged", "error", "a file is lost", "", "a.example");
  const { version } = rig.served;
  let tries = 0;
  rig.hold = async (name) => {
    if (name !== "prepare") return;
    expect(rig.health.list()).toMatchObject([{ code: "viewset_damaged" }]);
    if (tries++ < 2) throw new AccelError("CENTRAL_UNREACHABLE", "down");
  };
  await healViewset("a.example", rig.restorePorts);
  expect({ tries, said: rig.health.list() }).toEqual({ tries: 3, said: [] });
  // Nothing else is served for that.
  expect(rig.served.version).toBe(version);
});

test("the warning of one that central has no more stands until another version is in force, or the domain is gone", async () => {
  using disk = new Disk();
  const rig = await tornRig(disk);
  const damaged = (): readonly unknown[] => rig.health.list().map(({ code }) => code);
  rig.health.raise("viewset_damaged", "error", "a file is lost", "", "a.example");
  rig.hold = async (name) => {
    if (name === "prepare") throw new AccelError("VIEWSET_INVALID", "central does not have it");
  };
  await healViewset("a.example", rig.restorePorts);
  expect(damaged()).toEqual(["viewset_damaged"]);
  rig.hold = async () => undefined;
  await rig.apply("viewset.activated", activated("a.example", "newer"));
  expect(damaged()).toEqual([]);
  rig.health.raise("viewset_damaged", "error", "a file is lost", "", "b.example");
  await rig.apply("domains.changed", domainsChanged({ "a.example": [] }));
  expect(damaged()).toEqual([]);
});

test("it is tried until central can be asked", async () => {
  using disk = new Disk();
  const rig = await tornRig(disk);
  let tries = 0;
  rig.hold = async (name) => {
    if (name === "prepare" && tries++ < 3) throw new AccelError("CENTRAL_UNREACHABLE", "down");
  };
  await healViewset("a.example", rig.restorePorts);
  expect(tries).toBe(4);
  expect(manifests(rig)).toEqual([digestOf("one"), digestOf("two")]);
});

test("a stop ends it", async () => {
  using disk = new Disk();
  const rig = await tornRig(disk);
  const stop = new AbortController();
  rig.hold = async () => {
    stop.abort();
    throw new AccelError("CENTRAL_UNREACHABLE", "down");
  };
  await healViewset("a.example", { ...rig.restorePorts, stop: stop.signal });
  expect(manifests(rig)).toEqual([null, digestOf("two")]);
});

test.each(["before it is fetched", "while it is staged"])(
  "a newer viewset that comes %s stays",
  async (when) => {
    using disk = new Disk();
    const rig = await tornRig(disk);
    const place = when === "while it is staged" ? "stage" : "prepare";
    const { promise, resolve } = Promise.withResolvers<void>();
    let held = 0;
    rig.hold = async (name) => {
      if (name === place && held++ === 0) await promise;
    };
    // The first to be held is the newer one's staging, or the healing's fetch.
    const newer = async (): Promise<unknown> =>
      rig.apply("viewset.activated", activated("a.example", "newer"));
    const first = place === "stage" ? newer() : healViewset("a.example", rig.restorePorts);
    await until("held", () => held > 0);
    const second = place === "stage" ? healViewset("a.example", rig.restorePorts) : newer();
    if (place === "prepare") await second;
    else
      await until(
        "the healing has fetched",
        () => rig.steps.filter((step) => step === "prepare").length === 2,
      );
    resolve();
    await Promise.all([first, second]);
    expect(manifests(rig)).toEqual([digestOf("newer"), digestOf("two")]);
  },
);

test("a domain that was unlinked meanwhile is not healed", async () => {
  using disk = new Disk();
  const rig = await tornRig(disk);
  await rig.apply("domains.changed", domainsChanged({ "b.example": [] }));
  await healViewset("a.example", rig.restorePorts);
  expect(rig.servedHosts()).toEqual(["b.example of b.example"]);
});

test("one that the rules of a newer release refuse is served and healed, and operators are told", async () => {
  using disk = new Disk();
  const before = await new Rig(disk).boot();
  await before.apply("domains.changed", domainsChanged({ "a.example": [], "b.example": [] }));
  await before.apply("viewset.activated", activated("a.example", "one"));
  await before.apply("viewset.activated", activated("b.example", "two"));
  const rig = new Rig(disk, before.central, "2.0.0");
  rig.outdated.add(digestOf("one")).add(digestOf("two"));
  rig.tornManifests.add(digestOf("two"));
  expect(await restoreState(rig.restorePorts)).toEqual(["b.example"]);
  expect(manifests(rig)).toEqual([digestOf("one"), null]);
  await healViewset("b.example", rig.restorePorts);
  expect(manifests(rig)).toEqual([digestOf("one"), digestOf("two")]);
  const told = (name: string): unknown => ({
    code: "viewset_objections",
    text: expect.stringContaining(`The active version of ${name} is served as it was taken`),
  });
  expect(rig.health.list()).toMatchObject([told("a.example"), told("b.example")]);
});
