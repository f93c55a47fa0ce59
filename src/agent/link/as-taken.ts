// What is told to a central of an older release: without the members that it does not take, since its schemas are closed.

import type { AgentMessage, Report } from "../../wire/channel.ts";
import type { CentralTakes, Position } from "../../wire/position.ts";

/** Leaves the position out of a message where central takes none. */
export function withPositionTaken<T extends { readonly position?: Position }>(
  told: T,
  takes: CentralTakes,
): Omit<T, "position"> & { readonly position?: Position } {
  if (takes.positions) return told;
  const { position: _, ...rest } = told;
  return rest;
}

/** Leaves out of a report what central does not take. */
export function reportAsTaken(report: Report, takes: CentralTakes): Report {
  const { host_name: host, ...rest } = withPositionTaken(report, takes);
  const told = takes.hostNames && host !== undefined ? { ...rest, host_name: host } : rest;
  if (takes.variantDays) return told;
  const domains = told.domains.map((domain) => {
    const { variants, ...others } = domain;
    if (variants === undefined) return domain;
    const { made, blocked } = variants;
    return { ...others, variants: { made, blocked } };
  });
  return { ...told, domains };
}

/** Leaves out of a message on the channel what central does not take. */
export function messageAsTaken(message: AgentMessage, takes: CentralTakes): AgentMessage {
  if (message.type === "receipt") return withPositionTaken(message, takes);
  if (message.type !== "report") return message;
  return { type: "report", report: reportAsTaken(message.report, takes) };
}
