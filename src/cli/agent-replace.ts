// `accel-agent replace`: has the agent that serves hand over to this release, which it starts beside itself (decision 0114).

import { setTimeout as sleep } from "node:timers/promises";
import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { callControl } from "../base/control-socket.ts";
import { unitLevel } from "../base/unit-level.ts";
import { AccelError, codeOf } from "../core/faults.ts";
import { ask, agentOptions, agentUsage, socketPath } from "./control.ts";

/** After `ready`: both together take less, whatever goes wrong. */
const settledWithinMs = 120_000;
const lookMs = 100;

/** A line of the answer, as HandOver.replace makes it. `reason`: why the agent before serves on. */
type Step = { readonly pid: number; readonly reason?: string };
/** What an agent says of itself, as HandOver.process does. */
type Facts = { readonly pid: number; readonly version: string; readonly returned: string | null };

export const replaceCommand: Command = {
  summary:
    "Puts this release, with the settings file of now, in the place of the agent that serves, while visitors are served. If it is not ready within 60 s or does not start, the agent before serves on, and the command fails with the reason.",
  usage: [
    "accel-agent replace [options]",
    "",
    agentUsage,
    "",
    "Of the unit only a restart applies what has changed: `systemctl restart accel-agent`. Exit status 3 says that nothing but a restart will do.",
  ].join("\n"),
  async run(context) {
    const { values } = readArgs(context.args, agentOptions);
    const path = socketPath("accel-agent", values);
    const before = await factsOf(path, context);
    const release = { node: process.execPath, program: context.program };
    const asked = { ...release, version: context.version, unit: unitLevel };
    let pid = 0;
    for await (const raw of callControl(path, "replace", asked, context.stop)) {
      const { pid: successor, reason } = raw as Step;
      if (reason !== undefined) throw failed(reason);
      pid = successor;
    }
    const now = await settled(path, { before, pid }, context);
    if (values.json === true) return context.out(`${JSON.stringify(now, null, 2)}\n`);
    context.out(`version ${now.version} serves (process ${now.pid})\n`);
  },
};

async function factsOf(path: string, context: CommandContext): Promise<Facts> {
  try {
    return (await ask(path, "process", {}, context)) as Facts;
  } catch (error) {
    throw tooOld(error) ?? error;
  }
}

/** What an agent answers that does not know the command: it is of a release before it. */
function tooOld(error: unknown): AccelError | undefined {
  if (codeOf(error) !== "USAGE") return undefined;
  return new AccelError(
    "HAND_OVER_UNSUITED",
    "the agent that serves is of a release that cannot hand over",
  );
}

/** Resolves when the successor serves. Throws HAND_OVER_FAILED when another one does. */
async function settled(
  path: string,
  { before, pid }: { readonly before: Facts; readonly pid: number },
  context: CommandContext,
): Promise<Facts> {
  for (const began = performance.now(); performance.now() - began < settledWithinMs;) {
    await sleep(lookMs, undefined, { signal: context.stop });
    // Meanwhile nobody answers.
    const now = await factsOf(path, context).catch(() => undefined);
    if (now?.pid === pid) return now;
    if (now !== undefined && now.pid !== before.pid)
      throw failed(`version ${now.version} serves again: ${now.returned ?? "it was started anew"}`);
    if (typeof now?.returned === "string") throw failed(now.returned);
  }
  throw failed(`nobody answered within ${settledWithinMs / 1_000} s`);
}

function failed(why: string): AccelError {
  return new AccelError("HAND_OVER_FAILED", why);
}
