// Probes as main asks them of the workers: of any one before a flip, of each afterwards. A state that workers die of is a fault of the state.

import type { Probe, ProbeAnswer } from "../../../core/serving/plan-probes.ts";
import { AccelError } from "../../../core/faults.ts";
import type { WorkerHandle } from "./worker-handle.ts";

/** Undefined: there is no worker to ask. Throws VIEWSET_PROBE_LATE when there is no answer in time. */
export type AskProbes = (probes: readonly Probe[]) => Promise<readonly ProbeAnswer[] | undefined>;

/** A few hundred small reads take milliseconds; a disk that needs longer is not the version's fault. */
const answerWaitMs = 5_000;
/** So many workers die of a state that is at fault; one alone may die of something else. */
const deathsMax = 2;

export function askingOne(handles: Iterable<WorkerHandle>, version: number): AskProbes {
  return async (probes) => {
    let deaths = 0;
    for (const handle of handles) {
      if (handle.isGone) continue;
      const answers = await asked(handle, version, probes);
      if (answers !== undefined) return answers;
      if (++deaths === deathsMax) return diedOf(probes);
    }
    return deaths > 0 ? diedOf(probes) : undefined;
  };
}

/** Asks each worker. One that dies of something else meanwhile is left out. */
export async function askEach(
  handles: Iterable<WorkerHandle>,
  version: number,
  probes: readonly Probe[],
): Promise<readonly (readonly ProbeAnswer[])[]> {
  const each = [...handles].map(async (handle) => asked(handle, version, probes));
  return (await Promise.all(each)).filter((answers) => answers !== undefined);
}

/** Undefined: the thread is gone. */
async function asked(
  handle: WorkerHandle,
  version: number,
  probes: readonly Probe[],
): Promise<readonly ProbeAnswer[] | undefined> {
  const answers = await handle.probe(version, probes, answerWaitMs);
  if (answers !== undefined || handle.isGone) return answers;
  const seconds = answerWaitMs / 1_000;
  const text = `accelerator worker ${handle.no} did not answer its probes within ${seconds} s`;
  throw new AccelError("VIEWSET_PROBE_LATE", text);
}

function diedOf(probes: readonly Probe[]): readonly ProbeAnswer[] {
  return probes.map(() => ({
    kind: "failed",
    reason: "accelerator workers die when they are asked for it",
  }));
}
