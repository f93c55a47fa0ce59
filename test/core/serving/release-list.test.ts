// The book of a domain's versions, over any sequence of wishes, refusals, rollbacks and failed trials: one version in force, nothing served that is
// quarantined, nothing kept beyond the limit, and a pin only against what central wants.

import fc from "fast-check";
import { expect, test } from "vitest";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import {
  emptyBook,
  findRelease,
  granted,
  inForceOf,
  isStillBad,
  refusedWish,
  type ReleaseBook,
  standingOf,
  wentBack,
  type Wish,
  withoutReleases,
} from "../../../src/core/serving/release-list.ts";

const keep = 3;

function digest(no: number): Sha256 {
  const sha256 = parseSha256(no.toString(16).padStart(8, "0").padEnd(64, "0"));
  if (sha256 === undefined) throw new Error(`${no} makes no digest`);
  return sha256;
}

const wishOf = (no: number): Wish => ({
  manifest: digest(no),
  viewset_id: no,
  viewset_name: `v${no}`,
  entry: { epoch: "e", seq: no },
});

type Step =
  | { readonly kind: "activate" | "retry" | "trial fails" }
  | { readonly kind: "wish" | "bad wish" | "refused wish" | "rollback"; readonly no: number };

/** As the agent takes them, with a clock that moves. */
function taken(book: ReleaseBook, step: Step, at: string): ReleaseBook {
  const limits = { keep, at };
  if ("no" in step && step.kind !== "rollback") {
    const wish = wishOf(step.no);
    const standing = standingOf(book, wish.manifest).kind;
    if (standing === "pinned" || standing === "quarantined") return refusedWish(book, wish);
    if (step.kind === "wish") return granted(book, wish, limits);
    // What is in force is not staged anew with another outcome.
    if (standing === "in force") return book;
    const bad = { ...wish, reason: "EIO", code: "VIEWSET_PROBE_FAILED", at } as const;
    return refusedWish(book, wish, step.kind === "bad wish" ? bad : undefined);
  }
  if ("no" in step) {
    const found = findRelease(book, step.no === 0 ? undefined : `v${step.no}`);
    if (found.kind === "none") return book;
    return wentBack(book, { to: found.release, by: "operator" }, limits);
  }
  const { wish } = book;
  if (step.kind === "retry") return wish === null ? book : granted(book, wish, limits);
  const failing = inForceOf(book);
  const found = findRelease(book, undefined);
  if (failing === undefined || found.kind === "none") return book;
  const bad = { ...wishOf(failing.viewset_id), reason: "EIO", code: "INTERNAL", at } as const;
  return wentBack(book, { to: found.release, by: "trial", bad }, limits);
}

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constantFrom<Step>({ kind: "retry" }, { kind: "trial fails" }),
  fc.record({
    kind: fc.constantFrom("wish", "wish", "bad wish", "refused wish", "rollback"),
    no: fc.nat(6),
  }),
);

test("whatever happens, the book is sound", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let book = emptyBook;
      for (const [i, one] of steps.entries()) {
        const at = new Date(i * 1_000).toISOString();
        const before = book;
        book = taken(book, one, at);
        const { releases, quarantined, pin, wish } = book;
        const inForce = releases.filter(({ outcome }) => outcome === "in force");
        const digests = releases.map(({ manifest }) => manifest);
        const bad = new Set(quarantined.map(({ manifest }) => manifest));
        expect(inForce.length).toBe(releases.length === 0 ? 0 : 1);
        expect(releases.at(-1)).toBe(inForce[0]);
        expect(new Set(digests).size).toBe(digests.length);
        expect(releases.length).toBeLessThanOrEqual(keep);
        expect(inForce.some(({ manifest }) => bad.has(manifest))).toBe(false);
        // Something once served is always served.
        expect(inForceOf(before) !== undefined && inForce.length === 0).toBe(false);
        if (wish !== null && inForce[0] !== undefined) {
          const isWanted = inForce[0].manifest === wish.manifest;
          expect(standingOf(book, wish.manifest).kind === "in force").toBe(isWanted);
        }
        if (pin !== null)
          expect([pin.manifest, pin.instead_of]).toEqual([inForce[0]?.manifest, wish?.manifest]);
      }
    }),
    { numRuns: 500 },
  );
});

test("without a version named it is the newest before, and never one that was left", () => {
  let book = emptyBook;
  for (const no of [1, 2, 3])
    book = granted(book, wishOf(no), { keep, at: `2031-01-0${no}T00:00:00.000Z` });
  const back = (): string => {
    const found = findRelease(book, undefined);
    if (found.kind === "none") return found.reason;
    book = wentBack(book, { to: found.release, by: "operator" }, { keep, at: "2031-02-01" });
    return found.release.viewset_name;
  };
  expect([back(), back(), back()]).toEqual([
    "v2",
    "v1",
    "no version to go back to is kept on this host",
  ]);
  expect(findRelease(book, "v1")).toEqual({
    kind: "none",
    reason: 'version "v1" is in force already',
  });
  expect(findRelease(book, "v9")).toEqual({
    kind: "none",
    reason: 'no version "v9" is kept on this host',
  });
  for (const said of ["v3", "3", digest(3).slice(0, 8)])
    expect(findRelease(book, said)).toMatchObject({ release: { viewset_id: 3 } });
});

test("for room all may go but the one in force", () => {
  let book = emptyBook;
  for (const no of [1, 2]) book = granted(book, wishOf(no), { keep, at: "2031-01-01" });
  const all = new Set([digest(1), digest(2)]);
  expect(withoutReleases(book.releases, all)).toMatchObject([{ viewset_id: 2 }]);
});

test.each([
  ["VIEWSET_INVALID", "1.0.0", true],
  ["VIEWSET_INVALID", "0.9.0", false],
  ["VIEWSET_INVALID", undefined, false],
  ["VIEWSET_PROBE_FAILED", "0.9.0", true],
  ["VIEWSET_PROBE_FAILED", undefined, true],
] as const)("%s of release %s still counts for release 1.0.0: %s", (code, release, counts) => {
  const bad = { ...wishOf(1), reason: "", code, at: "", ...(release && { release }) };
  expect(isStillBad(bad, "1.0.0")).toBe(counts);
});
