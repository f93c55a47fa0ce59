// PEP 440: what is a version, its normal form, and the order of the PEP's own examples.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  comparePackageVersions,
  isBehind,
  oldestRelease,
  parsePackageVersion,
  type PackageVersion,
} from "../../src/core/package-version.ts";

function version(text: string): PackageVersion {
  const parsed = parsePackageVersion(text);
  if (parsed === undefined) throw new Error(`${text} is no version`);
  return parsed;
}

// In ascending order; every pair is compared. From the PEP's sections on ordering, and `packaging`'s own tests.
const ascending = [
  "0.0.dev0",
  "0",
  "0.1",
  "0.9",
  "0.10",
  "0.10.1",
  "1.0.dev456",
  "1.0a0.dev0",
  "1.0a0",
  "1.0a1",
  "1.0a2.dev456",
  "1.0a12.dev456",
  "1.0a12",
  "1.0b1.dev456",
  "1.0b2",
  "1.0b2.post345.dev456",
  "1.0b2.post345",
  "1.0rc1.dev456",
  "1.0rc1",
  "1.0rc1.post0.dev1",
  "1.0rc1.post0",
  "1.0",
  "1.0+abc",
  "1.0+abc.5",
  "1.0+abc.7",
  "1.0+abd",
  "1.0+5",
  "1.0+5.a",
  "1.0+5.0",
  "1.0+10",
  "1.0.post0.dev3",
  "1.0.post0",
  "1.0.post456.dev34",
  "1.0.post456",
  "1.0.1.dev1",
  "1.0.1",
  "1.1.dev1",
  "1.1",
  "2.0",
  "10.0",
  "2012.10",
  "20260101120000",
  "1!0.1.dev3",
  "1!0.1",
  "1!1.0",
  "2!0",
];

describe("the order", () => {
  test.each(ascending.map((text, at) => ({ text, at })))("$text", ({ text, at }) => {
    for (const [other, otherText] of ascending.entries()) {
      const compared = Math.sign(comparePackageVersions(version(text), version(otherText)));
      expect(`${text} ${compared} ${otherText}`).toBe(
        `${text} ${Math.sign(at - other)} ${otherText}`,
      );
    }
  });

  const parts = fc.record({
    epoch: fc.constantFrom("", "1!"),
    release: fc.array(fc.nat(2), { minLength: 1, maxLength: 3 }),
    pre: fc.constantFrom("", "a0", "b1", "rc1"),
    post: fc.constantFrom("", ".post0", ".post1"),
    dev: fc.constantFrom("", ".dev0", ".dev2"),
    local: fc.constantFrom("", "+a", "+1", "+a.1", "+1e3", "+0x10"),
  });
  const any = parts.map(({ epoch, release, pre, post, dev, local }) =>
    version(`${epoch}${release.join(".")}${pre}${post}${dev}${local}`),
  );

  test("is total, and 0 for those of one key only", () => {
    fc.assert(
      fc.property(any, any, any, (a, b, c) => {
        const [ab, ba] = [comparePackageVersions(a, b), comparePackageVersions(b, a)];
        expect(Math.sign(ab) + Math.sign(ba)).toBe(0);
        expect(ab === 0).toBe(a.key === b.key);
        if (ab <= 0 && comparePackageVersions(b, c) <= 0)
          expect(comparePackageVersions(a, c)).toBeLessThanOrEqual(0);
      }),
      { numRuns: 2_000 },
    );
  });

  test("the normal form is the same version, and its own normal form", () => {
    fc.assert(
      fc.property(any, (one) => {
        expect(version(one.text)).toEqual(one);
        expect(version(one.key).key).toBe(one.key);
      }),
    );
  });
});

test.each([
  ["1.0", "1.0", "1"],
  ["v1.0.0", "1.0.0", "1"],
  ["1.0.0", "1.0.0", "1"],
  ["0.0", "0.0", "0"],
  ["01.002", "1.2", "1.2"],
  ["1.1-RC-1", "1.1rc1", "1.1rc1"],
  ["1.1.alpha", "1.1a0", "1.1a0"],
  ["1.1c2", "1.1rc2", "1.1rc2"],
  ["1.1preview3", "1.1rc3", "1.1rc3"],
  ["1.0-1", "1.0.post1", "1.post1"],
  ["1.0-r4", "1.0.post4", "1.post4"],
  ["1.0rev", "1.0.post0", "1.post0"],
  ["1.0_dev_7", "1.0.dev7", "1.dev7"],
  ["1.0+Ubuntu-1_x", "1.0+ubuntu.1.x", "1+ubuntu.1.x"],
  ["0!1.0", "1.0", "1"],
  ["1.0+0x10", "1.0+0x10", "1+0x10"],
  ["1.0+12e4567", "1.0+12e4567", "1+12e4567"],
  ["1.0+007", "1.0+7", "1+7"],
  ["1.0+abc12345678901234567890", "1.0+abc12345678901234567890", "1+abc12345678901234567890"],
  ["0.1.0-rc.1", "0.1.0rc1", "0.1rc1"],
])("%s is written %s, its key is %s", (given, text, key) => {
  expect(version(given)).toMatchObject({ text, key });
});

test.each([
  "",
  "one",
  "1.",
  ".1",
  "1..0",
  "1.0 ",
  " 1.0",
  "1.0\n",
  "1.0+",
  "1.0+a..b",
  "1.0+ü",
  "1.0a1b2",
  "1.0.dev1.post1",
  "-1.0",
  "1.0-",
  "9007199254740992.0",
  "1.0a9007199254740992",
  "1.0+9007199254740992",
  "1.0+a+b",
  "1.0+1.",
  `1.${"0".repeat(130)}`,
  "../1.0",
])("%j is no version", (text) => {
  expect(parsePackageVersion(text)).toBeUndefined();
});

test.each([
  ["0.1.0", "0.2.0", true],
  ["0.2.0", "0.2", false],
  ["0.3.0-rc.1", "0.3", true],
  ["0.4.0", "0.3.9", false],
  ["", "0.3.9", undefined],
  ["nightly", "0.3.9", undefined],
  [null, "0.3.9", undefined],
  ["0.4.0", undefined, undefined],
])("release %s is behind package %s: %s", (release, newest, behind) => {
  expect(isBehind(release, newest)).toBe(behind);
});

test.each<readonly [readonly string[], string | undefined]>([
  [[], undefined],
  [["0.10.0", "0.9.0", "1.0"], "0.9.0"],
  [["a build", "2.0", "1.0RC1"], "1.0RC1"],
  [["a build", "another"], "a build"],
])("of %j the oldest release is %s", (releases, oldest) => {
  expect(oldestRelease(releases)).toBe(oldest);
});
