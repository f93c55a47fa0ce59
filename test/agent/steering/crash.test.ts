// A crash at each step of each entry, and of a snapshot, then a start and the same again: the state is that of a life without a crash.

import { expect, test } from "vitest";
import { applySnapshot } from "../../../src/agent/steering/snapshot.ts";
import {
  activated,
  botsChanged,
  cleared,
  domainsChanged,
  classesSaid,
  policyChanged,
  snapshotOf,
} from "./entries.ts";
import { FakeCentral } from "./fake-sets.ts";
import { Crash, Disk } from "./disk.ts";
import { Rig } from "./rig.ts";

const never = new AbortController().signal;
const element = { bot: "x", range: "192.0.2.1" };
const more = [element, { bot: "y", range: "192.0.2.2" }];

/** What is there before: two domains, one with a viewset, a set, a policy. */
async function prepared(disk: Disk, central: FakeCentral): Promise<Rig> {
  const rig = await new Rig(disk, central).boot();
  await rig.apply(
    "domains.changed",
    domainsChanged({ "a.example": ["sub.a.example"], "b.example": [] }),
  );
  await rig.apply("viewset.activated", activated("b.example", "one"));
  await rig.apply("bots.changed", botsChanged("b.example", 0, [element]));
  await rig.apply("policy.changed", policyChanged("a.example", true));
  rig.steps.length = 0;
  return rig;
}

function centralWith(): FakeCentral {
  const central = new FakeCentral();
  central.sets.set("bad/a.example", { version: 5, elements: more });
  central.sets.set("bad/b.example", { version: 1, elements: [element] });
  return central;
}

const actions: Readonly<Record<string, (rig: Rig) => Promise<unknown>>> = {
  activation: async (rig) => rig.apply("viewset.activated", activated("a.example", "two")),
  "another viewset": async (rig) => rig.apply("viewset.activated", activated("b.example", "two")),
  delta: async (rig) => rig.apply("bots.changed", botsChanged("a.example", 0, [element])),
  "whole set": async (rig) => rig.apply("bots.changed", botsChanged("a.example", 4, more)),
  policy: async (rig) => rig.apply("policy.changed", policyChanged("b.example", false)),
  classes: async (rig) => {
    await rig.apply("policy.classes", classesSaid("a.example", { feed: false }));
    await rig.apply("policy.changed", policyChanged("a.example", true));
  },
  clear: async (rig) => rig.apply("cache.clear", cleared("c1", "path:a")),
  unlink: async (rig) => rig.apply("domains.changed", domainsChanged({ "a.example": [] })),
  "unlink and link": async (rig) => {
    await rig.apply("domains.changed", domainsChanged({ "b.example": ["sub.a.example"] }));
  },
  snapshot: async (rig) => applySnapshot(rig.ports, snapshotOf(rig.central), never),
};

test.each(Object.keys(actions))("%s", async (name) => {
  const action = actions[name];
  if (action === undefined) throw new Error(name);
  using whole = new Disk();
  const undisturbed = await prepared(whole, centralWith());
  await action(undisturbed);
  const steps = undisturbed.steps.length;
  expect(steps).toBeGreaterThan(1);

  for (let at = 1; at <= steps; at++) {
    using disk = new Disk();
    const central = centralWith();
    const rig = await prepared(disk, central);
    rig.onStep = (no) => {
      if (no >= at) throw new Crash();
    };
    await expect(action(rig)).rejects.toThrow(Crash);

    const next = await new Rig(disk, central).boot();
    await action(next);
    expect([at, next.served.domains, disk.content()]).toEqual([
      at,
      undisturbed.served.domains,
      whole.content(),
    ]);
  }
});

test("an entry that fails at each step and is tried again in the same life ends the same", async () => {
  for (const action of Object.values(actions)) {
    using whole = new Disk();
    const undisturbed = await prepared(whole, centralWith());
    await action(undisturbed);
    const steps = undisturbed.steps.length;
    using disk = new Disk();
    const rig = await prepared(disk, centralWith());
    for (let at = 1; at <= steps; at++) {
      rig.steps.length = 0;
      rig.onStep = (no) => {
        if (no === at) throw new Crash();
      };
      await action(rig).catch((error: unknown) => expect(error).toBeInstanceOf(Crash));
    }
    rig.onStep = () => undefined;
    await action(rig);
    expect([rig.served.domains, disk.content()]).toEqual([
      undisturbed.served.domains,
      whole.content(),
    ]);
  }
});
