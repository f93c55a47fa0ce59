// `accel-agent replace`: has the agent that serves hand over to this release, which it starts beside itself (decision 0114).

import { setTimeout as sleep } from "node:timers/promises";
import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { callControl } from "../base/control-socket.ts";
import { unitLevel } from "../base/unit-level.ts";
import { AccelError, codeOf, messageOf } from "../core/faults.ts";
import { ask, agentOptions, agentUsage, socketPath } from "./control.ts";

/** After `ready`: both together take less, whatever goes wrong. */
const settledWithinMs = 120_000;
/** A unit whose process ended is started again, which takes some seconds. */
const startedAgainWithinMs = 30_000;
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
    "What has changed in the unit itself needs a restart: `systemctl restart accel-agent`. Exit status 3 says that nothing but a restart will do.",
  ].join("\n"),
  async run(context) {
    const { values } = readArgs(context.args, agentOptions);
    const path = socketPath("accel-agent", values);
    const before = await factsOf(path, context);
    const release = { node: process.execPath, program: context.program };
    const asked = { ...release, version: context.version, unit: unitLevel };
    const pid = await follow(callControl(path, "replace", asked, context.stop), async (error) =>
      endedMeanwhile(path, { before, error }, context),
    );
    const now = await settled(path, { before, pid }, context);
    if (values.json === true) return context.out(`${JSON.stringify(now, null, 2)}\n`);
    context.out(`version ${now.version} serves (process ${now.pid})\n`);
  },
};

/** Reads the steps; resolves with the pid of the successor that is ready. `onCut`: makes the fault to throw where the answer ends before that. */
async function follow(
  steps: AsyncIterable<unknown>,
  onCut: (error: unknown) => Promise<unknown>,
): Promise<number> {
  let pid = 0;
  try {
    for await (const raw of steps) {
      const { pid: successor, reason } = raw as Step;
      if (reason !== undefined) throw failed(reason);
      pid = successor;
    }
  } catch (error) {
    throw codeOf(error) === "CONTROL_UNREACHABLE" ? await onCut(error) : error;
  }
  return pid;
}

/** The agent before did not say how it went. Returns a fault that says who serves now. */
async function endedMeanwhile(
  path: string,
  { before, error }: { readonly before: Facts; readonly error: unknown },
  context: CommandContext,
): Promise<AccelError> {
  const lost = `version ${before.version} (process ${before.pid}) did not say how its hand-over ended`;
  for (const began = performance.now(); performance.now() - began < startedAgainWithinMs;) {
    const now = await factsOf(path, context).catch(() => undefined);
    if (now !== undefined) return failed(`${lost}; ${foundText(before, now)}`);
    await sleep(lookMs, undefined, { signal: context.stop });
  }
  const text = `${lost}, and nobody has answered for ${startedAgainWithinMs / 1_000} s: ${messageOf(error)}`;
  return new AccelError("HAND_OVER_FAILED", text, { hint: nobodyHint });
}

const nobodyHint =
  "Visitors may be refused. `systemctl status accel-agent` says whether the unit runs, and `journalctl -u accel-agent` why not.";

function foundText(before: Facts, now: Facts): string {
  if (now.pid === before.pid) return "it serves on";
  return `it has ended, and version ${now.version} serves (process ${now.pid})`;
}

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
