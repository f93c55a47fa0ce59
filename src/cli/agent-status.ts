// `accel-agent status`: what the agent proved, for a person or as JSON.

import { readArgs, type Command } from "../base/command.ts";
import { ask, controlOptions, controlUsage, renderFacts, socketPath } from "./control.ts";

type Warnings = readonly {
  readonly code: string;
  readonly severity: string;
  readonly text: string;
  readonly since: string;
  readonly hint: string;
}[];

export const statusCommand: Command = {
  summary:
    "Shows link, cursor and lag, active viewsets, sets, cache, spool and health warnings of the running agent.",
  usage: `accel-agent status [options]\n\n${controlUsage}`,
  async run(context) {
    const { values } = readArgs(context.args, controlOptions);
    const status = await ask(socketPath("accel-agent", values), "status", {}, context);
    if (values.json === true) return context.out(`${JSON.stringify(status, null, 2)}\n`);
    // The shape is AgentStatus (agent/admin); what is missing prints as nothing.
    const { warnings = [], ...facts } = (status ?? {}) as { warnings?: Warnings };
    context.out(renderFacts(facts));
    context.out(warnings.length === 0 ? "warnings: none\n" : "warnings:\n");
    const paint = (text: string, severity: string): string =>
      context.colour ? `\u001B[${severity === "error" ? 31 : 33}m${text}\u001B[0m` : text;
    for (const { code, severity, text, since, hint } of warnings) {
      context.out(`  ${paint(code, severity)} since ${since}: ${text}\n    ${hint}\n`);
    }
  },
};
