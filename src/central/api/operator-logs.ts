// What operators ask of request logs: which records agents told as lost, and why.

import type { ControlRoutes } from "../../base/control-socket.ts";
import { decodeLogLosses } from "../../wire/operator.ts";
import type { LogEngine } from "../agents/log-engine.ts";
import type { Transactions } from "../store/engine/customer-store.ts";
import { siteNames } from "../store/journal/sites.ts";
import { handler, noSite, read } from "./operator-routes.ts";

export type OperatorLogDeps = {
  readonly store: Transactions;
  readonly thread: Pick<LogEngine, "losses">;
};

export function operatorLogRoutes({ store, thread }: OperatorLogDeps): ControlRoutes {
  return {
    "log-losses": handler(decodeLogLosses, async ({ deployment_site_id: only, days }) => {
      const names = await read(store, async ({ tx }) => siteNames(tx));
      if (only !== undefined && !names.has(only)) throw noSite(only);
      const found = await thread.losses(days);
      return {
        days: found.days,
        unreadable: found.unreadable,
        losses: found.losses
          .filter(({ siteId }) => only === undefined || siteId === only)
          .map(({ day, siteId, reason, atLeast, atMost, firstMs, lastMs }) => ({
            day,
            deployment_site_id: siteId,
            // Null for a site that was deleted: what it told stays as long as its records.
            name16: names.get(siteId) ?? null,
            reason,
            at_least: atLeast,
            at_most: atMost,
            first_told: new Date(firstMs).toISOString(),
            last_told: new Date(lastMs).toISOString(),
          })),
      };
    }),
  };
}
