// The filter never forgets what was added, and takes next to nothing else for it; another salt errs elsewhere.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { DigestFilter } from "../../src/core/digest-filter.ts";
import { parseSha256, type Sha256 } from "../../src/core/ids.ts";

function digest(no: number): Sha256 {
  const sha256 = parseSha256(createHash("sha256").update(String(no)).digest("hex"));
  if (sha256 === undefined) throw new TypeError("not a digest");
  return sha256;
}

const count = 10_000;

function wrongOf(salt: number): ReadonlySet<number> {
  const filter = new DigestFilter(count, salt);
  for (let no = 0; no < count; no++) filter.add(digest(no));
  for (let no = 0; no < count; no++)
    if (!filter.has(digest(no))) throw new Error(`${no} forgotten`);
  const others = Array.from({ length: count }, (_, i) => count + i);
  return new Set(others.filter((no) => filter.has(digest(no))));
}

test("what was added is there, one in a thousand others at most, and not the same with another salt", () => {
  const [one, other] = [wrongOf(1), wrongOf(0xdead_beef)];
  expect(one.size).toBeLessThan(count / 1_000);
  expect(other.size).toBeLessThan(count / 1_000);
  expect(one.intersection(other).size).toBeLessThan(Math.max(2, one.size / 2));
});

test("a filter for nothing has nothing", () => {
  expect(new DigestFilter(0, 7).has(digest(1))).toBe(false);
});
