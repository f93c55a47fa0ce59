// `join --replace` that was meant for another agent of the host: the site of the code has one here already, and the agent of the command belongs to another site, which would go dark.

import { agentProgram, placeOfConfig } from "../base/instance.ts";
import { AccelError } from "../core/faults.ts";

export type AgentOfHost = { readonly config: string; readonly name16: string | undefined };

/** Returns the agent of this host that was meant; undefined: the one of the command. */
export function meantAgent(
  command: AgentOfHost,
  name16: string,
  others: readonly AgentOfHost[],
): AgentOfHost | undefined {
  if (command.name16 === undefined || command.name16 === name16) return undefined;
  return others.find((other) => other.name16 === name16);
}

/** Says that another agent was meant, and how the command is given to it. */
export function movedFault(command: AgentOfHost, meant: AgentOfHost, central: string): AccelError {
  const { instance } = placeOfConfig(agentProgram, meant.config) ?? {};
  const name = instance === undefined ? "the plain agent" : `the agent ${instance}`;
  const option = instance === undefined ? "" : ` --instance ${instance}`;
  return new AccelError(
    "HOST_TAKEN",
    `nothing was changed: ${name} of this host (${meant.config}) belongs to the deployment site of this code, and the agent of ${command.config} to the one with name16 ${command.name16 ?? "?"}`,
    {
      hint: `If ${name} is to join again: \`accel-agent join --central ${central} --replace${option}\`, with the same code within ten minutes. An agent that is to leave its site for one that has another agent here is taken away first: docs/operations/install.md (to take one away).`,
    },
  );
}
