// Reads a settings file from disk. Errors say file, line, key and what to do about each.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse } from "yaml";
import { AccelError, messageOf, systemCode } from "../core/faults.ts";
import { absentSettings, unjoinedText } from "./absent-settings.ts";
import { closedWay } from "./closed-settings.ts";
import type { Health } from "./health.ts";
import { agentProgram, placeOf, placeOfConfig } from "./instance.ts";
import type { Log } from "./log.ts";
import type { SdNotify } from "./sd-notify.ts";
import {
  readSettings,
  restartKeys,
  yamlReason,
  type FieldTable,
  type Parsed,
  type Settings,
  type SettingsError,
} from "./settings.ts";

/** Reads all settings. Throws SETTINGS_INVALID with a line for every error. */
export function loadSettings<const T extends FieldTable>(table: T, path: string): Settings<T> {
  return load(table, path, "refused").settings;
}

export type KnownSettings<T extends FieldTable> = {
  readonly settings: Settings<T>;
  /** A line for each key that is not used. */
  readonly unknown: readonly string[];
  /** The file as it was read. */
  readonly text: string;
};

/**
 * Reads the settings that this release knows, as a program does that runs: after a return to an earlier release a key
 * of the later one must not keep it from starting. Throws SETTINGS_INVALID with a line for every other error.
 */
export function loadKnownSettings<const T extends FieldTable>(
  table: T,
  path: string,
): KnownSettings<T> {
  return load(table, path, "told");
}

function load<const T extends FieldTable>(
  table: T,
  path: string,
  unknownKeys: "refused" | "told",
): KnownSettings<T> {
  let yaml: string;
  try {
    yaml = readFileSync(path, "utf8");
  } catch (error) {
    throw unreadFault(path, error);
  }
  const read = readSettings(placed(table, path), yaml, unknownKeys);
  const lineOf = ({ line, key, message }: SettingsError): string =>
    `${path}:${line}: ${key === "" ? "" : `${key} `}${message}`;
  if (read.ok) return { settings: read.settings, unknown: read.unknown.map(lineOf), text: yaml };
  const lines = read.errors.map((error) => `  ${lineOf(error)}`);
  const isUsable = read.errors.every(({ isUnknownKey }) => isUnknownKey === true);
  throw new AccelError(
    "SETTINGS_INVALID",
    `the settings file ${path} ${isUsable ? "has keys that this release does not know" : "is not valid"}:\n${lines.join("\n")}`,
    isUsable ? { hint: ignoredHint } : unjoinedHint(path, read.errors),
  );
}

/** An instance has a state directory and a secret of its own, also where its file does not say so: with those of the plain agent it would be taken for that. */
function placed<T extends FieldTable>(table: T, path: string): T {
  const place = placeOfConfig(agentProgram, path);
  const { state_dir: stateDir, secret16_file: secret } = table;
  if (place?.instance === undefined || stateDir === undefined || secret === undefined) return table;
  return {
    ...table,
    state_dir: { ...stateDir, fallback: place.stateDir },
    secret16_file: { ...secret, fallback: place.secret.shown },
  };
}

const ignoredHint =
  "The program starts and reloads with this file all the same: it warns, and ignores these keys. They are refused here, so that a slip is found before that. Correct or remove them; those of a later release are used once it is installed.";

function unreadFault(path: string, error: unknown): AccelError {
  const message = `the settings file ${path} cannot be read: ${messageOf(error)}`;
  const place = placeOfConfig(agentProgram, path);
  if (systemCode(error) === "EACCES" && place !== undefined)
    return new AccelError("SETTINGS_INVALID", message, {
      hint: `${closedWay(path) ?? "The agent, which has a user of its own, reads it where its mode is 0644"}. Until then a command that reads it is given as root.`,
    });
  if (place === undefined || systemCode(error) !== "ENOENT")
    return new AccelError("SETTINGS_INVALID", message);
  const { kind, message: known, hint } = absentSettings(path, place);
  return new AccelError("SETTINGS_INVALID", kind === "unjoined" ? message : known, { hint });
}

/** What `join` writes; without both of them a host has not joined. */
const joinedKeys: readonly string[] = ["central_url", "name16"];

/** What to do about a settings file of the agent that is there and has none of the keys that `join` writes; nothing for any other. */
function unjoinedHint(path: string, errors: readonly SettingsError[]): { readonly hint?: string } {
  const missing = errors.filter(
    (error) => error.isMissing === true && joinedKeys.includes(error.key),
  );
  if (missing.length < joinedKeys.length) return {};
  // It was emptied, or another was written over it.
  const place = placeOfConfig(agentProgram, path);
  const before = place === undefined ? undefined : absentSettings(path, place);
  if (before?.kind === "gone") return { hint: before.hint };
  const others = errors.length > missing.length ? " Correct the other lines before." : "";
  return { hint: `${unjoinedText(path)}, and writes ${joinedKeys.join(" and ")}.${others}` };
}

