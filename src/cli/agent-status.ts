// `accel-agent status`: what the agent proved, for a person or as JSON, once or again and again.

import { setTimeout as wait } from "node:timers/promises";
import { readArgs, type Command } from "../base/command.ts";
import { askControl } from "../base/control-socket.ts";
import { AccelError } from "../core/faults.ts";
import { agentOptions, agentUsage, socketPath } from "./control.ts";
import { faultOfUnit, troubleOfUnit } from "./down-unit.ts";
import { agentStatusText } from "./status-text.ts";

const options = { ...agentOptions, watch: { type: "boolean" } } as const;
const watchMs = 2_000;
/** An agent that serves answers in less than a second. */
const answerMs = 15_000;
const clearScreen = "\u001B[H\u001B[2J";

export const agentStatusCommand: Command = {
  summary:
    "Shows warnings, link, cache, request records, certificates and domains of the running agent.",
  usage: `accel-agent status [options]\n\n  --watch           show it again every two seconds, until interrupted\n${agentUsage}\n\ndocs/warnings.md says what each warning means.`,
  async run(context) {
    const { values } = readArgs(context.args, options);
    const { json, watch: isWatched = false } = values;
    if (isWatched && json === true)
      throw new AccelError("USAGE", "--watch is for people; with --json ask again yourself");
    const path = socketPath("accel-agent", values);
    const { colour, stop, out } = context;
    for (;;) {
      const status = await askControl(path, "status", { stop, withinMs: answerMs }).catch(
        async (error: unknown) => {
          throw await faultOfUnit(error, values);
        },
      );
      if (json === true) return out(`${JSON.stringify(status, null, 2)}\n`);
      const unit = await troubleOfUnit(values);
      const text = agentStatusText(Object(status), { now: new Date(), colour, unit });
      out(isWatched ? `${clearScreen}${text}` : text);
      if (!isWatched || !(await isStill(stop))) return;
    }
  },
};

/** Waits for the next look. Returns false once it was interrupted. */
async function isStill(stop: AbortSignal): Promise<boolean> {
  return wait(watchMs, true, { signal: stop }).catch(() => false);
}
