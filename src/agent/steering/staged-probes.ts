// Asks the workers themselves whether a version answers as its manifest and devlove say: of what is staged
// before a flip, and of what is in force while a version is on trial.

import { setTimeout as sleep } from "node:timers/promises";
import { AccelError } from "../../core/faults.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import { ManifestTable } from "../../core/serving/manifest-table.ts";
import { planProbes, probeFault, type ProbeExpectation } from "../../core/serving/plan-probes.ts";
import type { ServingState } from "../../core/serving/serving-state.ts";
import type { AskProbes } from "../accelerator/pool/worker-probes.ts";
import type { WorkerPool } from "../accelerator/pool/workers.ts";

/**
 * The pause before a failed probe is repeated, since a moment without a free descriptor is not the version's
 * fault.
 */
const againMs = 200;

type AskAll = WorkerPool["probe"];

export class ProbeFailed extends AccelError {
  /** The files that have the right size on this disk but other bytes. */
  readonly damaged: readonly Sha256[];

  constructor({ reason, damaged }: VersionFault) {
    super("VIEWSET_PROBE_FAILED", reason);
    this.damaged = damaged;
  }
}

export type VersionFault = { readonly reason: string; readonly damaged: readonly Sha256[] };

/** Probes the staged version of a domain. Throws ProbeFailed, or VIEWSET_PROBE_LATE. */
export async function inspectStaged(
  domain: string,
  state: ServingState,
  ask: AskProbes,
): Promise<void> {
  const fault = await findFault(domain, state, async (probes) => {
    const answers = await ask(probes);
    return answers === undefined ? [] : [answers];
  });
  if (fault !== undefined) throw new ProbeFailed(fault);
}

/**
 * Returns what is wrong with the version of a domain, or undefined if nothing is. Throws VIEWSET_PROBE_LATE.
 */
export async function findFault(
  domain: string,
  { domains }: ServingState,
  ask: AskAll,
): Promise<VersionFault | undefined> {
  const served = domains.find(({ name }) => name === domain);
  if (served === undefined) return undefined;
  const plan = planProbes(served.hosts, served.manifest, (table) => new ManifestTable(table));
  const suspects = (await faultsOf(plan, ask)).map(({ probe }) => probe);
  if (suspects.length === 0) return undefined;
  await sleep(againMs);
  const faults = await faultsOf(suspects, ask);
  const [first] = faults;
  if (first === undefined) return undefined;
  const damaged = new Set(faults.flatMap((fault) => fault.damaged ?? []));
  const more = faults.length === 1 ? "" : `; and ${faults.length - 1} more`;
  return { reason: `${first.reason}${more}`, damaged: [...damaged] };
}

type ProbeFault = {
  readonly probe: ProbeExpectation;
  readonly reason: string;
  readonly damaged: Sha256 | undefined;
};

/** Returns one fault for each probe that fails: that of the first worker that answers it wrongly. */
async function faultsOf(
  plan: readonly ProbeExpectation[],
  ask: AskAll,
): Promise<readonly ProbeFault[]> {
  const answered = await ask(plan.map(({ host, path }) => ({ host, path })));
  return plan.flatMap((probe, i) => {
    const reasons = answered.map((answers) => probeFault(probe, answers[i]));
    const reason = reasons.find((one) => one !== undefined);
    if (reason === undefined) return [];
    const isDamaged = answered.some((answers) => answers[i]?.kind === "damaged");
    const file = probe.expected?.kind === "file" ? probe.expected.digest : "";
    return [{ probe, reason, damaged: isDamaged ? parseSha256(file) : undefined }];
  });
}
