// `accel-agent logs backlog`: what of the request records central has not acknowledged, and the balance.

import { AccelError } from "../core/faults.ts";
import { readArgs, type Command } from "../base/command.ts";
import { ask, controlOptions, controlUsage, renderFacts, socketPath } from "./control.ts";

export const logsCommand: Command = {
  summary:
    "Shows the backlog of request records and the balance accepted = committed + spooled + in memory + dropped.",
  usage: `accel-agent logs backlog [options]\n\n${controlUsage}`,
  async run(context) {
    const { values, positionals } = readArgs(context.args, controlOptions, 1);
    if (positionals[0] !== "backlog")
      throw new AccelError(
        "USAGE",
        `logs ${positionals[0] ?? "needs a word"}: only backlog in this version`,
      );
    const answer = await ask(socketPath("accel-agent", values), "logs-backlog", {}, context);
    context.out(
      values.json === true ? `${JSON.stringify(answer, null, 2)}\n` : renderFacts(answer),
    );
  },
};
