// A command of either program: what it is given, how its arguments are read, how its help looks.

import { dirname } from "node:path";
import { parseArgs, type ParseArgsConfig } from "node:util";
import { AccelError, codeOf, FAULTS, hintOf, messageOf, type FaultCode } from "../core/faults.ts";
import { nearest } from "../core/nearest.ts";
import { agentsIn } from "./absent-settings.ts";
import { agentProgram, placeOf } from "./instance.ts";

export type CommandContext = {
  /** The version of this program, such as `1.2.3`. */
  readonly version: string;
  /** The program's own file, for a command that starts it again. */
  readonly program: string;
  readonly args: readonly string[];
  readonly out: (text: string) => void;
  readonly colour: boolean;
  readonly env: NodeJS.ProcessEnv;
  /** Aborts on SIGTERM and SIGINT. */
  readonly stop: AbortSignal;
  /** Called at each SIGHUP from now on. */
  readonly onReload: (reload: () => void) => void;
};

export type Command = {
  readonly summary: string;
  /** Lines for `--help`: usage first. */
  readonly usage: string;
  readonly run: (context: CommandContext) => Promise<void>;
};

export type Options = NonNullable<ParseArgsConfig["options"]>;

/** The options that each verb of a command takes beside those of all its verbs. */
export type VerbOptions = Readonly<Record<string, readonly string[]>>;

/**
 * Reads arguments. Throws USAGE naming the argument at fault, and what was meant: of a mistyped option of a command with verbs one that its verb takes; of a word, where a
 * command of the agent takes none, `--instance` with the agent of the host that has the name, or a similar one. `home`: where agents have their settings.
 */
export function readArgs<const O extends Options>(
  args: readonly string[],
  options: O,
  positionalsMax = 0,
  verbs: VerbOptions = {},
  home = homeOfAgents,
) {
  try {
    const read = parseArgs({
      args: [...args],
      options,
      allowPositionals: positionalsMax > 0,
      strict: true,
    });
    if (read.positionals.length > positionalsMax)
      throw new TypeError(`unexpected argument '${read.positionals[positionalsMax]}'`);
    return read;
  } catch (error) {
    // Of an option that is not known Node goes on about arguments that begin with a dash.
    const text = messageOf(error).replace(/\. To specify a positional argument [^]*$/, "");
    const [, word] = /^Unexpected argument '([^']+)'/.exec(text) ?? [];
    if (word !== undefined && "instance" in options)
      throw new AccelError("USAGE", `${text}${instanceMeant(word, home)}`);
    const [, unknown] = /^Unknown option '--([^'=]+)'/.exec(text) ?? [];
    const near =
      unknown === undefined
        ? undefined
        : optionMeant(unknown, optionsTaken(args, Object.keys(options), verbs));
    throw new AccelError("USAGE", near === undefined ? text : `${text}; did you mean --${near}?`);
  }
}

const homeOfAgents = dirname(placeOf(agentProgram).config);

/** Says which option was meant by a word, or which agents there are; nothing on a host where no agent has a name. */
function instanceMeant(word: string, home: string): string {
  const { names, agents } = agentsIn(home);
  if (names.length === 0) return "";
  const meant = names.includes(word) ? word : nearest(word, names);
  return meant === undefined
    ? `; this host has ${agents.join(", ")}`
    : `; did you mean --instance ${meant}?`;
}

/** Returns the options that the verb among the arguments takes; all of them where there is none. */
function optionsTaken(
  args: readonly string[],
  names: readonly string[],
  verbs: VerbOptions,
): readonly string[] {
  const verb = args.find((arg) => Object.hasOwn(verbs, arg));
  if (verb === undefined) return names;
  const ofVerbs = new Set(Object.values(verbs).flat());
  return names.filter((name) => verbs[verb]?.includes(name) === true || !ofVerbs.has(name));
}

