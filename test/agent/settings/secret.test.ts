// secret16 from its file: read with or without a line end, never told in an error.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { goneSecretFile, readSecret16, secretFileOf } from "../../../src/agent/settings/secret.ts";
import { tempDir } from "../../support/temp-dir.ts";

const secret = "0123456789abcdef0123456789abcdef";

test.each([secret, `${secret}\n`, ` ${secret}\r\n`])("%j is read", (content) => {
  using dir = tempDir();
  const path = join(dir.path, "secret16");
  writeFileSync(path, content);
  expect(readSecret16(path)).toBe(secret);
});

test.each([
  ["", "0 characters"],
  [secret.slice(1), "31 characters"],
  [`${secret}0`, "33 characters"],
  [secret.toUpperCase(), "other characters than 0-9 and a-f"],
  [`${secret}\n${secret}`, "65 characters"],
])("%j is refused without telling it", (content, what) => {
  using dir = tempDir();
  const path = join(dir.path, "secret16");
  writeFileSync(path, content);
  expect(() => readSecret16(path)).toThrow(
    expect.objectContaining({
      code: "SECRET_UNREADABLE",
      message: `${path} must hold 32 lower-case hex characters, it holds ${what}`,
    }),
  );
});

test("a file that is missing is told by its path", () => {
  expect(() => readSecret16("/nowhere/secret16")).toThrow(
    expect.objectContaining({
      code: "SECRET_UNREADABLE",
      message: expect.stringContaining("/nowhere/secret16"),
    }),
  );
});

test("outside of the unit, the secret is read where systemd takes it from at the next start", () => {
  using dir = tempDir();
  const unit = { shown: join(dir.path, "shown"), source: join(dir.path, "source") };
  expect(secretFileOf(unit.shown, unit)).toBe(unit.source);
  expect(secretFileOf("/elsewhere/secret16", unit)).toBe("/elsewhere/secret16");
  writeFileSync(unit.shown, "");
  expect(secretFileOf(unit.shown, unit)).toBe(unit.shown);
  // It was rotated: what the unit was shown is the one before.
  writeFileSync(unit.source, "");
  expect(secretFileOf(unit.shown, unit)).toBe(unit.source);
});

test("the file from which the unit takes the secret is gone, and its copy is there", () => {
  using dir = tempDir();
  const unit = { shown: join(dir.path, "shown"), source: join(dir.path, "source") };
  expect(goneSecretFile(unit.shown, unit)).toBeUndefined();
  writeFileSync(unit.shown, "");
  expect(goneSecretFile(unit.shown, unit)).toBe(unit.source);
  expect(goneSecretFile("/elsewhere/secret16", unit)).toBeUndefined();
  writeFileSync(unit.source, "");
  expect(goneSecretFile(unit.shown, unit)).toBeUndefined();
});
