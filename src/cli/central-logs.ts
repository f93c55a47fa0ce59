// `accel-central logs`: request records that agents told as lost, and why.

import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { AccelError } from "../core/faults.ts";
import { ask, controlOptions, controlUsage, socketPath } from "./control.ts";
import { idGiven } from "./operator.ts";
import { textTable, type Row } from "./text.ts";

const options = {
  ...controlOptions,
  site: { type: "string" },
  days: { type: "string" },
} as const;

const daysDefault = 7;

export const centralLogsCommand: Command = {
  summary:
    "Shows how many request records agents told as lost, by day, deployment site and reason.",
  usage: [
    "accel-central logs losses [--site ID] [--days N]",
    "",
    "  --site ID         only of this deployment site",
    `  --days N          of the newest N days on which records arrived (default ${daysDefault})`,
    controlUsage,
    "",
    "AT LEAST so many records are known to be lost, and at most AT MOST. They differ after a crash alone: the agent",
    "had reserved numbers, and nobody knows how many of them stood for a record.",
    "docs/logs.md says what each reason means and what to do about it.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, options, 1);
    const [verb = ""] = positionals;
    if (verb !== "losses") throw new AccelError("USAGE", `logs ${verb}: only losses`.trim());
    const asked = {
      days: idGiven("--days", values.days) ?? daysDefault,
      ...(values.site !== undefined && { deployment_site_id: idGiven("--site", values.site) }),
    };
    const path = socketPath("accel-central", values);
    show(await ask(path, "log-losses", asked, context), values.json === true, context);
  },
};

/** What the route `log-losses` answers, as far as it is printed here. */
type Answer = {
  readonly days: readonly string[];
  readonly unreadable: readonly string[];
  readonly losses: readonly Row[];
};

const names = [
  "day",
  "deployment_site_id",
  "name16",
  "reason",
  "at_least",
  "at_most",
  "first_told",
  "last_told",
];

function show(answer: unknown, isJson: boolean, { out }: CommandContext): void {
  if (isJson) return out(`${JSON.stringify(answer, null, 2)}\n`);
  const { days, unreadable, losses }: Answer = Object(answer);
  const span = days.length > 1 ? `${days.at(-1) ?? ""} to ${days[0] ?? ""}` : (days[0] ?? "");
  const none = days.length === 0 ? "no request records have arrived yet" : `no losses, ${span}`;
  out(textTable(losses, names, none));
  for (const day of unreadable) out(`${day}: the file cannot be read\n`);
}
