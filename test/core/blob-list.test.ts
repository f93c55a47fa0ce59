// What a release needs as keys and sizes: each content once, unions counted once.

import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { blobKey, blobList, sumBytes, unionBytes } from "../../src/core/blob-list.ts";
import { parseSha256, type Sha256 } from "../../src/core/ids.ts";

function blob(no: number): { readonly sha256: Sha256; readonly size: number } {
  const sha256 = parseSha256(createHash("sha256").update(String(no)).digest("hex"));
  if (sha256 === undefined) throw new TypeError("not a digest");
  return { sha256, size: no * 1_000 };
}

test("bytes of lists: each content once in a list, and once in a union of them", () => {
  const numbers = fc.array(fc.nat({ max: 30 }), { maxLength: 40 });
  fc.assert(
    fc.property(fc.array(numbers, { maxLength: 5 }), (lists) => {
      const made = lists.map((numbersOf) => blobList(numbersOf.map(blob)));
      const bytesOf = (some: Iterable<number>): number =>
        [...new Set(some)].reduce((sum, no) => sum + blob(no).size, 0);
      expect(unionBytes(made)).toBe(bytesOf(lists.flat()));
      expect(sumBytes(made)).toBe(lists.reduce((sum, list) => sum + bytesOf(list), 0));
      for (const [i, { keys }] of made.entries())
        expect(new Set(keys)).toEqual(new Set(lists[i]?.map((no) => blobKey(blob(no).sha256))));
    }),
  );
});

test("a key is the first 48 bits of a digest, as a whole number", () => {
  expect(blobKey("0000000000ff".padEnd(64, "1"))).toBe(255);
  expect(blobKey("f".repeat(64))).toBe(2 ** 48 - 1);
});
