// Whether a version answers as its manifest and devlove say, asked of the workers themselves: of what is staged before a flip, and of what is in force
// while a version is on trial.

import { setTimeout as sleep } from "node:timers/promises";
import { AccelError } from "../../core/faults.ts";
import { ManifestTable } from "../../core/manifest-table.ts";
import { planProbes, probeFault, type ProbeExpectation } from "../../core/plan-probes.ts";
import type { ServingState } from "../../core/serving-state.ts";
import type { AskProbes, WorkerPool } from "./ports.ts";

/** What fails is asked once more: a moment without a free descriptor is not the version's fault. */
const againMs = 200;

type AskAll = WorkerPool["probe"];

/** Throws VIEWSET_PROBE_FAILED with the reason, or VIEWSET_PROBE_LATE. */
export async function inspectStaged(
  domain: string,
  state: ServingState,
  ask: AskProbes,
): Promise<void> {
  const fault = await findFault(domain, state, async (probes) => {
    const answers = await ask(probes);
    return answers === undefined ? [] : [answers];
  });
  if (fault !== undefined) throw new AccelError("VIEWSET_PROBE_FAILED", fault);
}

/** The reason; undefined: all is as it should be. Throws VIEWSET_PROBE_LATE. */
export async function findFault(
  domain: string,
  { domains }: ServingState,
  ask: AskAll,
): Promise<string | undefined> {
  const served = domains.find(({ name }) => name === domain);
  if (served === undefined) return undefined;
  const plan = planProbes(served.hosts, served.manifest, (table) => new ManifestTable(table));
  const suspects = (await faultsOf(plan, ask)).map(({ probe }) => probe);
  if (suspects.length === 0) return undefined;
  await sleep(againMs);
  const faults = await faultsOf(suspects, ask);
  const [first] = faults;
  if (first === undefined) return undefined;
  return faults.length === 1 ? first.reason : `${first.reason}; and ${faults.length - 1} more`;
}

type ProbeFault = { readonly probe: ProbeExpectation; readonly reason: string };

/** One a probe: of the first worker that answers it wrongly. */
async function faultsOf(
  plan: readonly ProbeExpectation[],
  ask: AskAll,
): Promise<readonly ProbeFault[]> {
  const answered = await ask(plan.map(({ host, path }) => ({ host, path })));
  return plan.flatMap((probe, i) => {
    const reasons = answered.map((answers) => probeFault(probe, answers[i]));
    const reason = reasons.find((one) => one !== undefined);
    return reason === undefined ? [] : [{ probe, reason }];
  });
}
