// `accel-central clear` as a shell runs it: what it printed, how it ended, and what it said at the end.

import { clearCommand } from "../../src/cli/central-clear.ts";
import { describeFailure, exitCodeOf } from "../../src/base/command.ts";

export type Ended = { readonly code: number; readonly out: string; readonly err: string };
export type Started = { readonly said: () => string; readonly ended: Promise<Ended> };

export function begin(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  stop: AbortSignal = new AbortController().signal,
): Started {
  let out = "";
  const run = async (): Promise<Ended> => {
    try {
      await clearCommand.run({
        version: "0.0.0",
        program: "/nowhere/main.ts",
        args,
        out: (text) => void (out += text),
        colour: false,
        env,
        stop,
        onReload: () => undefined,
      });
      return { code: 0, out, err: "" };
    } catch (error) {
      return {
        code: exitCodeOf(error),
        out,
        err: describeFailure("accel-central", "clear", error),
      };
    }
  };
  return { said: () => out, ended: run() };
}
