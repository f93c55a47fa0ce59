// A spool that fills up because central is away: what the policy leaves out is told, no more and no less; and a kill in the middle of a drop.

import { statSync } from "node:fs";
import { join } from "node:path";
import { parseSums } from "./log-oracle-balance.ts";
import { injected, threadsOf } from "./log-oracle-disk.ts";
import { spoolThread } from "./log-oracle-faults.ts";
import { Oracle, randomFrom, type OracleFigures } from "./log-oracle-run.ts";
import { Scene, type SceneOptions } from "./log-oracle-scene.ts";
import { until } from "./until.ts";

export type Policy = "drop_oldest" | "drop_newest" | "sample";

/** The least that an agent takes: some 490 of the records below. */
const spoolMax = "4MiB";
const noise = `?heavy=${"z".repeat(9_000)}`;
/** Records until something is left out: a full spool, and as many again. */
const fillMax = 1_500;
const atOnce = 8;
const dropsWanted = 50;
/** They are written a tenth of a second after a change, on a busy machine later. */
const stillMs = 2_500;

const reasonsOf: Readonly<Record<Policy, readonly string[]>> = {
  drop_oldest: ["dropped_oldest", "spool_full"],
  drop_newest: ["spool_full"],
  sample: ["sampled", "dropped_oldest", "spool_full"],
};

/** One run of the agent, orderly. */
export async function runFullSpool(policy: Policy): Promise<OracleFigures> {
  await using scene = await openFullScene({ spool: { when_full: policy } });
  await using oracle = new Oracle(scene, randomFrom(1), { reasons: reasonsOf[policy] });
  await oracle.producer.pause();
  scene.line.state = "cut";
  await fill(oracle, async () => (parseSums(await scene.metrics())?.dropped ?? 0) >= dropsWanted);
  await oracle.settle();
  return oracle.figures;
}

/** Killed when the next marks are about to take the place of the ones before: that is when something is dropped. */
export async function runKillInDrop(options: SceneOptions): Promise<OracleFigures> {
  await using scene = await openFullScene(options);
  await using oracle = new Oracle(scene, randomFrom(2), { reasons: reasonsOf.drop_oldest });
  await oracle.producer.pause();
  scene.line.state = "cut";
  await marksAreStill(scene);
  {
    const tids = threadsOf(scene.agent.pid, spoolThread);
    await using _ = await injected(tids, ["rename"], "signal=SIGKILL:when=2");
    // However soon a spool is full on this machine, there is more to drop until the agent is dead.
    await until("the agent died", async () => {
      await fill(oracle, async () => scene.agent.ended);
      return scene.agent.ended;
    });
    scene.run.killedMs = Date.now();
  }
  await scene.startAgent();
  await oracle.settle();
  return oracle.figures;
}

/** What was on its way is settled, and its marks are written. */
async function marksAreStill({ spoolDir }: Scene): Promise<void> {
  const last = { writtenMs: 0, sinceMs: performance.now() };
  await until("the marks are still", () => {
    const writtenMs = statSync(join(spoolDir, "marks"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (writtenMs !== last.writtenMs)
      Object.assign(last, { writtenMs, sinceMs: performance.now() });
    return performance.now() - last.sinceMs > stillMs;
  });
}

/** The smallest spool, and one worker, so that one lane has it all. */
export async function openFullScene(options: SceneOptions): Promise<Scene> {
  return Scene.open({ ...options, spool: { max: spoolMax, ...options.spool }, workers: 1 });
}

/** Heavy requests until it is enough, or more than would fill two spools. */
export async function fill({ producer }: Oracle, isEnough: () => Promise<boolean>): Promise<void> {
  for (let sent = 0; sent < fillMax && !(await isEnough()); sent += 4 * atOnce) {
    const visitor = async (): Promise<void> => {
      for (let i = 0; i < 4; i++) await producer.send({ noise });
    };
    await Promise.all(Array.from({ length: atOnce }, visitor));
  }
}
