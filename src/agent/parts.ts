// Composes the agent's parts in an order whose reverse is the order of stopping: first operators and link
// stop, then the workers drain, their last records are spooled and shipped, and then the ground closes.

import { listenText, type ListenAddress } from "../base/settings-fields.ts";
import type { LentSockets } from "./accelerator/pool/visitor-sockets.ts";
import type { PartedWorkers } from "./accelerator/pool/workers.ts";
import type { UnreviewedBots } from "./bots/unreviewed/unreviewed-bots.ts";
import { openLink } from "./follow.ts";
import { openGround, type AgentOptions } from "./ground.ts";
import { openOperators } from "./operators.ts";
import { LateInvalidations } from "./cache/late-invalidations.ts";
import type { LateRecords } from "./requests/ship/late-records.ts";
import { openRollouts } from "./rollouts.ts";
import { openScrub } from "./scrubbing.ts";
import { openServing } from "./serve.ts";

export type Agent = AsyncDisposable & {
  readonly listen: string;
  readonly metricsListen: string;
  /** Switches the lane on or off; see accelerator.lane. */
  readonly switchLane: (usesIt: boolean) => void;
  /** For each thread a number that changes while it lives. */
  readonly heartbeats: { read(): Readonly<Record<string, number>> };
  /** The sockets on which visitors arrive, for a successor. */
  readonly sockets: {
    readonly addresses: {
      readonly listen: ListenAddress;
      readonly tlsListen: ListenAddress | null;
    };
    /** Throws DESCRIPTORS_USED_UP. The descriptors are the caller's. */
    lend(): LentSockets;
  };
  /** Has each answer be the last one of its connection from now on, where HTTP/1 carries it, or not any more. */
  slacken(isSlack: boolean): void;
  /**
   * Gives everything up for a successor: when this resolves, no visitor is accepted and nothing of the state directory is open. What is under way is answered all
   * the same, within the grace.
   */
  handOver(): Promise<Parted>;
};

/** What is left of an agent that has handed over. */
export type Parted = PartedWorkers & {
  readonly records: LateRecords;
  readonly bots: Pick<UnreviewedBots, "follow" | "complete">;
  readonly invalidations: Pick<LateInvalidations, "follow" | "answered">;
};

/**
 * Opens all parts. Throws an AccelError naming what cannot be opened; everything opened before is closed
 * again.
 */
export async function openAgent(given: AgentOptions): Promise<Agent> {
  const leaving = new AbortController();
  const options = { ...given, stop: AbortSignal.any([given.stop, leaving.signal]) };
  await using stack = new AsyncDisposableStack();
  const ground = await openGround(stack, options);
  const served = await openServing(stack, ground);
  options.predecessor?.serving();
  // What it begins goes by what was in force when it handed over.
  await options.predecessor?.quiet;
  const orders = stack.use(new AsyncDisposableStack());
  const scrub = openScrub(orders, ground, served);
  const { link, confirming } = openLink(orders, ground, served);
  openRollouts(orders, ground, served);
  const metricsListen = await openOperators(orders, { ground, served, link, scrub });
  ground.book.serves();
  const owned = stack.move();
  const { pool, healing } = served;
  const close = async (): Promise<void> => {
    await owned.disposeAsync();
    await Promise.all([healing, confirming]);
  };
  return {
    listen: listenText({ ...options.settings["accelerator.listen"], port: pool.port }),
    metricsListen,
    switchLane: (usesIt) => pool.switchLane(usesIt),
    heartbeats: { read: () => ({ ...pool.heartbeats(), spool: ground.spool.heartbeat() }) },
    sockets: { addresses: pool.addresses, lend: () => pool.lend() },
    slacken: (isSlack) => pool.slacken(isSlack),
    async handOver() {
      leaving.abort("handed over");
      ground.shipper.leave();
      await orders.disposeAsync(); // Visitors are accepted meanwhile.
      const parted = await pool.part();
      const invalidations = new LateInvalidations();
      await ground.index.handOver(invalidations);
      await close();
      const { lateRecords: records, unreviewed: bots } = ground;
      return { ...parted, records, bots, invalidations };
    },
    [Symbol.asyncDispose]: close,
  };
}