/** Whoever types the beginning of an option means that one, however long the rest of it is. */
function optionMeant(given: string, names: readonly string[]): string | undefined {
  const begun = names.filter((name) => name.startsWith(given.toLowerCase()));
  return begun.length === 1 ? begun[0] : (nearest(given, begun) ?? nearest(given, names));
}

/** Makes the fault of a word that a command does not take first. */
export function unknownVerb(
  command: string,
  given: string | undefined,
  verbs: readonly string[],
): AccelError {
  const near = given === undefined ? undefined : nearest(given, verbs);
  const meant = near === undefined ? "" : `; did you mean ${near}?`;
  const said = given === undefined ? command : `${command} ${given}`;
  return new AccelError("USAGE", `${said}: one of ${verbs.join(", ")}${meant}`);
}

/** Writes rows of two aligned columns. */
export function columns(rows: readonly (readonly [string, string])[], indent = "  "): string {
  const width = Math.max(0, ...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `${indent}${left.padEnd(width)}  ${right}\n`).join("");
}

// How a command ends. The error goes to stderr with what to do.

type ExitStatus = {
  readonly status: 0 | 1 | 2 | 3;
  /** For the last line of the list of commands. */
  readonly short: string;
  /** Whole sentences, for the man page. */
  readonly means: string;
  /** The faults that end so; every other one ends with 1. */
  readonly faults: readonly FaultCode[];
};

/** What the exit statuses of both programs mean: help and man pages are made of it. */
export const exitStatuses: readonly ExitStatus[] = [
  {
    status: 0,
    short: "done",
    means:
      "It is done. Commands that go on until they are interrupted, as with --watch and --follow, end so, too, and so does the program itself when it is stopped.",
    faults: [],
  },
  {
    status: 1,
    short: "failed",
    means:
      "It failed, or was refused; standard error says why, and what to do. `doctor` and `netcheck` end so where a check failed.",
    faults: [],
  },
  {
    status: 2,
    short: "bad usage or settings",
    means:
      "An argument, the settings file, the secret, or another file that they name is wrong. Nothing was done, and the same again will not help.",
    faults: ["USAGE", "SETTINGS_INVALID", "SECRET_UNREADABLE", "FILE_UNUSABLE"],
  },
  {
    status: 3,
    short: "not proved yet, or not complete",
    means:
      "It was done in part. `accel-central clear`: the clear is accepted, and not every instance has proved it. `accel-central backup`, and `restore --drill`: there is a backup, and it lacks something or its key. `accel-central objects`: all is moved but files that the disk had lost. `accel-agent replace`: nothing has changed, and only a restart of the unit will do.",
    faults: ["PROOF_INCOMPLETE", "BACKUP_NOT_WHOLE", "HAND_OVER_UNSUITED"],
  },
];

export function exitCodeOf(error: unknown): 1 | 2 | 3 {
  const code = codeOf(error);
  const status = exitStatuses.find(({ faults }) => faults.includes(code))?.status ?? 1;
  return status === 0 ? 1 : status;
}

/** Writes what exit statuses mean, in one line. */
export function exitStatusLine(): string {
  return `Exit status: ${exitStatuses.map(({ status, short }) => `${status} ${short}`).join(", ")}.`;
}

/**
 * Writes one or two lines: what failed, and what to do. Defects show their stack, because nobody can act on
 * the hint alone.
 */
export function describeFailure(program: string, command: string, error: unknown): string {
  if (error instanceof AccelError) {
    const isPlain = error.code === "USAGE" && error.hint === FAULTS.USAGE.hint;
    const hint = isPlain ? `See ${program} ${command} --help.` : error.hint;
    return `${program}: ${error.message}\n  ${hint}\n`;
  }
  // What this host lacks is no defect, whoever found out.
  if (codeOf(error) !== "INTERNAL") return `${program}: ${messageOf(error)}\n  ${hintOf(error)}\n`;
  return `${program}: ${error instanceof Error ? (error.stack ?? messageOf(error)) : messageOf(error)}\n`;
}
