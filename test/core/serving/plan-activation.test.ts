// What an activation fetches and gives up: never more than there is room for, never what is needed, never more than it must.

import fc from "fast-check";
import { expect, test } from "vitest";
import { blobList, unionBytes } from "../../../src/core/blob-list.ts";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import { planActivation, type HeldRelease } from "../../../src/core/serving/plan-activation.ts";

function digest(no: number): Sha256 {
  const sha256 = parseSha256(no.toString(16).padStart(12, "0").padEnd(64, "0"));
  if (sha256 === undefined) throw new Error(`${no} makes no digest`);
  return sha256;
}

/** Each blob is of the size of its number. */
const blob = (no: number) => ({ sha256: digest(no), size: no });
const listOf = (...nos: readonly number[]) => blobList(nos.map(blob));

const held = (
  day: number,
  standing: HeldRelease["standing"],
  ...nos: readonly number[]
): HeldRelease => ({
  domain: "a.example",
  manifest: digest(1_000 + day),
  standing,
  activatedAt: `2031-01-0${day}T00:00:00.000Z`,
  blobs: listOf(...nos),
});

const old = held(1, "kept", 10, 11);
const newer = held(2, "kept", 10, 12);
const inForce = held(3, "needed", 10, 13);
/** 10 and 14, of which 14 is not here. */
const next = { next: listOf(10, 14), lacking: [blob(14)] };

test.each<[string, number, readonly HeldRelease[] | string]>([
  ["all fit, since they share what they share", 10 + 11 + 12 + 13 + 14, []],
  ["the oldest goes first", 10 + 12 + 13 + 14, [old]],
  ["all that are kept go", 10 + 13 + 14, [old, newer]],
  ["what is in force never goes", 10 + 13 + 14 - 1, "need 37 bytes, more than"],
])("%s", (_, bytesMax, expected) => {
  const plan = planActivation({ ...next, held: [inForce, newer, old], bytesMax });
  if (typeof expected === "string")
    expect(plan).toMatchObject({ kind: "refused", reason: expect.stringContaining(expected) });
  else expect(plan).toEqual({ kind: "go", fetch: [blob(14)], fetchBytes: 14, givenUp: expected });
});

test("it fits, gives up only what is kept, oldest first, and none too many", () => {
  const nos = fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { maxLength: 8 });
  const release = fc
    .tuple(fc.integer({ min: 1, max: 9 }), fc.constantFrom("needed", "kept"), nos)
    .map(([day, standing, has]) => held(day, standing, ...has));
  fc.assert(
    fc.property(fc.array(release, { maxLength: 6 }), nos, fc.nat(100), (some, wanted, bytesMax) => {
      const list = listOf(...wanted);
      const plan = planActivation({ next: list, lacking: [], held: some, bytesMax });
      const bytesOf = (left: readonly HeldRelease[]): number =>
        unionBytes([list, ...left.map(({ blobs }) => blobs)]);
      const needed = some.filter(({ standing }) => standing === "needed");
      if (plan.kind === "refused") {
        expect(bytesOf(needed)).toBeGreaterThan(bytesMax);
        return;
      }
      const { givenUp } = plan;
      const left = some.filter((one) => !givenUp.includes(one));
      const keptDays = left
        .filter(({ standing }) => standing === "kept")
        .map(({ activatedAt }) => activatedAt);
      expect(bytesOf(left)).toBeLessThanOrEqual(bytesMax);
      expect(needed.filter((one) => !left.includes(one))).toEqual([]);
      const days = givenUp.map(({ activatedAt }) => activatedAt);
      expect(days.filter((given) => keptDays.some((day) => given > day))).toEqual([]);
      const last = givenUp.at(-1);
      if (last !== undefined) expect(bytesOf([...left, last])).toBeGreaterThan(bytesMax);
    }),
  );
});
