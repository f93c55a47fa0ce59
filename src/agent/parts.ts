// Composes the agent's parts in an order whose reverse is the order of stopping: first operators and link
// stop, then the workers drain, their last records are spooled and shipped, and then the ground closes.

import { listenText } from "../base/settings-fields.ts";
import { openLink } from "./follow.ts";
import { openGround, type AgentOptions } from "./ground.ts";
import { openOperators } from "./operators.ts";
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
};

/**
 * Opens all parts. Throws an AccelError naming what cannot be opened; everything opened before is closed
 * again.
 */
export async function openAgent(options: AgentOptions): Promise<Agent> {
  await using stack = new AsyncDisposableStack();
  const ground = await openGround(stack, options);
  const served = await openServing(stack, ground);
  const scrub = openScrub(stack, ground, served);
  const { link, confirming } = openLink(stack, ground, served);
  openRollouts(stack, ground, served);
  const metricsListen = await openOperators(stack, { ground, served, link, scrub });
  const owned = stack.move();
  const { pool, healing } = served;
  return {
    listen: listenText({ ...options.settings["accelerator.listen"], port: pool.port }),
    metricsListen,
    switchLane: (usesIt) => pool.switchLane(usesIt),
    heartbeats: { read: () => ({ ...pool.heartbeats(), spool: ground.spool.heartbeat() }) },
    async [Symbol.asyncDispose]() {
      await owned.disposeAsync();
      await Promise.all([healing, confirming]);
    },
  };
}
