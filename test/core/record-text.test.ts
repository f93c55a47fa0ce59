// What strangers send, made safe for records.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { recordText } from "../../src/core/record-text.ts";

describe("record text", () => {
  it.each([
    ["/plain?x=1", "/plain?x=1"],
    ["a\tb\r\nc\x00", "a\\x09b\\x0d\\x0ac\\x00"],
    ["caf\xc3\xa9", "café"],
    ["caf\xe9", "caf\xe9"],
    ["\ud800x", "\ufffdx"],
  ])("%j becomes %j", (text, expected) => {
    expect(recordText(text, 100)).toBe(expected);
  });

  it("is cut between characters", () => {
    expect(recordText("ab😀", 3)).toBe("ab");
    expect(recordText("abcdef", 3)).toBe("abc");
  });

  it("is whole Unicode without control characters, within the limit", () => {
    const unit = fc.nat(0xffff).map((code) => String.fromCharCode(code)); // Lone surrogates too.
    fc.assert(
      fc.property(fc.string({ unit }), fc.nat(20), (text, charsMax) => {
        const made = recordText(text, charsMax);
        expect(made.isWellFormed()).toBe(true);
        expect(made.length).toBeLessThanOrEqual(charsMax);
        // oxlint-disable-next-line no-control-regex -- control characters are what must be gone.
        expect(made).not.toMatch(/[\x00-\x1f\x7f-\x9f\u2028]/);
      }),
    );
  });
});
