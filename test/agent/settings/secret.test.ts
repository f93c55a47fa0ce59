// secret16 from its file: read with or without a line end, never told in an error.

import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readSecret16, secretFileOf } from "../../../src/agent/settings/secret.ts";
import { agentProgram, placeOf } from "../../../src/base/instance.ts";
import { lostSecret } from "../../../src/base/lost-secret.ts";
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

test("the file from which the unit takes the secret is gone: how it comes back goes by whether the agent has a copy", () => {
  using dir = tempDir();
  chmodSync(dir.path, 0o755);
  const credentials = join(dir.path, "credentials");
  mkdirSync(credentials, { mode: 0o700 });
  const [shown, source] = [join(credentials, "secret16"), join(dir.path, "source")];
  const unit = { ...placeOf(agentProgram), secret: { shown, source } };
  expect(lostSecret("/elsewhere/secret16", unit)).toBeUndefined();
  const stopped = lostSecret(shown, unit);
  expect(stopped?.message).toBe(`${source} is not there; the agent cannot start`);
  expect(stopped?.hint).toMatch(/^As root: install .*systemctl start accel-agent\..* join /);
  writeFileSync(shown, "");
  const runs = lostSecret(shown, unit);
  expect(runs?.message).toContain("the agent runs with the copy");
  expect(runs?.hint).toContain(` ${shown} ${source}. `);
  // Another user sees neither.
  const isRoot = process.getuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  else chmodSync(credentials, 0o000);
  const unseen = lostSecret(shown, unit);
  if (isRoot) process.seteuid?.(0);
  else chmodSync(credentials, 0o700);
  expect(unseen?.message).toBe(`${source} is not there; the agent could not start again`);
  expect(unseen?.hint).toMatch(/^As root, while the agent runs: install .*Otherwise: install /);
  writeFileSync(source, "");
  expect(lostSecret(shown, unit)).toBeUndefined();
});

test("what systemd shows while the unit runs is not to be written by anybody", () => {
  const path = "/run/credentials/accel-agent@never-here.service/secret16";
  expect(() => readSecret16(path)).toThrow(
    expect.objectContaining({ hint: expect.stringMatching(/^systemd shows it to the unit alone/) }),
  );
});
