// Everything that the oracle does to a scene, by name. Each fault ends itself; a kill leaves the program dead.

import { setTimeout as sleep } from "node:timers/promises";
import {
  fileSizeLimited,
  injected,
  prlimitMissing,
  straceMissing,
  threadsOf,
  writingCalls,
} from "./log-oracle-disk.ts";
import { damageSpool, type Random } from "./log-oracle-damage.ts";
import { damageMarks } from "./log-oracle-marks.ts";
import type { BatchFault } from "./log-oracle-proxy.ts";
import type { Scene } from "./log-oracle-scene.ts";
import type { Program } from "./process.ts";
import { until } from "./until.ts";

export type Fault = (scene: Scene, random: Random) => Promise<void>;
type Faults = Readonly<Record<string, Fault>>;

export const spoolThread = "spool";
export const storeThread = "logs-write";

const hourMs = 3_600_000;
const jumpHoursMax = 36;
/** A call that the program is to die in must come by then; else it dies anyway. */
const callWithinMs = 700;
/** A start takes half of it or more. */
const startMsMax = 1_500;
/** What a disk that works again needs to tell of what it refused: a second until it is tried, a second until the marks are written, and
 * as much again on a busy machine. */
const healedAfterMs = 4_500;

const between = (random: Random, least: number, most: number): number =>
  least + Math.floor(random() * (most - least + 1));
const pick = <T>(list: readonly T[], random: Random): T | undefined =>
  list[Math.floor(random() * list.length)];

async function dieAtCall(program: Program, thread: string, random: Random): Promise<void> {
  const call = pick(writingCalls, random) ?? "fdatasync";
  const what = `signal=SIGKILL:when=${between(random, 1, 6)}`;
  await using _ = await injected(threadsOf(program.pid, thread), [call], what);
  await until("it died", () => program.ended, callWithinMs).catch(() => program.kill());
}

const traced = (faults: Faults): Faults => (straceMissing ? {} : faults);

/** The agent is dead afterwards. */
export const agentDeaths: Faults = {
  "the agent is killed": async (scene) => scene.killAgent(),
  ...traced({
    "the agent is killed in a call of its spool": async (scene, random) => {
      await dieAtCall(scene.agent, spoolThread, random);
      scene.run.killedMs = Date.now();
    },
  }),
};

/** While the agent is dead. */
export const leftovers: Faults = {
  "the spool is damaged": async (scene, random) => {
    const epoch = damageSpool(scene.spoolDir, random);
    for (const run of scene.runs) if (run.epoch === epoch) run.isDamaged = true;
  },
  "the marks are damaged": async (scene, random) => {
    const epochs = damageMarks(scene.spoolDir, scene.marksCopy, random);
    for (const run of scene.runs) if (epochs.includes(run.epoch)) run.isDamaged = true;
    scene.ledger.rebase(
      scene.spoolDir,
      scene.runs.map(({ epoch }) => epoch),
    );
  },
};

/** Central is dead afterwards. */
export const centralDeaths: Faults = {
  "central is killed": async (scene) => scene.central.kill(),
  ...traced({
    "central is killed in a call of its store": async (scene, random) =>
      dieAtCall(scene.central, storeThread, random),
  }),
};

/** Dead programs are dead again afterwards. */
export const agentStarts: Faults = {
  "the agent is killed while it starts": async (scene, random) =>
    scene.killAgentInStart(between(random, 0, startMsMax)),
};
export const centralStarts: Faults = {
  "central is killed while it starts": async (scene, random) =>
    scene.killCentralInStart(between(random, 0, startMsMax)),
};

/** Nothing can be told to the next process while the disk takes nothing: no kill comes before it works again. */
export const agentDisk: Faults = {
  ...traced({
    "the agent's disk fails": async (scene, random) => {
      const calls = writingCalls.filter(() => random() < 0.4);
      const what = `error=${random() < 0.5 ? "EIO" : "ENOSPC"}`;
      const tids = threadsOf(scene.agent.pid, spoolThread);
      {
        await using _ = await injected(tids, calls.length === 0 ? ["fdatasync"] : calls, what);
        await sleep(between(random, 100, 900));
      }
      await sleep(healedAfterMs);
    },
  }),
  ...(prlimitMissing
    ? {}
    : {
        "the agent's writes are cut short": async (scene, random) => {
          {
            using _ = fileSizeLimited(scene.agent.pid, between(random, 20_000, 300_000));
            await sleep(between(random, 100, 900));
          }
          await sleep(healedAfterMs);
        },
      }),
};

export const centralDisk: Faults = traced({
  "central's disk fails": async (scene, random) => {
    if (!scene.isCentralUp) return; // One that starts on such a disk refuses to.
    const calls = writingCalls.filter(() => random() < 0.5);
    const what = `error=${random() < 0.5 ? "EIO" : "ENOSPC"}`;
    const tids = threadsOf(scene.central.pid, storeThread);
    if (tids.length === 0) return; // It was killed, or has only just begun.
    await using _ = await injected(tids, calls.length === 0 ? ["pwrite64"] : calls, what);
    await sleep(between(random, 100, 900));
  },
});

function ofBatches(make: (random: Random) => BatchFault): Fault {
  return async ({ proxy }, random) => {
    proxy.fault = make(random);
    await sleep(between(random, 200, 1_500));
    proxy.fault = { kind: "none" };
  };
}

export const network: Faults = {
  "the line is cut": async ({ line }, random) => {
    line.state = "cut";
    await sleep(between(random, 50, 800));
    line.state = "open";
  },
  "the line is dead": async ({ line }, random) => {
    line.state = "dead";
    await sleep(between(random, 200, 1_500));
    line.state = "open";
  },
  "something between answers 400": async ({ line }, random) => {
    line.state = "answers 400";
    await sleep(between(random, 200, 1_500));
    line.state = "open";
  },
  "answers are lost": ofBatches(() => ({ kind: "lost answer" })),
  "batches come late": ofBatches((random) => ({
    kind: "late",
    delayMs: between(random, 50, 1_500),
  })),
  "batches come twice": ofBatches(() => ({ kind: "twice" })),
  "central is slow": ofBatches((random) => ({ kind: "slow", delayMs: between(random, 50, 800) })),
  "400": ofBatches(() => ({ kind: "refused", status: 400 })),
  "413": ofBatches(() => ({ kind: "refused", status: 413, bytesMin: 2_000 })),
  "429": ofBatches(() => ({ kind: "refused", status: 429, retryAfterS: 1 })),
  "401": ofBatches(() => ({ kind: "refused", status: 401 })),
  "500": ofBatches(() => ({ kind: "refused", status: 500 })),
  "503": ofBatches(() => ({ kind: "refused", status: 503, retryAfterS: 1 })),
};

/** Hours, both ways, of one program or both; it may stay so. */
export const clocks: Faults = {
  "a clock jumps": async (scene, random) => {
    const offsetMs = Math.round((random() * 2 - 1) * jumpHoursMax * hourMs);
    const names = pick([["agent"], ["central"], ["agent", "central"]] as const, random) ?? [];
    for (const name of names) scene.setClock(name, offsetMs);
    await sleep(between(random, 100, 800));
    if (random() < 0.5) for (const name of names) scene.setClock(name, 0);
  },
};
