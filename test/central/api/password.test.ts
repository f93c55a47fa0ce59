// Passwords at rest: both kinds are verified, neither can be mistaken, and nothing that was stored wrongly opens anything.

import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { hashPassword, verifyPassword } from "../../../src/central/api/password.ts";

describe.each(["argon2id", "scrypt"] as const)("%s", (kind) => {
  test("the password opens it, no other does", async () => {
    const stored = await hashPassword("correct horse", randomBytes, kind);
    expect(stored.startsWith(`$${kind}$`)).toBe(true);
    expect(await verifyPassword("correct horse", stored)).toBe(true);
    for (const other of ["correct hors", "Correct horse", "correct horse ", ""])
      expect(await verifyPassword(other, stored)).toBe(false);
  });

  test("two of one password differ", async () => {
    const make = async () => hashPassword("same", randomBytes, kind);
    expect(await make()).not.toBe(await make());
  });

  test("one password in two forms of Unicode is one", async () => {
    const stored = await hashPassword("caf\u00e9", randomBytes, kind);
    expect(await verifyPassword("cafe\u0301", stored)).toBe(true);
  });

  test("what was changed in it does not open", async () => {
    const stored = await hashPassword("x", randomBytes, kind);
    const cut = stored.slice(0, -8);
    expect(await verifyPassword("x", cut)).toBe(false);
    const [a = "", b = "", c = "", ...rest] = stored.split("$");
    expect(await verifyPassword("x", [a, b, `${c},x=1`, ...rest].join("$"))).toBe(false);
  });
});

test.each(["", "x", "$argon2id$", "$md5$x$y", "$scrypt$ln=15,r=8,p=3$$"])(
  "%j opens nothing",
  async (stored) => {
    expect(await verifyPassword("", stored)).toBe(false);
    expect(await verifyPassword("x", stored)).toBe(false);
  },
);

test("what the reference implementation wrote opens", async () => {
  // `echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1`, as its own tests have it.
  const stored =
    "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
  expect(await verifyPassword("password", stored)).toBe(true);
});
