// What is stored, how long it is fresh, whom it answers and what confirms it, compared with http-cache-semantics over random requests and answers. The package and
// we differ where RFC 9111 is left to taste, or where the package leaves something out: each such difference has its section, an example and both decisions.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  confirmations,
  confirmByPackage,
  confirmByUs,
  decideByPackage,
  decideByUs,
  sceneOf,
  scenes,
  type Scene,
} from "../../support/cache-oracle.ts";
import { differences } from "../../support/cache-oracle-differences.ts";

const runs = 10_000;
const isComparable = (scene: Scene): boolean => !differences.some(({ applies }) => applies(scene));

/** What one of the two leaves open is not compared. */
function expectSame(ours: object, theirs: Readonly<Record<string, unknown>>): void {
  const shared = Object.entries(ours).filter(([name]) => name in theirs);
  expect(ours).toMatchObject(Object.fromEntries(shared.map(([name]) => [name, theirs[name]])));
}

test("stored, used, confirmed and stood in by the same responses", () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(scenes, (scene) => {
      fc.pre(isComparable(scene));
      const ours = decideByUs(scene);
      expectSame(ours, decideByPackage(scene));
      const kind = ours.isStored ? ours.serves : "not stored";
      seen.set(kind, (seen.get(kind) ?? 0) + 1);
    }),
    { numRuns: runs },
  );
  // Each outcome is met often enough to mean something.
  for (const kind of ["not stored", "no", "fresh", "stale", "stale, and refreshes"])
    expect(seen.get(kind), kind).toBeGreaterThan(runs / 1_000);
});

test("a 304 confirms the same responses, for the same time", () => {
  let kept = 0;
  fc.assert(
    fc.property(confirmations, (one) => {
      fc.pre(isComparable(sceneOf({ response: { ...one.stored, ...one.answer } })));
      const ours = confirmByUs(one);
      expectSame(ours, confirmByPackage(one));
      kept += Number(ours.isKept ?? false);
    }),
    { numRuns: runs / 4 },
  );
  expect(kept).toBeGreaterThan(runs / 20);
});

// RFC 9111 §4.3.4 has such an answer select a response without validators only. It answers our own question for one response: there is no other that it could mean.
test("a 304 without validators confirms what it was asked for; by the package it confirms nothing", () => {
  const one = { stored: { "cache-control": "max-age=60", etag: '"a"' }, answer: {} };
  expect(confirmByUs(one)).toEqual({ isOne: true, isKept: true, leftS: 60 });
  expect(confirmByPackage(one)).toEqual({ isOne: false });
});

test.each(differences)("$section: $what", ({ applies, example, ours, theirs }) => {
  const scene = sceneOf(example);
  expect(differences.filter((one) => one.applies(scene))).toEqual([
    expect.objectContaining({ applies }),
  ]);
  expect(decideByUs(scene)).toMatchObject(ours);
  expect(decideByPackage(scene)).toMatchObject(theirs);
});
