// What operators are told of the versions of a domain, and what their commands do.

import { expect, test } from "vitest";
import { describeVersion, viewsetPorts } from "../../src/agent/releases.ts";
import { Disk } from "./steering/disk.ts";
import { activated, domainsChanged } from "./steering/entries.ts";
import { digestOf } from "./steering/fake-sets.ts";
import { domain, failing, never, rigWith } from "./steering/release-scene.ts";
import { Rig } from "./steering/rig.ts";

const at = "1970-01-01T00:00:00.000Z";
const ref = (name: string): object => ({
  viewset_name: name,
  viewset_id: 7,
  manifest: digestOf(name),
});

function portsOf(rig: Rig, until?: string) {
  const { books, ports } = rig;
  const trials = { until: () => until };
  const releases = { books, activations: ports.activations, trials };
  let begun = 0;
  const facts = { schedule: "off", state: "off", pass: null, last: null } as const;
  const scrub = { begin: () => void begun++, facts: () => facts };
  const commands = viewsetPorts(releases, rig.serving, scrub);
  return { releases, commands, scrubs: () => begun };
}

test("the version in force, what is wanted, what is kept: newest first", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  const { commands, releases } = portsOf(rig, "1970-01-01T00:00:30.000Z");
  expect(commands.viewsetList(undefined)).toEqual([
    {
      domain,
      in_force: { ...ref("two"), since: at },
      wanted: ref("two"),
      standing: "in force",
      pinned: null,
      on_trial_until: "1970-01-01T00:00:30.000Z",
      prepared: null,
      kept: [
        { ...ref("two"), activated_at: at, outcome: "in force" },
        { ...ref("one"), activated_at: at, outcome: "replaced" },
      ],
      quarantined: [],
    },
  ]);
  expect(commands.viewsetList(domain)).toHaveLength(1);
  expect(commands.viewsetList("b.example")).toEqual([]);
  expect(describeVersion(releases, domain)).toEqual({
    viewset_name: "two",
    viewset_id: 7,
    since: at,
    standing: "in force",
    on_trial_until: "1970-01-01T00:00:30.000Z",
  });
});

test("a domain that never had a version has none in force and none wanted", async () => {
  using disk = new Disk();
  const rig = await new Rig(disk).boot();
  await rig.apply("domains.changed", domainsChanged({ [domain]: [] }));
  const { commands, releases } = portsOf(rig);
  const nothing = { in_force: null, wanted: null, standing: null, pinned: null, kept: [] };
  expect(commands.viewsetList(undefined)).toMatchObject([{ domain, ...nothing }]);
  expect(describeVersion(releases, domain)).toBeNull();
});

test("a rollback and another try answer with what came of them", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  const { commands } = portsOf(rig);
  expect(await commands.viewsetRollback({ domain, version: "one" }, never)).toMatchObject({
    in_force: ref("one"),
    wanted: ref("two"),
    standing: "pinned",
    pinned: { ...ref("one"), since: at },
    on_trial_until: null,
  });
  expect(await commands.viewsetRetry(domain, never)).toMatchObject({
    in_force: ref("two"),
    standing: "in force",
    pinned: null,
  });
  failing(rig, "three");
  await rig.apply("viewset.activated", activated(domain, "three"), 3);
  expect(commands.viewsetList(domain)).toMatchObject([
    {
      in_force: ref("two"),
      standing: "quarantined",
      quarantined: [
        { ...ref("three"), at, code: "VIEWSET_PROBE_FAILED", reason: "a.example /: EIO" },
      ],
    },
  ]);
});

test("a check of the disk is begun, and told where it stands", async () => {
  using disk = new Disk();
  const { commands, scrubs } = portsOf(await rigWith(disk, "one"));
  expect(commands.viewsetCheck()).toMatchObject({ state: "off" });
  expect(scrubs()).toBe(1);
});
