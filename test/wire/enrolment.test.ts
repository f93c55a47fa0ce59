// The code that people carry to a new host: what is read is what was written, and no slip of a hand makes another code of it.

import fc from "fast-check";
import { expect, test } from "vitest";
import { authorityDigestOf, readCode, writeCode } from "../../src/wire/enrolment.ts";

const hex128 = fc.stringMatching(/^[0-9a-f]{32}$/);

test("a code is read as it was written, with blanks around it and in capitals", () => {
  fc.assert(
    fc.property(hex128, fc.option(hex128, { nil: undefined }), (code, authorityDigest) => {
      const text = writeCode(code, authorityDigest);
      const read = { ok: true, code, authorityDigest };
      expect(readCode(text)).toEqual(read);
      expect(readCode(`  ${text}\r\n`)).toEqual(read);
      expect(readCode(`enrol1_${text.slice(7).toUpperCase()}`)).toEqual(read);
    }),
  );
});

test("the digest of an authority is the first half of the SHA-256 of its file, and a code has all of it", () => {
  expect(authorityDigestOf("abc")).toBe("ba7816bf8f01cfea414140de5dae2223"); // FIPS 180-2, B.1.
  expect(writeCode("0".repeat(32), authorityDigestOf("abc"))).toMatch(
    /^enrol1_0{32}ba7816bf8f01cfea414140de5dae2223[0-9a-f]{8}$/,
  );
});

test("a code that is cut short, mistyped or another thing is told before anybody is asked", () => {
  const text = writeCode("0123456789abcdef".repeat(2), authorityDigestOf("some PEM"));
  for (let length = 8; length < text.length; length++)
    expect(readCode(text.slice(0, length))).toEqual({
      ok: false,
      reason: "the code is cut short or mistyped",
    });
  const slip = text.at(20) === "0" ? "1" : "0";
  expect(readCode(`${text.slice(0, 20)}${slip}${text.slice(21)}`).ok).toBe(false);
  expect(readCode(`${text}00`).ok).toBe(false);
  expect(readCode("0123456789abcdef0123456789abcdef")).toEqual({
    ok: false,
    reason: "the code does not begin with enrol1_",
  });
  expect(readCode(" \n")).toEqual({ ok: false, reason: "the code is empty" });
});
