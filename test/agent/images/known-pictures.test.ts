// What is known of bytes for good: by which words it is found, and that it is bounded.

import { expect, test } from "vitest";
import { KnownPictures } from "../../../src/agent/images/known-pictures.ts";

const picture = (digest: string) => ({ digest, form: "webp", quality: 80 }) as const;
const worthless = { kind: "worthless" } as const;
const broken = { kind: "unreadable", reason: "is broken" } as const;

test("what was made, or failed, is not known", () => {
  const known = new KnownPictures();
  known.note(picture("a"), { kind: "made", body: new Uint8Array(1) });
  known.note(picture("a"), { kind: "failed", reason: "no memory" });
  expect(known.find(picture("a"))).toBeUndefined();
});

test("what is unreadable is so in every form, and what is worthless in its own", () => {
  const known = new KnownPictures();
  known.note(picture("a"), broken);
  known.note(picture("b"), worthless);
  expect(known.find({ ...picture("a"), form: "same-640", quality: 1 })).toEqual(broken);
  expect(known.find(picture("b"))).toEqual(worthless);
  expect(known.find({ ...picture("b"), form: "avif" })).toBeUndefined();
  expect(known.find({ ...picture("b"), quality: 79 })).toBeUndefined();
});

test.each([
  [4_096, broken],
  [16_384, worthless],
])(
  "of %i at most it is known that it is %j, and what was asked for longest ago is forgotten",
  (most, outcome) => {
    const known = new KnownPictures();
    for (let no = 0; no < most; no++) known.note(picture(`${no}`), outcome);
    expect(known.find(picture("0"))).toEqual(outcome);
    known.note(picture("one more"), outcome);
    expect(known.find(picture("0"))).toEqual(outcome);
    expect(known.find(picture("1"))).toBeUndefined();
    expect(known.find(picture("2"))).toEqual(outcome);
    expect(known.find(picture("one more"))).toEqual(outcome);
  },
);
