// Where a program of this host has its files: the plain one, and each instance that runs beside it by the unit's template.
//
//   accel-agent.service        /etc/accel-agent/agent.yaml        /var/lib/accel-agent
//   accel-agent@NAME.service   /etc/accel-agent/NAME/agent.yaml   /var/lib/accel-agent-NAME
//
// The settings file says which one is meant, so `--instance NAME` is another way to write `--config`.

import { basename, dirname, join, resolve } from "node:path";
import type { ParseArgsConfig } from "node:util";
import { AccelError } from "../core/faults.ts";

export type UnitPlace = {
  /** Undefined: the plain one. */
  readonly instance: string | undefined;
  readonly unit: string;
  readonly config: string;
  /** Where the unit may write. */
  readonly stateDir: string;
  /** Where systemd shows the secret to the unit, and nobody else; and where the unit takes it from. */
  readonly secret: { readonly shown: string; readonly source: string };
  /** The file from which the unit has its proxy's variables. */
  readonly environment: string;
};

/** What can be told apart of a program: its name, and that of its settings file. */
type Program = { readonly name: string; readonly file: string };

export const agentProgram: Program = { name: "accel-agent", file: "agent.yaml" };
/** Of central a host has one. */
export const centralProgram: Program = { name: "accel-central", file: "central.yaml" };

/** A user of the host has the name `accel-agent-NAME`, and such a name has 31 characters at most. */
const namePattern = /^[a-z0-9](?:[a-z0-9-]{0,17}[a-z0-9])?$/;

export function placeOf({ name, file }: Program, instance?: string): UnitPlace {
  const unit = instance === undefined ? `${name}.service` : `${name}@${instance}.service`;
  const directory = instance === undefined ? `/etc/${name}` : `/etc/${name}/${instance}`;
  return {
    instance,
    unit,
    config: join(directory, file),
    stateDir: instance === undefined ? `/var/lib/${name}` : `/var/lib/${name}-${instance}`,
    secret: { shown: `/run/credentials/${unit}/secret16`, source: join(directory, "secret16") },
    environment: join(directory, "environment"),
  };
}

/** The name of a unit as people write it. */
export const unitNameOf = ({ unit }: Pick<UnitPlace, "unit">): string =>
  unit.replace(/\.service$/, "");

/** The place of a settings file; undefined: no unit of the packages has this one. */
export function placeOfConfig(program: Program, config: string): UnitPlace | undefined {
  const path = resolve(config);
  const plain = placeOf(program);
  if (path === plain.config) return plain;
  const instance = basename(dirname(path));
  const place = namePattern.test(instance) ? placeOf(program, instance) : undefined;
  return place?.config === path ? place : undefined;
}

/** Writes what is advised of the agent for an instance: its commands with `--instance`, and its own unit and environment. A command that names its settings stays as it is. */
export function adviceFor(
  { instance, environment }: Pick<UnitPlace, "instance" | "environment">,
  advice: string,
): string {
  if (instance === undefined) return advice;
  const plain = placeOf(agentProgram);
  return advice
    .replaceAll(/`accel-agent [^`]+/g, (command) =>
      / --(?:instance|config)\b/.test(command) ? command : `${command} --instance ${instance}`,
    )
    .replaceAll(
      /(journalctl -u|systemctl [a-z]+) accel-agent(?![\w@-])/g,
      `$1 accel-agent@${instance}`,
    )
    .replaceAll(plain.environment, environment);
}

/** The options by which a command of the agent is told whose it is. */
export const placeOptions = {
  config: { type: "string" },
  instance: { type: "string" },
} as const satisfies ParseArgsConfig["options"];

export const placeUsage = [
  "  --config FILE     settings (default /etc/accel-agent/agent.yaml)",
  "  --instance NAME   the agent NAME of this host: /etc/accel-agent/NAME/agent.yaml",
].join("\n");

/** Returns the settings file that a command was told; undefined: none. Throws USAGE. */
export function toldConfig({
  config,
  instance,
}: {
  readonly config?: string | undefined;
  readonly instance?: string | undefined;
}): string | undefined {
  if (instance === undefined) return config;
  if (config !== undefined)
    throw new AccelError(
      "USAGE",
      "--instance and --config do not go together: both name the settings",
    );
  if (!namePattern.test(instance))
    throw new AccelError(
      "USAGE",
      `--instance ${instance}: a name has 1 to 19 lower-case letters, digits and dashes, with no dash at either end`,
    );
  return placeOf(agentProgram, instance).config;
}

/** The settings file that a command is about. Throws USAGE. */
export const configOf = (told: Parameters<typeof toldConfig>[0]): string =>
  toldConfig(told) ?? placeOf(agentProgram).config;
