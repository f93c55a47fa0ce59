// A host is asked whether it can serve a version, for the activation of a fleet: it answers, holds what it promised, and changes nothing else.

import { expect, test } from "vitest";
import { AccelError } from "../../../src/core/faults.ts";
import type { JournalBody } from "../../../src/wire/journal.ts";
import { Disk } from "./disk.ts";
import { activated, domainsChanged } from "./entries.ts";
import { digestOf } from "./fake-sets.ts";
import { domain, failing, inForce, rigWith } from "./release-scene.ts";
import { Rig } from "./rig.ts";

function asked(version: string, activation = 1): JournalBody<"viewset.prepare"> {
  return { ...activated(domain, version), activation_id: activation, hold_s: 60 };
}

const heldBy = (rig: Rig): readonly (readonly [string, string])[] =>
  rig.books.held().map(({ manifest, standing }) => [manifest, standing] as const);

test("a version is prepared: fetched, probed in a worker, held, and not in force", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  const { served } = rig;
  rig.steps.length = 0;
  // Nobody may take its room, nor sweep its files away, between the rehearsal and the note that it is held.
  const roomsAtNote: number[] = [];
  rig.onStep = (_, name) => void (name === "put done" && roomsAtNote.push(rig.rooms));
  expect(await rig.apply("viewset.prepare", asked("two"), 2)).toEqual({
    phase: "applied",
    detail: { prepared: true, activation_id: 1, manifest: digestOf("two") },
  });
  expect(rig.steps).toEqual(["prepare", "rehearse", `put ${rig.steps[2]?.slice(4)}`, "put done"]);
  expect(rig.served).toBe(served);
  expect(inForce(rig)).toBe(digestOf("one"));
  expect(rig.books.of(domain).wish?.manifest).toBe(digestOf("one"));
  expect(heldBy(rig)).toEqual([
    [digestOf("one"), "needed"],
    [digestOf("two"), "needed"],
  ]);
  expect({ rooms: rig.rooms, roomsAtNote }).toEqual({ rooms: 0, roomsAtNote: [1] });
  rig.onStep = () => undefined;

  // Asked again, by central that did not hear it: the same, for longer.
  rig.nowMs = 30_000;
  expect((await rig.apply("viewset.prepare", asked("two"), 3)).phase).toBe("applied");
  expect(rig.books.of(domain).prepared?.until).toBe(new Date(90_000).toISOString());
});

test("the decision puts the prepared version into force, and nothing is held for it any more", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  await rig.apply("viewset.prepare", asked("two"), 2);
  // A rule that came since does not count: it was judged when it was promised.
  rig.outdated.add(digestOf("two"));
  expect((await rig.apply("viewset.activated", activated(domain, "two"), 3)).phase).toBe("applied");
  expect(inForce(rig)).toBe(digestOf("two"));
  expect(rig.books.of(domain).prepared).toBeNull();
});

test("what is prepared outlives a start", async () => {
  using disk = new Disk();
  await (await rigWith(disk, "one")).apply("viewset.prepare", asked("two"), 2);
  const again = new Rig(disk);
  expect(again.books.of(domain).prepared).toMatchObject({ manifest: digestOf("two") });
  expect(heldBy(again)).toContainEqual([digestOf("two"), "needed"]);
});

test("it is let go when the activation is withdrawn, another takes its place, or its time is over", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  const { activations } = rig.ports;
  const held = (): string | undefined => rig.books.of(domain).prepared?.manifest;
  await rig.apply("viewset.prepare", asked("two"), 2);
  await rig.apply("viewset.withdrawn", { domain, activation_id: 7 }, 3);
  expect(held()).toBe(digestOf("two"));
  await rig.apply("viewset.withdrawn", { domain, activation_id: 1 }, 4);
  expect(held()).toBeUndefined();
  expect(rig.steps.at(-1)).toBe("let go");

  await rig.apply("viewset.prepare", asked("two", 2), 5);
  await rig.apply("viewset.prepare", asked("three", 3), 6);
  expect(held()).toBe(digestOf("three"));
  // What is in force may be told again, as by a snapshot: the promise stands.
  await rig.apply("viewset.activated", activated(domain, "one"), 7);
  expect(held()).toBe(digestOf("three"));

  await rig.apply("viewset.prepare", asked("two", 4), 8);
  rig.nowMs = 59_999;
  activations.letGoOverdue();
  expect(held()).toBe(digestOf("two"));
  rig.nowMs = 60_000;
  activations.letGoOverdue();
  expect(held()).toBeUndefined();
  expect(inForce(rig)).toBe(digestOf("one"));
});

test("a host that cannot serve a version says why, and remembers nothing against it", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  const serving = { manifest: digestOf("one"), viewset_id: 7, viewset_name: "one" };
  failing(rig, "two");
  expect(await rig.apply("viewset.prepare", asked("two"), 2)).toEqual({
    phase: "refused",
    detail: { reason: "a.example /: EIO", code: "VIEWSET_PROBE_FAILED", serving },
  });
  rig.answer = () => undefined;
  rig.outdated.add(digestOf("three"));
  expect(await rig.apply("viewset.prepare", asked("three"), 3)).toEqual({
    phase: "refused",
    detail: { reason: "no such key", code: "VIEWSET_INVALID", serving },
  });
  expect(rig.books.of(domain)).toMatchObject({ quarantined: [], prepared: null });
  expect(rig.health.list()).toEqual([]);
  // A fault that may pass is the lane's to repeat.
  rig.hold = async (name) => {
    if (name === "prepare") throw new AccelError("CENTRAL_UNREACHABLE", "no answer");
  };
  await expect(rig.apply("viewset.prepare", asked("four"), 4)).rejects.toThrow("no answer");
});

test("a quarantined version, and one that an operator pinned the host against, are refused at once", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  failing(rig, "two");
  await rig.apply("viewset.activated", activated(domain, "two"), 2);
  rig.answer = () => undefined;
  rig.steps.length = 0;
  expect(await rig.apply("viewset.prepare", asked("two"), 3)).toMatchObject({
    phase: "refused",
    detail: { code: "VIEWSET_QUARANTINED" },
  });
  await rig.apply("viewset.activated", activated(domain, "three"), 4);
  await rig.ports.activations.rollBack(domain, "one", new AbortController().signal);
  expect(await rig.apply("viewset.prepare", asked("three"), 5)).toMatchObject({
    phase: "refused",
    detail: { pinned: true },
  });
  // The pin is against that version alone.
  expect((await rig.apply("viewset.prepare", asked("four"), 6)).phase).toBe("applied");
});

test("nothing is prepared of a domain that is not linked, or is unlinked meanwhile", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  rig.hold = async (name) => {
    if (name === "prepare") {
      rig.hold = async () => undefined;
      await rig.apply("domains.changed", domainsChanged({}), 3);
    }
  };
  expect(await rig.apply("viewset.prepare", asked("two"), 2)).toMatchObject({ phase: "refused" });
  expect(await rig.apply("viewset.prepare", asked("two"), 4)).toMatchObject({ phase: "refused" });
  expect(rig.books.domains()).toEqual([]);
});
