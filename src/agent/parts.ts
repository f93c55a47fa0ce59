// The agent's parts, composed in an order whose reverse is the order of stopping: operators and link first, then the workers drain, their
// last records are spooled and shipped, then what all of it stood on.

import { openLink } from "./follow.ts";
import { openGround, type AgentOptions } from "./ground.ts";
import { openOperators } from "./operators.ts";
import { openScrub } from "./scrubbing.ts";
import { openServing } from "./serve.ts";

export type Agent = AsyncDisposable & {
  readonly listen: string;
  readonly metricsListen: string;
  /** Thread → a number that moves while it lives. */
  readonly heartbeats: { read(): Readonly<Record<string, number>> };
};

/** Throws an AccelError naming what cannot be opened; everything opened before is closed again. */
export async function openAgent(options: AgentOptions): Promise<Agent> {
  await using stack = new AsyncDisposableStack();
  const ground = await openGround(stack, options);
  const served = await openServing(stack, ground);
  const scrub = openScrub(stack, ground, served);
  const { link, confirming } = openLink(stack, ground, served);
  const metricsListen = await openOperators(stack, { ground, served, link, scrub });
  const owned = stack.move();
  const { pool, healing } = served;
  return {
    listen: `${options.settings["accelerator.listen"].host}:${pool.port}`,
    metricsListen,
    heartbeats: { read: () => ({ ...pool.heartbeats(), spool: ground.spool.heartbeat() }) },
    async [Symbol.asyncDispose]() {
      await owned.disposeAsync();
      await Promise.all([healing, confirming]);
    },
  };
}
