// Central killed in the middle of its commits: at the first sync of its store after a start, at the second, and so on. What lies between two of them
// is a state that central begins with.

import { injected, threadsOf } from "./log-oracle-disk.ts";
import { storeThread } from "./log-oracle-faults.ts";
import { Oracle, randomFrom, type OracleFigures } from "./log-oracle-run.ts";
import { Scene, type SceneOptions } from "./log-oracle-scene.ts";
import { until } from "./until.ts";

const syncsMax = 6;
/** Visitors go on: each half a second a batch, after a backoff of up to a minute. */
const diesWithinMs = 150_000;

export async function runKillsInCommits(options: SceneOptions): Promise<OracleFigures> {
  await using scene = await Scene.open(options);
  await using oracle = new Oracle(scene, randomFrom(3));
  for (let sync = 1; sync <= syncsMax; sync++) {
    {
      const tids = threadsOf(scene.central.pid, storeThread);
      const what = `signal=SIGKILL:when=${sync}`;
      await using _ = await injected(tids, ["fdatasync", "fsync"], what);
      await until("central died", () => scene.central.ended, diesWithinMs);
    }
    oracle.kills++;
    await scene.restartCentral();
  }
  await oracle.settle();
  return oracle.figures;
}
