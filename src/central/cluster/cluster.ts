// The centrals at one store, as this one sees them: the bus to them, who they are, and which agents are connected there.

import type { Log } from "../../base/log.ts";
import { createMetrics, type MetricTable, type Registry } from "../../base/metrics.ts";
import type { Sealer } from "../../base/seal.ts";
import { messageOf } from "../../core/faults.ts";
import type { CentralSeen } from "../store/centrals/centrals.ts";
import type { Store } from "../store/engine/database.ts";
import { createAskCentral, originOfCentral } from "./ask-central.ts";
import { CentralBus, type OpenNoticeWay } from "./bus.ts";
import { LoneWatch } from "./lone-watch.ts";
import { Membership, type MembershipOptions } from "./membership.ts";
import { Presence } from "./presence.ts";

export const clusterMetrics = {
  accel_central_instances: {
    kind: "gauge",
    help: "Centrals that work on the store, this one among them.",
  },
  accel_central_bus_messages_total: {
    kind: "counter",
    help: "Messages between centrals: sent, heard, and lost because the way was. What is lost is made up for by a look at the store.",
    labels: ["direction"],
  },
} as const satisfies MetricTable;

export type ClusterOptions = {
  readonly store: Store;
  /** Of this central: `centralIdForm`. */
  readonly id: string;
  readonly openWay: OpenNoticeWay;
  readonly central: Pick<CentralSeen, "address" | "version" | "whenStarted">;
  readonly sealer: Pick<Sealer, "seal" | "open">;
  /** What all must have alike. */
  readonly settings: MembershipOptions["settings"];
  readonly now: () => Date;
  readonly onDiffering?: MembershipOptions["onDiffering"] | undefined;
  readonly onClock?: MembershipOptions["onClock"] | undefined;
  /** The address of all centrals, and what is to be trusted there besides the public authorities. */
  readonly baseUrl: string;
  readonly authority: () => string | undefined;
  readonly hostName: string;
  /** Called when this central alone has no way to the store, and when that is over; must not throw. */
  readonly onLone: (isLone: boolean) => void;
  readonly monotonicMs: () => number;
  readonly registry: Registry;
  readonly log: Log;
};

export type Cluster = AsyncDisposable & {
  readonly bus: CentralBus;
  readonly membership: Membership;
  readonly presence: Presence;
  readonly lone: LoneWatch;
};

/** Joins the others. Throws what `Membership.join` throws. */
export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  const { openWay, log, registry } = options;
  const metrics = createMetrics(clusterMetrics, registry);
  await using stack = new AsyncDisposableStack();
  // Each attempt to come back that fails says so again.
  let isLost = false;
  const bus = stack.use(
    await CentralBus.open({
      id: options.id,
      openWay,
      log,
      onState: (state, error) => {
        const wasLost = isLost;
        isLost = state !== "back";
        if (!isLost) log.info("the other centrals are heard again");
        else if (!wasLost)
          log.warn(
            { reason: messageOf(error) },
            "the way to the other centrals is lost; until it is back each looks into the store",
          );
      },
      onCount: (direction, count) =>
        metrics.accel_central_bus_messages_total.inc({ direction }, count),
    }),
  );
  const membership = stack.use(
    await Membership.join({
      ...options,
      bus,
      onCount: (centrals) => metrics.accel_central_instances.set(centrals),
    }),
  );
  const presence = stack.use(await Presence.open({ ...options, bus, membership }));
  const lone = stack.use(
    new LoneWatch({
      ...options,
      id: bus.id,
      membership,
      others: () =>
        membership.others.flatMap(
          ({ address }) => originOfCentral(address, options.hostName) ?? [],
        ),
      ask: createAskCentral(options.authority),
    }),
  );
  log.info({ central: bus.id, others: membership.count - 1 }, "central is one of several");
  const owned = stack.move();
  return {
    bus,
    membership,
    presence,
    lone,
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}
