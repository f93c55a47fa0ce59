// Digests that both sides must compute alike: canonical JSON, the journal's chain, a set's sum.

import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson } from "../../../src/core/journal/canonical-json.ts";
import { bodyDigest, chainStart, nextChain } from "../../../src/core/journal/journal-chain.ts";
import { changedSetDigest, emptySetDigest } from "../../../src/core/addresses/set-digest.ts";

test("canonical JSON is JSON, whatever the order of keys", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(canonicalJson(JSON.parse(text))).toBe(text);
    }),
  );
  expect(canonicalJson({ b: 1, a: undefined, c: [null, { z: "ü", y: 2 }] })).toBe(
    '{"b":1,"c":[null,{"y":2,"z":"ü"}]}',
  );
});

test("every part of an entry changes the chain", () => {
  const link = {
    seq: 1,
    kind: "cache.clear",
    at: "2026-01-01T00:00:00Z",
    bodyDigest: bodyDigest({ a: 1 }),
  };
  const chain = nextChain(chainStart, link);
  const others = [
    nextChain(chain, link),
    nextChain(chainStart, { ...link, seq: 2 }),
    nextChain(chainStart, { ...link, kind: "x" }),
    nextChain(chainStart, { ...link, at: "2026-01-01T00:00:01Z" }),
    nextChain(chainStart, { ...link, bodyDigest: bodyDigest({ a: 2 }) }),
  ];
  expect(new Set([chain, ...others]).size).toBe(6);
  expect(nextChain(chainStart, { ...link, bodyDigest: bodyDigest({ a: 1 }) })).toBe(chain);
});

const element = fc.record({ bot: fc.string({ minLength: 1, maxLength: 5 }), range: fc.ipV4() });

test("a set's digest depends on its elements alone, not on the way there", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(element, { selector: ({ bot, range }) => `${bot}\n${range}`, maxLength: 20 }),
      fc.integer({ min: 0, max: 20 }),
      (elements, cut) => {
        const whole = changedSetDigest(emptySetDigest, elements, []);
        const shuffled = changedSetDigest(
          changedSetDigest(emptySetDigest, elements.slice(cut), []),
          elements.slice(0, cut),
          [],
        );
        expect(shuffled).toBe(whole);
        expect(changedSetDigest(whole, [], elements)).toBe(emptySetDigest);
      },
    ),
  );
});
