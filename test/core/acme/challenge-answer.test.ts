// When a challenge is answered, and for how long a directory may look because of it.

import { expect, test } from "vitest";
import {
  doubtMs,
  isToAnswer,
  mayStillLook,
  validationMaxMs,
} from "../../../src/core/acme/challenge-answer.ts";

const taken = { atMs: 1_000, isTaken: true };
const doubtful = { atMs: 1_000, isTaken: false };

test("a challenge is answered once; again only where nobody knows whether the answer arrived, after a while", () => {
  expect(isToAnswer(undefined, 1_000)).toBe(true);
  expect(isToAnswer(taken, 1_000 + 7 * 86_400_000)).toBe(false);
  expect(isToAnswer(doubtful, 1_000 + doubtMs - 1)).toBe(false);
  expect(isToAnswer(doubtful, 1_000 + doubtMs)).toBe(true);
});

test("a directory may look for a while at what was answered, and not at what was not", () => {
  expect(mayStillLook(undefined, 1_000)).toBe(false);
  for (const answer of [taken, doubtful]) {
    expect(mayStillLook(answer, 1_000 + validationMaxMs - 1)).toBe(true);
    expect(mayStillLook(answer, 1_000 + validationMaxMs)).toBe(false);
  }
});
