// What an agent last read without an error is kept, and is what a host is looked at by while its settings file is broken.

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  keepLastSettings,
  loadUsableSettings,
  stateDirOf,
} from "../../../src/agent/settings/last-settings.ts";
import { tempDir } from "../../support/temp-dir.ts";

const valid = (stateDir: string, more = ""): string =>
  `central_url: https://central.example.com\nname16: 0123456789abcdef\nstate_dir: ${stateDir}\n${more}`;

test("a file that is broken is stood in for by what was kept; a good one, or none, is not", async () => {
  using dir = tempDir();
  const stateDir = join(dir.path, "state");
  mkdirSync(stateDir);
  const config = join(dir.path, "agent.yaml");
  const write = (text: string): void => writeFileSync(config, text);
  for (const broken of ["spool: [\n", "spool: { max: much }\n"]) {
    write(valid(stateDir, broken));
    // An agent of an earlier release has kept none.
    expect(() => loadUsableSettings(config)).toThrow(config);
    await keepLastSettings(stateDir, valid(stateDir, "log_level: warn\n"));
    const { settings, broken: told } = loadUsableSettings(config);
    expect(settings).toMatchObject({ state_dir: stateDir, log_level: "warn" });
    expect(told?.fault).toMatchObject({ code: "SETTINGS_INVALID" });
    expect(told?.fault.message).toContain(config);
    expect(told?.keptAt).toEqual(statSync(join(stateDir, "settings.yaml")).mtime);
    await keepLastSettings(stateDir, "central_url: [\n");
  }
  write(valid(stateDir, "log_level: error\n"));
  expect(loadUsableSettings(config)).toMatchObject({
    settings: { log_level: "error" },
    broken: undefined,
  });
  await keepLastSettings(stateDir, valid(stateDir));
  expect(() => loadUsableSettings(join(dir.path, "mistyped.yaml"))).toThrow(/cannot be read/);
});

test("a file that is gone from where its unit has it is to be put back, and the host has not to join again", async () => {
  using dir = tempDir();
  const stateDir = join(dir.path, "state");
  mkdirSync(stateDir);
  const config = join(dir.path, "agent.yaml");
  expect(() => loadUsableSettings(config, { stateDir })).toThrow(/cannot be read/);
  await keepLastSettings(stateDir, valid(stateDir, "log_level: warn\n"));
  const unit = "accel-agent@b.service";
  const { settings, broken } = loadUsableSettings(config, { stateDir, unit });
  expect(settings).toMatchObject({ log_level: "warn" });
  expect(broken?.fault.message).toBe(`the settings file ${config} is gone`);
  expect(broken?.fault.hint).toBe(
    `Put back what the agent read last, as root: install -D -o root -g root -m 644 ${join(stateDir, "settings.yaml")} ${config}; systemctl start accel-agent@b`,
  );
  expect(() => loadUsableSettings(config)).toThrow(/cannot be read/);
});

test("the copy is its owner's alone, and written where it says something new", async () => {
  using dir = tempDir();
  const path = join(dir.path, "settings.yaml");
  await keepLastSettings(dir.path, "a: 1\n");
  const { ino, mode } = statSync(path);
  expect(mode & 0o777).toBe(0o600);
  await keepLastSettings(dir.path, "a: 1\n");
  expect(statSync(path).ino).toBe(ino);
  await keepLastSettings(dir.path, "a: 2\n");
  expect([readFileSync(path, "utf8"), readdirSync(dir.path)]).toEqual([
    "a: 2\n",
    ["settings.yaml"],
  ]);
});

test("the state directory of a file that is broken, and of one that names none", () => {
  using dir = tempDir();
  const config = join(dir.path, "agent.yaml");
  writeFileSync(config, "state_dir: /srv/edge\nspool: [\n");
  expect(stateDirOf(config)).toBe("/srv/edge");
  writeFileSync(config, "spool: [\n");
  expect(stateDirOf(config)).toBeUndefined();
  writeFileSync(config, "spool: {}\n");
  expect(stateDirOf(config)).toBe("/var/lib/accel-agent");
  expect(stateDirOf(join(dir.path, "none.yaml"))).toBe("/var/lib/accel-agent");
});
