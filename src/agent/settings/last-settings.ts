// The settings file as the agent last read it without an error, kept in the state directory. While the file is broken, the agent goes on with what it has; whoever
// looks at the host goes by this copy.

import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { lastSettingsName, putBackSettings } from "../../base/absent-settings.ts";
import { writeDurable } from "../../base/durable-file.ts";
import { agentProgram, placeOf, placeOfConfig, type UnitPlace } from "../../base/instance.ts";
import { loadKnownSettings, peekAnyway, type KnownSettings } from "../../base/settings-file.ts";
import { AccelError } from "../../core/faults.ts";
import { agentFields } from "./fields.ts";

/** Keeps the text of a settings file that is valid. Rejects where the disk takes nothing. */
export async function keepLastSettings(stateDir: string, text: string): Promise<void> {
  const path = join(stateDir, lastSettingsName);
  if (readIfThere(path) !== text) await writeDurable(path, text);
}

export type UsableSettings = KnownSettings<typeof agentFields> & {
  /** What is wrong with the file, where these are the settings of before; undefined: these are its own. */
  readonly broken: { readonly fault: AccelError; readonly keptAt: Date } | undefined;
};

/**
 * Loads the settings, or those that the agent last read where the file is broken, or gone from where its unit has it. Throws SETTINGS_INVALID where there are neither.
 * `unit` is what has this file.
 */
export function loadUsableSettings(
  config: string,
  unit:
    | (Pick<UnitPlace, "stateDir"> & Partial<Pick<UnitPlace, "unit">>)
    | undefined = placeOfConfig(agentProgram, config),
): UsableSettings {
  try {
    return { ...loadKnownSettings(agentFields, config), broken: undefined };
  } catch (error) {
    if (!(error instanceof AccelError)) throw error;
    const isGone = !existsSync(config);
    const before = lastIn(isGone ? unit?.stateDir : stateDirOf(config));
    if (before === undefined) throw error;
    const { path, keptAt, ...known } = before;
    return {
      ...known,
      broken: { fault: isGone ? goneFault(config, path, unit) : error, keptAt },
    };
  }
}

function goneFault(
  config: string,
  path: string,
  unit: Partial<Pick<UnitPlace, "unit">> | undefined,
): AccelError {
  return new AccelError("SETTINGS_INVALID", `the settings file ${config} is gone`, {
    hint: putBackSettings(path, config, unit?.unit),
  });
}

/** Returns the state directory of an agent, also by a settings file that is broken; undefined where that cannot be read and belongs to no unit, so that nobody looks at another agent. */
export function stateDirOf(config: string): string | undefined {
  const { value, fault } = peekAnyway(config, "state_dir");
  if (value !== undefined) return value;
  const place = placeOfConfig(agentProgram, config);
  if (place !== undefined || fault !== undefined) return place?.stateDir;
  return placeOf(agentProgram).stateDir;
}

function lastIn(stateDir: string | undefined) {
  if (stateDir === undefined) return undefined;
  const path = join(stateDir, lastSettingsName);
  try {
    const known = loadKnownSettings(agentFields, path);
    const settings = { ...known.settings, state_dir: stateDir };
    return { ...known, settings, path, keptAt: statSync(path).mtime };
  } catch {
    return undefined; // An agent of an earlier release keeps none, and other users may not read it.
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
