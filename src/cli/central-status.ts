// `accel-central status`: sites, channels, journal positions, log intake.

import { readArgs, type Command } from "../base/command.ts";
import { ask, controlOptions, controlUsage, renderFacts, socketPath } from "./control.ts";

export const centralStatusCommand: Command = {
  summary:
    "Shows deployment sites with their channels and journal positions, and the log intake of the running central.",
  usage: `accel-central status [options]\n\n${controlUsage}`,
  async run(context) {
    const { values } = readArgs(context.args, controlOptions);
    const status = await ask(socketPath("accel-central", values), "status", {}, context);
    context.out(
      values.json === true ? `${JSON.stringify(status, null, 2)}\n` : renderFacts(status),
    );
  },
};
