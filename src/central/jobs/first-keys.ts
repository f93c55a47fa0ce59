// Gives sites that are older than symmetric keys their first one: once, at the start, while requests are answered. They had none before, so nobody waits for it.

import type { Log } from "../../base/log.ts";
import type { Transactions } from "../store/engine/customer-store.ts";
import { giveFirstKeys } from "../store/engine/first-keys.ts";

export type FirstKeysJob = {
  readonly customers: Transactions;
  readonly log: Log;
  /** Whether this central does it, and not another at the store. */
  readonly isOurs: () => boolean;
};

/** Starts the job. Disposing waits for the transaction under way; the rest is left for the next start. */
export function startFirstKeys({ customers, log, isOurs }: FirstKeysJob): AsyncDisposable {
  const ending = new AbortController();
  const give = async (): Promise<void> => {
    if (!isOurs()) return;
    const made = await giveFirstKeys({
      transact: async (action) => customers.transact(action),
      onFailure: (id, error) =>
        log.error({ err: error, deployment_site_id: id }, "a deployment site has no symmetric key"),
      stop: ending.signal,
    });
    if (made > 0) log.info({ made }, "deployment sites got their first symmetric key");
  };
  const giving = give().catch((error: unknown) =>
    log.error({ err: error }, "sites without a symmetric key get theirs at the next start"),
  );
  return {
    async [Symbol.asyncDispose]() {
      ending.abort();
      await giving;
    },
  };
}
