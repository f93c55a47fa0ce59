// The doctor's checks in their order: what a check needs was looked at before it.

import { loadSettings } from "../../base/settings-file.ts";
import { AccelError } from "../../core/faults.ts";
import { agentFields, type AgentSettings } from "../settings/fields.ts";
import { checkWayToCentral } from "./central.ts";
import { checkDisk } from "./disk.ts";
import { checkAuthority, checkSecret, checkStateDir } from "./files.ts";
import { findingsOf, type Finding, type Host } from "./finding.ts";
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
  const { ok, fault } = findingsOf("settings");
  let settings: AgentSettings;
  try {
    settings = loadSettings(agentFields, config);
  } catch (error) {
    if (!(error instanceof AccelError)) throw error;
    return [fault(error), await checkDescriptors(host), checkSysctls(host)];
  }
  const checks: readonly Check[] = [
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
  const findings: Finding[] = [ok(`${config}: deployment site ${settings.name16}`)];
  for (const check of checks) findings.push(...[await check(settings, host)].flat());
  return findings;
}
