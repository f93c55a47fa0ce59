// What the document says of `?wait=` is what is taken.

import { expect, test } from "vitest";
import { waitFault, waitMsOf } from "../../../src/central/api/proof-wait.ts";
import { optionalWaitParameter, waitParameter } from "../../../src/wire/customer/proof.ts";

const asked = (seconds: unknown): URLSearchParams => new URLSearchParams({ wait: String(seconds) });

test.each([
  ["of a clear", waitParameter],
  ["of a mark", optionalWaitParameter],
])("the bounds %s are those of the document, and nothing beyond them is taken", (_of, told) => {
  const { minimum, maximum } = Object(told.schema);
  expect([minimum, maximum]).toEqual([expect.any(Number), expect.any(Number)]);
  for (const seconds of [minimum, minimum + 0.5, maximum]) {
    expect(waitMsOf(asked(seconds))).toBe(seconds * 1_000);
    expect(waitFault(asked(seconds))).toBeUndefined();
  }
  for (const seconds of [minimum - 1, minimum - 0.001, maximum + 0.001, maximum + 1]) {
    expect(waitMsOf(asked(seconds))).toBeUndefined();
    expect(waitFault(asked(seconds))).toMatchObject({
      problem: {
        errors: [{ path: "?wait", message: `must be ${minimum} to ${maximum} seconds` }],
      },
    });
  }
});

test("who says nothing waits for as long as the document says", () => {
  expect(waitMsOf(new URLSearchParams())).toBe(Object(waitParameter.schema).default * 1_000);
});

test.each(["", "soon", "1e1", "+1", "0x1", "1.", ".5", "1.0001", " 1"])(
  "%j is no number of seconds",
  (text) => {
    expect(waitMsOf(asked(text))).toBeUndefined();
  },
);
