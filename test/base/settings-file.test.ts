// Settings from disk: what cannot be used is one error that names file, line and key.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Health } from "../../src/base/health.ts";
import { adviceFor, agentProgram, placeOf, placeOfConfig } from "../../src/base/instance.ts";
import { silentLog } from "../../src/base/log.ts";
import { createSdNotify } from "../../src/base/sd-notify.ts";
import { integer } from "../../src/base/settings-fields.ts";
import {
  checkedSettings,
  loadKnownSettings,
  loadSettings,
  peekAnyway,
  peekSetting,
  reloadSettings,
  warnUnknown,
} from "../../src/base/settings-file.ts";
import { withKeys } from "../../src/base/settings-text.ts";
import { AccelError } from "../../src/core/faults.ts";
import { tempDir } from "../support/temp-dir.ts";

const table = { port: { doc: "Where.", fallback: 80, parse: integer(0, 65_535) } };

function write(dir: string, yaml: string): string {
  const path = join(dir, "x.yaml");
  writeFileSync(path, yaml);
  return path;
}

function faultOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof AccelError) return `${error.code} ${error.message}`;
    throw error;
  }
  throw new Error("no fault");
}

test.each([
  ["port: 80\nlist: [\n", 2],
  ["port: 80\nlist: [", 2],
  ["port: 80\nlist: [\n\n", 2],
  ["port: 80\nlist: [\n  # one\n\n# two\n", 2],
  ['port: "80\n', 1],
  ["port: 80\nlist: [}\nport: 81\n", 2],
])("what is missing at the end of %j is told of a line that there is: %i", (yaml, line) => {
  using dir = tempDir();
  const path = write(dir.path, yaml);
  expect(faultOf(() => loadSettings(table, path))).toContain(`\n  ${path}:${line}: `);
  const at = new RegExp(` is no YAML: .* at line ${line}(?:, column \\d+)?$`);
  expect(faultOf(() => peekSetting(path, "port"))).toMatch(at);
  expect(faultOf(() => withKeys(yaml, { port: "81" }, ""))).toMatch(at);
});

test("a valid file is read", () => {
  using dir = tempDir();
  expect(loadSettings(table, write(dir.path, "port: 8080\n"))).toEqual({ port: 8_080 });
});

test("every error has file, line and key", () => {
  using dir = tempDir();
  const path = write(dir.path, "port: -1\nprt: 5\n");
  expect(faultOf(() => loadSettings(table, path)).split("\n")).toEqual([
    `SETTINGS_INVALID the settings file ${path} is not valid:`,
    `  ${path}:2: prt unknown key; did you mean port?`,
    `  ${path}:1: port must be an integer from 0 to 65535, found -1`,
  ]);
});

test("a program that runs is told of a key that nobody knows", () => {
  using dir = tempDir();
  const path = write(dir.path, "port: 8080\nprt: 5\n");
  const unknown = `${path}:2: prt unknown key; did you mean port?`;
  const text = "port: 8080\nprt: 5\n";
  expect(loadKnownSettings(table, path)).toEqual({
    settings: { port: 8_080 },
    unknown: [unknown],
    text,
  });
  const said: string[] = [];
  const check = (isReload: boolean): unknown =>
    checkedSettings(table, { config: path, reload: isReload }, (text) => void said.push(text));
  // It fails by the key, and says what a start and a reload make of it: nothing else is wrong.
  expect(() => check(false)).toThrow(
    expect.objectContaining({
      code: "SETTINGS_INVALID",
      message: `the settings file ${path} has keys that this release does not know:\n  ${unknown}`,
      hint: expect.stringMatching(
        /^The program starts and reloads with this file all the same: it warns, and ignores these keys\./,
      ),
    }),
  );
  expect(check(true)).toEqual({ port: 8_080 });
  expect(said).toEqual([`${unknown}; it is not used\n`]);
});

