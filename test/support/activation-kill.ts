// kill -9 of a real agent at random moments of activations, from the customer's call to a little after the flip, while visitors read pairs of files.
//
// Each version is a new one: it has to be fetched, staged, committed and flipped. While the agent is up every visitor is answered with a whole file, never
// of an older version than somebody had before, kills between them or not; and after each kill the agent comes to the version by itself.

import { setTimeout as sleep } from "node:timers/promises";
import type { ReleaseRig } from "./release-rig.ts";
import { VersionOrder, visitPairs } from "./release-visitors.ts";
import { VersionedSite } from "./versioned-site.ts";

export type KillRun = {
  readonly counts: VersionOrder["counts"];
  kills: number;
  /** Kills before the version was in force, and after it. */
  before: number;
  after: number;
  /** Versions that the agent did not come to by itself. */
  readonly stuck: string[];
};
export type KillOptions = {
  readonly kills: number;
  readonly visitors: number;
  readonly onKill?: (run: KillRun) => void;
};

const files = 300;
/** A quarter of the files changes with each version, the others now and then. */
export const killedSite = new VersionedSite(
  files,
  (no, version) => no % 4 === 0 || (no + version) % 16 === 0,
);
/** Of the time that an activation takes: some kills come after it. */
const share = 1.4;
/** One in so many is left alone: it tells how long an activation takes. */
const leftAlone = 10;
/** One in so many is killed again while it catches up. */
const killedTwice = 3;
/** Restarts included, on a machine that is busy with other things. */
const cameWithinMs = 240_000;
/** Of what the agent said last, where it does not come. */
const saidMost = 1_000;
const stuckMost = 3;
/** How long an activation takes was measured while the machine was busy: then all kills may come after it, and more are needed. */
const killsMost = 5;

/** The agent of `rig` runs; nothing is published yet. */
export async function runKills(rig: ReleaseRig, options: KillOptions): Promise<KillRun> {
  const order = new VersionOrder();
  const run: KillRun = { counts: order.counts, kills: 0, before: 0, after: 0, stuck: [] };
  const activations = new Activations(rig, order);
  await activations.next();
  let expectedMs = (await activations.next()).tookMs;
  const kill = async (version: number): Promise<void> => {
    await sleep(Math.random() * expectedMs * share);
    if (order.newest < version) run.before++;
    else run.after++;
    await rig.edge.agent.kill();
    run.kills++;
    await rig.edge.agent.restart();
    options.onKill?.(run);
  };
  const done = new AbortController();
  const visiting = visitPairs(options.visitors, {
    port: rig.edge.ports.visitors,
    site: killedSite,
    order,
    signal: done.signal,
  });
  try {
    const isEnough = (): boolean =>
      run.kills >= options.kills && (run.before > 0 || run.kills >= killsMost * options.kills);
    for (let round = 1; !isEnough() && run.stuck.length < stuckMost; round++) {
      if (round % leftAlone === 0) expectedMs = (await activations.next()).tookMs;
      const { version, applied } = await activations.begin();
      await kill(version);
      if (round % killedTwice === 0) await kill(version);
      if ((await applied) === undefined)
        run.stuck.push(
          `version ${version} after ${run.kills} kills: ${rig.edge.agent.said.slice(-saidMost)}`,
        );
    }
  } finally {
    done.abort();
    await visiting;
  }
  return run;
}

/** One version after the other; each is imported, and asked for by the customer. */
class Activations {
  readonly #rig: ReleaseRig;
  readonly #order: VersionOrder;
  #version = 0;

  constructor(rig: ReleaseRig, order: VersionOrder) {
    this.#rig = rig;
    this.#order = order;
  }

  /** `applied`: how long it took; undefined: it did not come. */
  async begin(): Promise<{ version: number; applied: Promise<number | undefined> }> {
    const version = ++this.#version;
    const id = await this.#rig.publish(`v${version}`, killedSite.change(version));
    const began = performance.now();
    await this.#rig.activate(id);
    const applied = this.#rig.applied(id, cameWithinMs).then(
      () => {
        this.#order.promised(version);
        return performance.now() - began;
      },
      () => undefined,
    );
    return { version, applied };
  }

  async next(): Promise<{ readonly tookMs: number }> {
    const { version, applied } = await this.begin();
    const tookMs = await applied;
    if (tookMs === undefined) throw new Error(`version ${version} was not applied`);
    return { tookMs };
  }
}
