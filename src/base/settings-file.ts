// Reads a settings file from disk. Errors say file, line, key and what to do about each.

import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { AccelError, messageOf } from "../core/faults.ts";
import type { Log } from "./log.ts";
import type { SdNotify } from "./sd-notify.ts";
import { readSettings, type FieldTable, type Settings } from "./settings.ts";

/** Reads all settings. Throws SETTINGS_INVALID with a line for every error. */
export function loadSettings<const T extends FieldTable>(table: T, path: string): Settings<T> {
  let yaml: string;
  try {
    yaml = readFileSync(path, "utf8");
  } catch (error) {
    throw new AccelError(
      "SETTINGS_INVALID",
      `the settings file ${path} cannot be read: ${messageOf(error)}`,
    );
  }
  const read = readSettings(table, yaml);
  if (read.ok) return read.settings;
  const lines = read.errors.map(
    ({ line, key, message }) => `  ${path}:${line}: ${key === "" ? "" : `${key} `}${message}`,
  );
  throw new AccelError(
    "SETTINGS_INVALID",
    `the settings file ${path} is not valid:\n${lines.join("\n")}`,
  );
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
      `the settings file ${path} is no YAML: ${messageOf(error).split("\n")[0]}`,
    );
  }
  return typeof value === "string" ? value : undefined;
}

/** Applies what can change live, and logs what that is. A file that is not valid changes nothing. */
export function reloadSettings(notify: SdNotify, log: Log, apply: () => object): void {
  void notify.send("RELOADING=1", `MONOTONIC_USEC=${Math.round(performance.now() * 1_000)}`);
  try {
    const applied = apply();
    // Behind it: it may have raised the level, by which the logger's methods are chosen.
    log.info(applied, "settings reloaded");
  } catch (error) {
    log.error({ err: error }, "settings were not reloaded; the old ones stay in force");
  }
  void notify.send("READY=1");
}
