// How operator commands reach a running program: the control socket in its state directory.

import { accessSync, constants, existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { absentSettings, sightOf } from "../base/absent-settings.ts";
import type { CommandContext, Options } from "../base/command.ts";
import { callControl, type ControlCall } from "../base/control-socket.ts";
import {
  agentProgram,
  centralProgram,
  placeOf,
  placeOfConfig,
  toldConfig,
  type UnitPlace,
} from "../base/instance.ts";
import { lostSecret } from "../base/lost-secret.ts";
import { howToJoin, peekAnyway } from "../base/settings-file.ts";
import { AccelError } from "../core/faults.ts";
import { faultOfCentral } from "./down-unit.ts";

/** The options that every operator command takes. */
export const controlOptions = {
  config: { type: "string" },
  "state-dir": { type: "string" },
  json: { type: "boolean" },
} as const satisfies Options;

/** `config`: where the program has its settings by default. */
const usageOf = (config: string): string =>
  [
    `  --config FILE     settings file that names the state directory (default ${config})`,
    "  --state-dir DIR   the state directory itself",
    "  --json            facts as JSON",
  ].join("\n");

/** Those of the agent, of which a host may have several. */
export const agentOptions = { ...controlOptions, instance: { type: "string" } } as const;

type Where = {
  readonly instance?: string | undefined;
  readonly config?: string | undefined;
  readonly "state-dir"?: string | undefined;
};

const places = {
  "accel-agent": placeOf(agentProgram),
  "accel-central": placeOf(centralProgram),
} as const;

export const controlUsage = usageOf(places["accel-central"].config);
export const agentUsage =
  "  --instance NAME   the agent NAME of this host: /etc/accel-agent/NAME/agent.yaml\n" +
  usageOf(places["accel-agent"].config);

export function socketPath(program: keyof typeof places, where: Where): string {
  const { config, stateDir } = places[program];
  if (where["state-dir"] !== undefined) return join(where["state-dir"], "control.sock");
  const told = toldConfig(where);
  const path = told ?? config;
  const place = program === "accel-agent" ? placeOfConfig(agentProgram, path) : undefined;
  if (place !== undefined && !existsSync(path)) return socketWithoutSettings(path, place);
  if (told !== undefined && !existsSync(told))
    throw new AccelError("SETTINGS_INVALID", `there is no settings file ${told}`);
  const socket = join(namedStateDir(program, path) ?? place?.stateDir ?? stateDir, "control.sock");
  // A host that has not joined has no secret either, and was never to have one.
  if (program === "accel-agent") refuseUnjoined(socket, path, place ?? { instance: undefined });
  if (place !== undefined) refuseWithoutSecret(socket, path, place);
  return socket;
}

/** Throws CONTROL_UNREACHABLE where no agent is to be seen, and the settings file has none of the keys that `join` writes. */
function refuseUnjoined(socket: string, path: string, place: Pick<UnitPlace, "instance">): void {
  const sight = sightOf(socket);
  const hint = sight === "there" ? undefined : howToJoin(path);
  if (hint === undefined) return;
  const text = `${seenBy(sight === "hidden", place)}, and ${path} names no central`;
  throw new AccelError("CONTROL_UNREACHABLE", text, { hint });
}

/** Throws CONTROL_UNREACHABLE where no agent is to be seen, and none could start, for its secret is gone. */
export function refuseWithoutSecret(socket: string, path: string, place: UnitPlace): void {
  const sight = sightOf(socket);
  if (sight === "there") return;
  // Whether this host has joined says a file that this user may not read.
  if (sightOf(path, (file) => accessSync(file, constants.R_OK)) === "hidden") return;
  const { value = place.secret.shown } = peekAnyway(path, "secret16_file");
  const lost = lostSecret(value, place);
  if (lost === undefined) return;
  const { message, hint } = lost;
  throw new AccelError(
    "CONTROL_UNREACHABLE",
    `${seenBy(sight === "hidden", place)}, and ${message}`,
    { hint },
  );
}

/** Of an agent with a name that name is said: others may run here. */
function seenBy(isHidden: boolean, { instance }: Pick<UnitPlace, "instance">): string {
  if (isHidden)
    return `this user does not see whether ${instance === undefined ? "an agent" : `the agent ${instance}`} runs`;
  return `no agent ${instance === undefined ? "" : `${instance} `}runs here`;
}

/** Returns the socket of an agent that runs on without its settings file, and tells of that. Throws CONTROL_UNREACHABLE where none is to be seen. */
export function socketWithoutSettings(path: string, place: UnitPlace): string {
  const socket = join(place.stateDir, "control.sock");
  const absent = absentSettings(path, place);
  const sight = sightOf(socket);
  if (sight === "there") {
    const { message, hint } = absent;
    process.stderr.write(
      `accel-agent: ${message}. A program that runs goes on with what it read before, and could not start again.\n  ${hint}\n`,
    );
    return socket;
  }
  const { message, hint, kind } = absent;
  const isHidden = sight === "hidden" || kind === "unseen";
  throw new AccelError("CONTROL_UNREACHABLE", `${seenBy(isHidden, place)}, and ${message}`, {
    hint,
  });
}

/**
 * Returns the state directory that a settings file names. A program that runs goes on while its file is broken, and its operators need it then: the fault is told, and
 * no reason to stop. Throws it where nobody can say which program is meant.
 */
function namedStateDir(program: keyof typeof places, path: string): string | undefined {
  const { value, fault } = peekAnyway(path, "state_dir");
  if (fault === undefined) return value;
  const stateDir = value ?? unitStateDir(program, path);
  if (stateDir === undefined) throw fault;
  process.stderr.write(
    `${program}: ${fault.message}. A program that runs goes on with what it read before.\n`,
  );
  return stateDir;
}

/** Returns where the unit of this settings file may write; undefined: no unit has this file. */
function unitStateDir(program: keyof typeof places, path: string): string | undefined {
  if (program === "accel-agent") return placeOfConfig(agentProgram, path)?.stateDir;
  const { config, stateDir } = places[program];
  return resolve(path) === config ? stateDir : undefined;
}

/** Yields what callControl does. Of a central that does not run it throws what systemd says of the unit. */
export async function* callProgram(
  path: string,
  command: string,
  parameters: unknown,
  stop: AbortSignal,
  call: ControlCall = {},
): AsyncGenerator {
  try {
    yield* callControl(path, command, parameters, stop, call);
  } catch (error) {
    throw stop.aborted ? error : await faultOfCentral(error, path);
  }
}

/** Returns the single answer of a command. */
export async function ask(
  path: string,
  command: string,
  parameters: unknown,
  { stop }: CommandContext,
): Promise<unknown> {
  for await (const answer of callProgram(path, command, parameters, stop)) return answer;
  return null;
}

/** Writes facts as aligned lines; nested facts are indented below their name, and list items are numbered. */
export function renderFacts(facts: unknown, indent = ""): string {
  if (facts === null || typeof facts !== "object") return `${indent}${String(facts)}\n`;
  const entries = Object.entries(facts);
  const scalars = entries.filter(([, value]) => value === null || typeof value !== "object");
  const width = Math.max(0, ...scalars.map(([name]) => name.length));
  return entries
    .map(([name, value]) => {
      if (value === null || typeof value !== "object")
        return `${indent}${name.padEnd(width)}  ${value === null || value === "" ? "–" : String(value)}\n`;
      const nested = renderFacts(value, `${indent}  `);
      return nested === "" ? `${indent}${name}: none\n` : `${indent}${name}:\n${nested}`;
    })
    .join("");
}
