// The doctor's checks in their order: what a check needs was looked at before it.

import { closedSettings } from "../../base/closed-settings.ts";
import { adviceFor } from "../../base/instance.ts";
import type { KnownSettings } from "../../base/settings-file.ts";
import { AccelError } from "../../core/faults.ts";
import type { agentFields, AgentSettings } from "../settings/fields.ts";
import { loadUsableSettings, type UsableSettings } from "../settings/last-settings.ts";
import { checkAgent } from "./agent.ts";
import { checkWayToCentral } from "./central.ts";
import { checkDisk } from "./disk.ts";
import { checkAuthority, checkSecret, checkStateDir } from "./files.ts";
import { findingsOf, type AgentSeen, type Finding, type Host } from "./finding.ts";
import { checkImages } from "./images.ts";
import { checkPorts } from "./ports.ts";
import { checkRollouts } from "./rollouts.ts";
import { checkDescriptors, checkSysctls, checkUnit } from "./unit.ts";

type Check = (
  settings: AgentSettings,
  host: Host,
) => Finding | readonly Finding[] | Promise<Finding | readonly Finding[]>;

/** Examines a host. Throws only on defects: what cannot be looked at is a finding. */
export async function examine(
  config: string,
  host: Host,
  now: () => Date,
): Promise<readonly Finding[]> {
  const findings = await examined(config, host, now);
  return findings.map((finding) =>
    finding.hint === undefined
      ? finding
      : { ...finding, hint: adviceFor(host.place, finding.hint) },
  );
}

async function examined(config: string, host: Host, now: () => Date): Promise<readonly Finding[]> {
  const { fault } = findingsOf("settings");
  let known: UsableSettings;
  try {
    known = loadUsableSettings(config);
  } catch (error) {
    if (!(error instanceof AccelError)) throw error;
    return [fault(error), await checkAgent(host), await checkDescriptors(host), checkSysctls(host)];
  }
  const { settings } = known;
  const checks: readonly Check[] = [
    () => checkAgent(host),
    checkSecret,
    checkAuthority,
    checkStateDir,
    checkDisk,
    async () => checkWayToCentral(settings, host, now),
    checkPorts,
    async () => checkDescriptors(host),
    () => checkSysctls(host),
    checkUnit,
    checkRollouts,
    checkImages,
  ];
  const findings: Finding[] = [(await checkBroken(known, host)) ?? checkKeys(config, known)];
  for (const check of checks) findings.push(...[await check(settings, host)].flat());
  return findings;
}

/** Tells of a file that is broken while the agent has what it read before; the other checks go by that, as the agent does. */
async function checkBroken({ broken }: UsableSettings, host: Host): Promise<Finding | undefined> {
  if (broken === undefined) return undefined;
  const { message, hint } = broken.fault;
  return findingsOf("settings").failed(
    `${message}\nThe other checks go by the settings that the agent read last, kept at ${broken.keptAt.toISOString()}.`,
    `${hint}${hint.endsWith(".") ? "" : "."} ${onwards[(await host.agent()).kind]}`,
  );
}

/** What comes of an agent whose settings file is broken. */
const onwards: Readonly<Record<AgentSeen["kind"], string>> = {
  answers: "The agent serves on with what it has, and could not start again.",
  hangs: "The agent runs with what it has, and could not start again.",
  denied: "An agent that runs serves on with what it has, and could not start again.",
  absent: "The agent does not run, and cannot start.",
};

/** Checks whether all keys of the settings are known. The agent runs without those that are not, and the other checks go by what it uses. */
function checkKeys(
  config: string,
  { settings, unknown }: KnownSettings<typeof agentFields>,
): Finding {
  const { ok, failed } = findingsOf("settings");
  const closed = closedSettings(config);
  if (closed !== undefined) return failed(closed.message, closed.hint);
  if (unknown.length === 0) return ok(`${config}: deployment site ${settings.name16}`);
  return failed(
    `the settings file ${config} has keys that this release does not know; the agent does not use them:\n${unknown.map((line) => `  ${line}`).join("\n")}`,
    "Correct or remove them. The other checks go by the settings without them, as the agent does.",
  );
}
