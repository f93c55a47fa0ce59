// What errors of PostgreSQL and of the way there mean, and that no message of theirs names a secret.

import { expect, test } from "vitest";
import { AccelError, codeOf } from "../../../../src/core/faults.ts";
import {
  postgresTrouble,
  postgresFault,
} from "../../../../src/central/store/engine/postgres-faults.ts";

const coded = (code: string, text = "words of the server"): Error =>
  Object.assign(new Error(text), { code });

test.each([
  [coded("40001"), "again"],
  [coded("40P01"), "again"],
  [coded("23505"), "constraint"],
  [coded("23503"), "constraint"],
  [coded("57P01"), "away"],
  [coded("57P03"), "away"],
  [coded("08006"), "away"],
  [coded("25006"), "away"],
  [coded("ECONNREFUSED"), "away"],
  [new Error("Connection terminated unexpectedly"), "away"],
  [new Error("PostgreSQL did not answer for 70 s"), "away"],
  [coded("57014"), "busy"],
  [coded("55P03"), "busy"],
  [coded("53300"), "busy"],
  [new Error("timeout exceeded when trying to connect"), "busy"],
  // Defects: they are not repeated, and not told as a lack.
  [coded("42601"), undefined],
  [coded("23502"), undefined],
  [coded("25P02"), undefined],
  [new TypeError("undefined is not a function"), undefined],
  ["a text", undefined],
] as const)("%s is %s", (error, trouble) => {
  expect(postgresTrouble(error)).toBe(trouble);
});

test.each([
  [coded("57P01"), "STORE_UNREACHABLE"],
  [coded("55P03"), "BUSY"],
  [coded("28P01", 'password authentication failed for user "accel"'), "STORE_UNSUITED"],
  [coded("3D000"), "STORE_UNSUITED"],
  [coded("42501"), "STORE_UNSUITED"],
  [coded("40001"), "INTERNAL"],
  [coded("42601"), "INTERNAL"],
] as const)("callers get %s as %s, with its place", (error, code) => {
  const fault = postgresFault(error, "postgres://accel@db:5432/accel");
  expect(codeOf(fault)).toBe(code);
  if (fault instanceof AccelError)
    expect(fault.message).toContain("postgres://accel@db:5432/accel");
  else expect(fault).toBe(error);
});

test("connections of which none becomes free may all wait for a silent server, which is said", () => {
  const waited = new Error("timeout exceeded when trying to connect");
  expect(postgresFault(waited, "db")).toMatchObject({
    code: "BUSY",
    message: "no connection to the store db became free in time: it is silent, or overloaded",
    hint: expect.stringContaining("`store_unreachable`"),
  });
  expect(postgresFault(coded("53300"), "db")).toMatchObject({
    message: expect.stringMatching(/^the store db is overloaded/),
  });
});

test("who waits for a lock in vain is told of a lock, and of no overload", () => {
  expect(postgresFault(coded("55P03"), "db")).toMatchObject({
    code: "BUSY",
    message: expect.stringMatching(/^another session of the store db holds what is to be changed/),
  });
});
