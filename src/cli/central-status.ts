// `accel-central status`: warnings, log intake, and each host, for a person or as JSON.

import { readArgs, type Command } from "../base/command.ts";
import { centralStatusText } from "./central-status-text.ts";
import { ask, controlOptions, controlUsage, socketPath } from "./control.ts";

export const centralStatusCommand: Command = {
  summary:
    "Shows warnings, the log intake, and each host with its channel, journal position and release, of the running central.",
  usage: `accel-central status [options]\n\n${controlUsage}\n\nHosts that were seen within a day are listed. docs/warnings.md says what each warning means.`,
  async run(context) {
    const { values } = readArgs(context.args, controlOptions);
    const status = await ask(socketPath("accel-central", values), "status", {}, context);
    context.out(
      values.json === true
        ? `${JSON.stringify(status, null, 2)}\n`
        : centralStatusText(Object(status), { now: new Date(), colour: context.colour }),
    );
  },
};