/** Returns how a host joins whose settings file, which can be read, has none of the keys that `join` writes; undefined for any other. */
export function howToJoin(path: string): string | undefined {
  let yaml: string;
  try {
    yaml = readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
  const parse = (): Parsed<undefined> => ({ ok: true, value: undefined });
  const table = Object.fromEntries(joinedKeys.map((key) => [key, { doc: "", parse }]));
  const read = readSettings(table, yaml, "told");
  if (read.ok) return undefined;
  return unjoinedHint(
    path,
    read.errors.filter(({ isUnknownKey }) => isUnknownKey !== true),
  ).hint;
}

/**
 * Returns one top-level text of a settings file whose other keys are not this caller's business, or undefined
 * if it is not set or the file cannot be read. Throws SETTINGS_INVALID for text that is no YAML.
 */
export function peekSetting(path: string, key: string): string | undefined {
  let yaml: string;
  try {
    yaml = readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
  let value: unknown;
  try {
    value = (parse(yaml) as Record<string, unknown> | null)?.[key];
  } catch (error) {
    throw new AccelError(
      "SETTINGS_INVALID",
      `the settings file ${path} is no YAML: ${yamlReason(error, yaml)}`,
    );
  }
  return typeof value === "string" ? value : undefined;
}

/**
 * Peeks also into a text that is no YAML: by the key's own line, where that one can be read. The fault is that of the text.
 */
export function peekAnyway(
  path: string,
  key: string,
): { readonly value: string | undefined; readonly fault: AccelError | undefined } {
  try {
    return { value: peekSetting(path, key), fault: undefined };
  } catch (error) {
    if (!(error instanceof AccelError)) throw error;
    return { value: valueInLine(path, key), fault: error };
  }
}

function valueInLine(path: string, key: string): string | undefined {
  try {
    const line = readFileSync(path, "utf8")
      .split("\n")
      .find((one) => one.startsWith(`${key}:`));
    const value = (parse(line ?? "") as Record<string, unknown> | null)?.[key];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** An option of `check`. */
export const reloadOption = { reload: { type: "boolean", default: false } } as const;
export const reloadHelp =
  "  --reload          judge as a reload does: the settings file alone; keys that this release does not know are told, and are no errors; fails where the program runs and does not answer";

/** The last line of `check --help`. */
export const unknownKeysHelp =
  "A key that this release does not know is an error here. A start and a reload warn of it, and ignore it.";

/** Reads the settings for `check`, and writes which keys are not used. Throws SETTINGS_INVALID. */
export function checkedSettings<const T extends FieldTable>(
  table: T,
  { config, reload: isReload }: { readonly config: string; readonly reload: boolean },
  out: (text: string) => void,
): Settings<T> {
  if (!isReload) return loadSettings(table, config);
  const { settings, unknown } = loadKnownSettings(table, config);
  for (const line of unknown) out(`${line}; it is not used\n`);
  return settings;
}

/** Tells operators which keys of the file are not used. */
export function tellUnknown(log: Log, unknown: readonly string[]): void {
  if (unknown.length > 0)
    log.warn(
      { unknown },
      "the settings file has keys that this release does not know; they are not used",
    );
}

const namedKeysMax = 10;

/** Raises the warning that names the keys of the file that are not used, and ends it where there are none. */
export function warnUnknown(
  health: Pick<Health, "raise" | "settle">,
  unknown: readonly string[],
  path: string,
): void {
  if (unknown.length === 0) return health.settle("settings_unknown");
  const named = unknown.slice(0, namedKeysMax).join("; ");
  const more = unknown.length - namedKeysMax;
  health.raise(
    "settings_unknown",
    "warning",
    `the settings file has keys that this release does not know; they are not used: ${named}${more > 0 ? `; and ${more} more` : ""}`,
    `Correct or remove them and reload: ${reloadAndCheck(path)} names them, too. Those of a later release are used once it is installed.`,
  );
}

const centralProgram = { name: "accel-central", file: "central.yaml" };

/** Names the commands for the program whose settings file this is; of an instance as of the plain agent, for `Health` writes them for the unit. */
function reloadAndCheck(path: string): string {
  const isCentrals = resolve(path) === placeOf(centralProgram).config;
  const program = isCentrals ? centralProgram : agentProgram;
  if (!isCentrals && placeOfConfig(agentProgram, path) === undefined)
    return `SIGHUP does that. \`check --config ${path}\``;
  return `\`systemctl reload ${program.name}\`. \`${program.name} check\``;
}

export type Reload<T extends FieldTable> = {
  readonly table: T;
  readonly path: string;
  /** As the program was started with them. */
  readonly running: Settings<T>;
  /** Where a warning tells of keys that are not used. */
  readonly health?: Pick<Health, "raise" | "settle">;
  /** Applies what can change live, and returns that. `text`: the file that has them. */
  readonly apply: (settings: Settings<T>, text: string) => object;
};

/**
 * Reads the file again, applies what can change live, and logs what that is and what needs a restart. A file that is
 * not valid changes nothing.
 */
export function reloadSettings<const T extends FieldTable>(
  notify: SdNotify,
  log: Log,
  { table, path, running, health, apply }: Reload<T>,
): void {
  void notify.send("RELOADING=1", `MONOTONIC_USEC=${Math.round(performance.now() * 1_000)}`);
  try {
    const { settings, unknown, text } = loadKnownSettings(table, path);
    const applied = apply(settings, text);
    // Behind it: it may have raised the level, by which the logger's methods are chosen.
    log.info(applied, "settings reloaded");
    tellUnknown(log, unknown);
    if (health !== undefined) warnUnknown(health, unknown, path);
    const restart = restartKeys(table, running, settings);
    if (restart.length > 0)
      log.warn(
        { restart },
        "these settings have changed and need a restart; the old ones stay in force",
      );
  } catch (error) {
    log.error({ err: error }, "settings were not reloaded; the old ones stay in force");
  }
  void notify.send("READY=1");
}
