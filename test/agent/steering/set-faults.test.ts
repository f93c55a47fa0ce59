// Central's news of a bot set, harmed on the way: the last good set stays, the agent says so, and converges when it can.

import { expect, test } from "vitest";
import type { SetElement } from "../../../src/core/addresses/set-digest.ts";
import type { JournalBody } from "../../../src/wire/journal.ts";
import { applySnapshot } from "../../../src/agent/steering/snapshot.ts";
import { domainsChanged, snapshotOf } from "./entries.ts";
import { digestOf, digestOfSet, FakeCentral } from "./fake-sets.ts";
import { Disk } from "./disk.ts";
import { Rig } from "./rig.ts";

type Delta = JournalBody<"bots.changed">;

const never = new AbortController().signal;
const domain = "a.example";
const many = Array.from({ length: 200 }, (_, i): SetElement => ({
  bot: `bot-${i % 7}`,
  range: `10.0.${i}.0/24`,
}));
const grown = [...many, { bot: "late", range: "192.0.2.1" }];
const grownMore = [...grown, { bot: "late", range: "192.0.2.2" }];

function step(
  version: number,
  before: readonly SetElement[],
  after: readonly SetElement[],
  shrinkMeant = false,
): Delta {
  const key = ({ bot, range }: SetElement): string => `${bot} ${range}`;
  const [old, now] = [new Set(before.map(key)), new Set(after.map(key))];
  return {
    domain,
    set: "bad",
    from_version: version,
    to_version: version + 1,
    added: after.filter((element) => !old.has(key(element))),
    removed: before.filter((element) => !now.has(key(element))),
    count: after.length,
    digest: digestOfSet(after),
    shrink_meant: shrinkMeant,
  };
}

/** Linked, with `many` in version 1. */
async function started(disk: Disk, central = new FakeCentral()): Promise<Rig> {
  const rig = await new Rig(disk, central).boot();
  await rig.apply("domains.changed", domainsChanged({ [domain]: [], "c.example": [] }));
  await rig.apply("bots.changed", step(0, [], many));
  expect(held(rig)).toEqual([1, 200]);
  return rig;
}

function held(rig: Rig): readonly [number, number] {
  const set = rig.ports.sets.list().find(({ host }) => host === domain);
  return [set?.version ?? 0, set?.count ?? 0];
}

async function metric(rig: Rig, name: string): Promise<number> {
  const text = await rig.registry.metrics();
  return [...text.matchAll(new RegExp(`^${name}(?:{[^}]*})? (\\d+)$`, "gm"))].reduce(
    (sum, [, value]) => sum + Number(value),
    0,
  );
}

const good = step(1, many, grown);
test.each<readonly [string, readonly Delta[]]>([
  ["truncated", [{ ...good, added: [] }]],
  ["with another digest", [{ ...good, digest: digestOf("other") }]],
  ["with another count", [{ ...good, count: 999 }]],
  ["twice", [good, good]],
  ["in another order", [step(2, grown, grownMore), good]],
  ["with one missing", [step(2, grown, grownMore)]],
  ["removing what is not there", [{ ...good, removed: [{ bot: "none", range: "192.0.2.9" }] }]],
])("changes %s end in central's set", async (_name, bodies) => {
  using disk = new Disk();
  const rig = await started(disk);
  rig.central.sets.set(`bad/${domain}`, { version: 3, elements: grownMore });
  for (const body of bodies) {
    expect(await rig.apply("bots.changed", body)).toMatchObject({ phase: "applied" });
    expect(held(rig)[1]).toBeGreaterThanOrEqual(200);
  }
  await rig.apply("bots.changed", step(2, grown, grownMore));
  expect(held(rig)).toEqual([3, 202]);
  expect(rig.watch.behindNow()).toEqual([]);
  expect(rig.health.list()).toEqual([]);
});

