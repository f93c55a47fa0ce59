// Takes what agents tell of purge requests: `POST /purges`.

import { parseJson } from "../../core/journal/json-text.ts";
import { readBody } from "../../base/http-listener.ts";
import type { PurgeItems } from "../../core/purge/purge-items.ts";
import { decodePurgeMessage } from "../../wire/purge.ts";
import { describeErrors } from "../../wire/validate.ts";
import { refusal, type AgentRoute } from "./answers.ts";
import type { AgentMetrics } from "./metrics.ts";
import { PurgeOrders } from "./purge-orders.ts";
import type { WakeBus } from "./wake.ts";
import type { HostRow } from "../store/content/domains.ts";
import type { CustomerStore } from "../store/engine/customer-store.ts";
import { clearsOfDomain } from "../store/journal/clears.ts";
import { writePurge } from "../store/journal/purges.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";

export type PurgeWriting = {
  readonly transactions: Pick<CustomerStore, "run">;
  readonly bus: Pick<WakeBus, "publish">;
  readonly metrics: AgentMetrics;
  readonly monotonicMs: () => number;
};

/** Opens the orders that are written into the journal, one transaction for each clear. */
export function openPurgeOrders({
  transactions,
  bus,
  metrics,
  monotonicMs,
}: PurgeWriting): PurgeOrders<HostRow> {
  return new PurgeOrders<HostRow>({
    write: async (host, items) => {
      const { appended } = await transactions.run(
        async (work) => ({ keep: true, value: await writePurge(work, host, items) }),
        clearsOfDomain(host.domainId),
      );
      bus.publish(appended);
    },
    monotonicMs,
    after: (ms, call) => {
      const timer = setTimeout(call, ms);
      return { [Symbol.dispose]: () => clearTimeout(timer) };
    },
    count: (outcome) => metrics.accel_central_purges_total.inc({ outcome }),
  });
}

/** Room for 1,000 URLs of 4,096 characters, escaped. */
const bodyBytesMax = 16 * 2 ** 20;

export function createPurgeRoute(
  store: AgentStore,
  orders: Pick<PurgeOrders<HostRow>, "order">,
): AgentRoute {
  return async ({ request, deploymentSiteId }) => {
    const read = await readBody(request, bodyBytesMax);
    if (!read.ok) return refusal("too_large", `a purge has at most ${bodyBytesMax} bytes`);
    const decoded = decodePurgeMessage(parseJson(Buffer.from(read.body).toString("utf8")));
    if (!decoded.ok) return refusal("invalid", describeErrors(decoded.errors));
    const { instance_id: instance, domain, host, items } = decoded.value;
    const row = await store.purgedHost(deploymentSiteId, { domain, host });
    if (row === undefined)
      return refusal("conflict", `${host ?? domain} is not linked to this deployment site`);
    const agent = `${deploymentSiteId} ${instance}`;
    await orders.order(`${row.domainId} ${row.host}`, row, items satisfies PurgeItems, agent);
    return { status: 204 };
  };
}