test("a warning names the keys that nobody knows, until a reload meets none", () => {
  using dir = tempDir();
  const path = write(dir.path, "prt: 5\nspol: {}\n");
  const health = new Health(() => new Date(0));
  const { settings, unknown } = loadKnownSettings(table, path);
  warnUnknown(health, unknown, path);
  const warned = (): readonly string[] =>
    health.list().map(({ code, severity, text }) => `${severity} ${code}: ${text}`);
  const head =
    "warning settings_unknown: the settings file has keys that this release does not know";
  expect(warned()).toEqual([
    `${head}; they are not used: ${path}:1: prt unknown key; did you mean port?; ${path}:2: spol unknown key`,
  ]);
  const reload = (yaml: string): readonly string[] => {
    write(dir.path, yaml);
    const running = { table, path, running: settings, apply: () => ({}) };
    reloadSettings(createSdNotify({}), silentLog(), { ...running, health });
    return warned();
  };
  const many = Array.from({ length: 12 }, (_, no) => `key_${no}: 1\n`).join("");
  expect(reload(many)).toEqual([expect.stringMatching(/key_9 unknown key; and 2 more$/)]);
  // What is not valid changes nothing.
  expect(reload("port: -1\n")).toHaveLength(1);
  expect(reload("port: 8080\n")).toEqual([]);
  expect(reload("prt: 5\n")).toHaveLength(1);
});

test.each([
  [
    "/etc/accel-agent/agent.yaml",
    "`systemctl reload accel-agent`. `accel-agent check` names them, too.",
  ],
  [
    "/etc/accel-agent/shop/agent.yaml",
    "`systemctl reload accel-agent@shop`. `accel-agent check --instance shop` names them, too.",
  ],
  [
    "/etc/accel-central/central.yaml",
    "`systemctl reload accel-central`. `accel-central check` names them, too.",
  ],
  ["/srv/a.yaml", "SIGHUP does that. `check --config /srv/a.yaml` names them, too."],
])("of unknown keys in %s the advice names the program's own commands", (path, commands) => {
  const place = placeOfConfig(agentProgram, path) ?? placeOf(agentProgram);
  const health = new Health(
    () => new Date(0),
    (hint) => adviceFor(place, hint),
  );
  warnUnknown(health, [`${path}:1: prt unknown key`], path);
  expect(health.list()).toEqual([
    expect.objectContaining({
      hint: `Correct or remove them and reload: ${commands} Those of a later release are used once it is installed.`,
    }),
  ]);
});

test("a file that cannot be read", () => {
  expect(faultOf(() => loadSettings(table, "/nowhere/x.yaml"))).toMatch(
    /^SETTINGS_INVALID the settings file \/nowhere\/x\.yaml cannot be read: ENOENT/,
  );
});

test.each([
  ["state_dir: /a\nother: [\n", "SETTINGS_INVALID"],
  ["state_dir: /a\n", "/a"],
  ["state_dir: 5\n", undefined],
  ["other: 5\n", undefined],
  ["text\n", undefined],
  ["", undefined],
])("one key of %j", (yaml, value) => {
  using dir = tempDir();
  const path = write(dir.path, yaml);
  if (value === "SETTINGS_INVALID")
    expect(faultOf(() => peekSetting(path, "state_dir"))).toContain(`SETTINGS_INVALID`);
  else expect(peekSetting(path, "state_dir")).toBe(value);
});

test.each([
  ["state_dir: /a\nother: [\n", "/a"],
  ["other: {\n  x\nstate_dir: '/a'  # there\n", "/a"],
  ["other: [\nstate_dir: '/a\n", undefined],
  ["other: [\n  state_dir: /a\n", undefined],
  ["other: [\n", undefined],
])("one key of %j, which is no YAML, by its own line", (yaml, value) => {
  using dir = tempDir();
  const path = write(dir.path, yaml);
  expect(peekAnyway(path, "state_dir")).toEqual({
    value,
    fault: expect.objectContaining({
      code: "SETTINGS_INVALID",
      message: expect.stringMatching(/ is no YAML: .* at line \d/),
    }),
  });
  write(dir.path, "state_dir: /b\n");
  expect(peekAnyway(path, "state_dir")).toEqual({ value: "/b", fault: undefined });
});

test("one key of a file that does not exist", () => {
  expect(peekSetting("/nowhere/x.yaml", "state_dir")).toBeUndefined();
});
