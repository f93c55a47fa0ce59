// A command of either program: what it is given, how its arguments are read, how its help looks.

import { parseArgs, type ParseArgsConfig } from "node:util";
import { AccelError, codeOf, hintOf, messageOf, type FaultCode } from "../core/faults.ts";

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

/** Reads arguments. Throws USAGE naming the argument at fault. */
export function readArgs<const O extends Options>(
  args: readonly string[],
  options: O,
  positionalsMax = 0,
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
    throw new AccelError("USAGE", text);
  }
}

/** Writes rows of two aligned columns. */
export function columns(rows: readonly (readonly [string, string])[], indent = "  "): string {
  const width = Math.max(0, ...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `${indent}${left.padEnd(width)}  ${right}\n`).join("");
}

// How a command ends. Exit codes: 0 done, 1 failed, 2 bad usage or settings, 3 accepted and not proved
// everywhere yet, a backup that lacks something, or a hand-over that only a restart can replace. The error goes to stderr with what to do.

const usageCodes: ReadonlySet<FaultCode> = new Set([
  "USAGE",
  "SETTINGS_INVALID",
  "SECRET_UNREADABLE",
  "FILE_UNUSABLE",
]);

export function exitCodeOf(error: unknown): 1 | 2 | 3 {
  const code = codeOf(error);
  if (["PROOF_INCOMPLETE", "BACKUP_NOT_WHOLE", "HAND_OVER_UNSUITED"].includes(code)) return 3;
  return usageCodes.has(code) ? 2 : 1;
}

/**
 * Writes one or two lines: what failed, and what to do. Defects show their stack, because nobody can act on
 * the hint alone.
 */
export function describeFailure(program: string, error: unknown): string {
  if (error instanceof AccelError) return `${program}: ${error.message}\n  ${error.hint}\n`;
  // What this host lacks is no defect, whoever found out.
  if (codeOf(error) !== "INTERNAL") return `${program}: ${messageOf(error)}\n  ${hintOf(error)}\n`;
  return `${program}: ${error instanceof Error ? (error.stack ?? messageOf(error)) : messageOf(error)}\n`;
}
