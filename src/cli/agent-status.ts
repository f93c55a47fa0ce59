// `accel-agent status`: what the agent proved, for a person or as JSON.

import { readArgs, type Command } from "../base/command.ts";
import { ask, controlOptions, controlUsage, renderFacts, socketPath } from "./control.ts";
import { unprovenText } from "./log-text.ts";

type Warnings = readonly {
  readonly code: string;
  readonly severity: string;
  readonly text: string;
  readonly since: string;
  readonly hint: string;
}[];

export const agentStatusCommand: Command = {
  summary:
    "Shows link, cursor and lag, active viewsets, sets, cache, spool and health warnings of the running agent.",
  usage: `accel-agent status [options]\n\n${controlUsage}`,
  async run(context) {
    const { values } = readArgs(context.args, controlOptions);
    const status = await ask(socketPath("accel-agent", values), "status", {}, context);
    if (values.json === true) return context.out(`${JSON.stringify(status, null, 2)}\n`);
    // The shape is AgentStatus (agent/admin); what is missing prints as nothing.
    const { warnings = [], ...facts } = (status ?? {}) as { warnings?: Warnings };
    context.out(renderFacts(readable(facts)));
    context.out(warnings.length === 0 ? "warnings: none\n" : "warnings:\n");
    const paint = (text: string, severity: string): string =>
      context.colour ? `\u001B[${severity === "error" ? 31 : 33}m${text}\u001B[0m` : text;
    for (const { code, severity, text, since, hint } of warnings) {
      context.out(`  ${paint(code, severity)} since ${since}: ${text}\n    ${hint}\n`);
    }
  },
};

/** Returns the same facts, with words for what is old or only a bound. Scripts read `--json`. */
function readable(facts: Readonly<Record<string, unknown>>): object {
  const parts = facts["parts"];
  if (!isRecord(parts)) return facts;
  const { link, spool } = parts;
  return {
    ...facts,
    parts: {
      ...parts,
      ...(isRecord(link) && { link: linkText(link) }),
      ...(isRecord(spool) && { spool: unprovenText(spool) }),
    },
  };
}

/** An agent that is not connected knows the head of the journal only as it was last told. */
function linkText(link: Readonly<Record<string, unknown>>): object {
  const { state, head_told_at: toldAt, head_seq: head, lag } = link;
  if (state !== "disconnected" || typeof toldAt !== "string") return link;
  const asOf = `when last told, at ${toldAt}`;
  return { ...link, head_seq: `${String(head)} ${asOf}`, lag: `${String(lag)} ${asOf}` };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