test.each<readonly [string, (elements: readonly SetElement[]) => readonly SetElement[]]>([
  ["cut short", (elements) => elements.slice(0, -1)],
  [
    "with something else in it",
    (elements) => [...elements.slice(1), { bot: "x", range: "192.0.2.7" }],
  ],
  ["with an element twice", (elements) => [...elements, ...elements.slice(0, 1)]],
  ["empty", () => []],
])(
  "a whole set %s is not believed; it is told, and mended when the right one comes",
  async (_name, harm) => {
    using disk = new Disk();
    const rig = await started(disk);
    rig.central.sets.set(`bad/${domain}`, { version: 5, elements: grownMore });
    rig.central.harm = harm;
    await expect(rig.apply("bots.changed", step(4, grown, grownMore))).rejects.toMatchObject({
      code: "SET_MISMATCH",
    });
    expect(held(rig)).toEqual([1, 200]);
    expect(rig.watch.describe(rig.ports.sets.list())[0]).toMatchObject({
      version: 1,
      behind: { why: "unavailable" },
    });
    expect(rig.health.list()).toMatchObject([{ code: "bot_set_behind", severity: "warning" }]);
    expect(await metric(rig, "accel_agent_sets_behind")).toBe(1);
    expect(await metric(rig, "accel_agent_set_faults_total")).toBe(2); // The mismatch, then what came.

    rig.central.harm = (elements) => elements;
    await rig.ports.setChanges.heal(never);
    expect(held(rig)).toEqual([5, 202]);
    expect(rig.health.list()).toEqual([]);
    expect(await metric(rig, "accel_agent_sets_behind")).toBe(0);
    expect(await metric(rig, "accel_agent_set_fetches_total")).toBe(1);
  },
);

test("an empty set by accident is refused by every way it may come; meant, it is taken", async () => {
  using disk = new Disk();
  const rig = await started(disk);
  rig.central.sets.set(`bad/${domain}`, { version: 2, elements: [] });
  const kept = async (): Promise<void> => {
    expect(held(rig)).toEqual([1, 200]);
    expect(rig.health.list()).toMatchObject([{ code: "bot_set_behind" }]);
    expect(rig.watch.describe(rig.ports.sets.list())[0]).toMatchObject({
      behind: { why: "shrunk" },
    });
    expect(await metric(rig, "accel_agent_set_fetches_total")).toBe(0);
  };
  expect(await rig.apply("bots.changed", step(1, many, []))).toMatchObject({ phase: "refused" });
  await kept();
  // As a whole set.
  expect(await rig.apply("bots.changed", step(7, grown, []))).toMatchObject({ phase: "refused" });
  await kept();
  // In a snapshot, and where the snapshot has no such set at all.
  const reason: unknown = expect.stringContaining("shrink from 200 to 0");
  const outcome = { kept_sets: [{ domain, set: "bad", reason }] };
  expect(await applySnapshot(rig.ports, snapshotOf(rig.central), never)).toMatchObject(outcome);
  await kept();
  rig.central.sets.clear();
  expect(await applySnapshot(rig.ports, snapshotOf(rig.central), never)).toMatchObject(outcome);
  await kept();
  // It stays over a restart.
  const next = await new Rig(disk, rig.central).boot();
  expect(held(next)).toEqual([1, 200]);

  rig.central.sets.set(`bad/${domain}`, { version: 9, elements: [] });
  rig.central.shrinkMeant = true;
  await rig.ports.setChanges.heal(never);
  expect(held(rig)).toEqual([9, 0]);
  expect(rig.health.list()).toEqual([]);
});

test("of a host that is no longer linked nothing is said", async () => {
  using disk = new Disk();
  const rig = await started(disk);
  await rig.apply("bots.changed", step(1, many, []));
  expect(rig.health.list()).toHaveLength(1);
  await rig.apply("domains.changed", domainsChanged({ "c.example": [] }));
  expect(rig.health.list()).toEqual([]);
  expect(rig.watch.behindNow()).toEqual([]);
});
