// A command of either program: what it is given, how its arguments are read, how its help looks.

import { parseArgs, type ParseArgsConfig } from "node:util";
import { AccelError, messageOf } from "../core/faults.ts";

export type CommandContext = {
  /** Of this program: `1.2.3`. */
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

/** Throws USAGE naming the argument at fault. */
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
    throw new AccelError("USAGE", messageOf(error));
  }
}

/** Rows of two columns, aligned. */
export function columns(rows: readonly (readonly [string, string])[], indent = "  "): string {
  const width = Math.max(0, ...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `${indent}${left.padEnd(width)}  ${right}\n`).join("");
}
