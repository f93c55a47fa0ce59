// a.example with versions that came into force one after another, for the tests of releases.

import { expect } from "vitest";
import type { ProbeAnswer } from "../../../src/core/serving/plan-probes.ts";
import type { Disk } from "./disk.ts";
import { activated, domainsChanged } from "./entries.ts";
import { digestOf } from "./fake-sets.ts";
import { Rig } from "./rig.ts";

export const never = new AbortController().signal;
export const domain = "a.example";

/** a.example with these versions in the order in which they came into force, by entries 1, 2, … */
export async function rigWith(disk: Disk, ...versions: readonly string[]): Promise<Rig> {
  const rig = await new Rig(disk).boot();
  await rig.apply("domains.changed", domainsChanged({ [domain]: [] }));
  for (const [i, name] of versions.entries())
    expect((await rig.apply("viewset.activated", activated(domain, name), i + 1)).phase).toBe(
      "applied",
    );
  return rig;
}

/** The version whose name it is does not answer. */
export function failing(rig: Rig, name: string): void {
  rig.answer = (): ProbeAnswer | undefined =>
    rig.staged?.domains[0]?.manifest === digestOf(name)
      ? { kind: "failed", reason: "EIO" }
      : undefined;
}

export const inForce = (rig: Rig): unknown => rig.served.domains[0]?.manifest;

/** Receipts that were written beside those of the link: seq, phase, detail. */
export function corrections(disk: Disk): readonly unknown[] {
  return disk.db.ledger
    .receiptsAfter(0, 100)
    .map(({ receipt: { seq, phase, detail } }) => [seq, phase, detail]);
}
