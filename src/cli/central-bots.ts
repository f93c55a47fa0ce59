// `accel-central bots`: the operator's import of a list of addresses into a bot of a domain.

import { createReadStream, statSync } from "node:fs";
import type { Readable } from "node:stream";
import { AccelError, messageOf } from "../core/faults.ts";
import { readArgs, type Command } from "../base/command.ts";
import { operatorName } from "./operator.ts";
import { callProgram, controlOptions, controlUsage, renderFacts, socketPath } from "./control.ts";

export const centralBotsCommand: Command = {
  summary:
    "Imports a list of addresses and ranges of any length into a bot of a domain, as one version of its set.",
  usage: [
    "accel-central bots import DOMAIN bad|vip BOT FILE [options]",
    "",
    "  FILE              one address or CIDR range a line, # begins a comment; - reads standard input",
    "  --replace         replace what the bot holds (otherwise the list is added to it)",
    "  --customer ID     the customer, if several have the domain",
    controlUsage,
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(
      context.args,
      { ...controlOptions, replace: { type: "boolean" }, customer: { type: "string" } },
      5,
    );
    const [verb, domain, set, bot, file] = positionals;
    if (verb !== "import") throw new AccelError("USAGE", `bots ${verb ?? ""}: only import`);
    if (file === undefined)
      throw new AccelError("USAGE", "bots import takes DOMAIN, bad or vip, BOT and FILE");
    const customer = values.customer === undefined ? {} : { customer: Number(values.customer) };
    const parameters = {
      domain,
      set,
      bot,
      replace: values.replace === true,
      operator: operatorName(context.env),
      ...customer,
    };
    const path = socketPath("accel-central", values);
    const list = openList(file);
    try {
      const sent = { upload: list };
      for await (const answer of callProgram(path, "bots-import", parameters, context.stop, sent))
        context.out(
          values.json === true ? `${JSON.stringify(answer, null, 2)}\n` : renderFacts(answer),
        );
    } finally {
      list.destroy();
    }
  },
};

/** Opens the list. Throws USAGE if it is no readable file. */
function openList(file: string): Readable {
  if (file === "-") return process.stdin;
  try {
    if (statSync(file).isDirectory()) throw new TypeError(`${file} is a directory`);
    return createReadStream(file, { highWaterMark: 2 ** 16 });
  } catch (error) {
    throw new AccelError("USAGE", messageOf(error));
  }
}
