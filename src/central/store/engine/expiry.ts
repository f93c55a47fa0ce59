// Rows that have outlived their use.

import { idempotencyLifetimeMs } from "./idempotency.ts";
import type { Store } from "./database.ts";

/** How many were removed. */
export async function dropExpiredAgentTokens(store: Store, now: Date): Promise<number> {
  const { numDeletedRows } = await store
    .deleteFrom("agent_tokens")
    .where("expires_at", "<=", now.toISOString())
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** How many were removed. */
export async function dropIdempotencyKeys(store: Store, now: Date): Promise<number> {
  const before = new Date(now.getTime() - idempotencyLifetimeMs).toISOString();
  const { numDeletedRows } = await store
    .deleteFrom("idempotency")
    .where("when_created", "<", before)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
