// Joins the other centrals at the store, where the settings say that there are some.

import { hostname } from "node:os";
import { setTimeout as sleepFor } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import type { Registry } from "../base/metrics.ts";
import type { Sealer } from "../base/seal.ts";
import { listenText } from "../base/settings-fields.ts";
import type { Health } from "../base/health.ts";
import { openCluster, type Cluster } from "./cluster/cluster.ts";
import { refusalBySettings, type CentralJob, type DifferingCentral } from "./cluster/membership.ts";
import { alikeSettings, keysText } from "./settings/alike.ts";
import type { CentralSettings } from "./settings/fields.ts";
import { postgresPlace, type CentralStore } from "./store-opening.ts";
import { settingsAtStore } from "./store/centrals/centrals.ts";

export type OthersDeps = Pick<CentralStore, "store" | "openWay"> & {
  readonly settings: CentralSettings;
  readonly version: string;
  readonly registry: Registry;
  readonly sealer: Sealer;
  /** When this central started, ISO 8601. */
  readonly started: string;
  readonly log: Log;
  readonly health: Pick<Health, "raise" | "settle">;
};

/** Names a central to people. */
const addressOf = ({ listen }: CentralSettings): string => `${hostname()} (${listenText(listen)})`;

/** Returns undefined where this central is the only one. Throws what the store throws, STORE_KEY_WRONG and SETTINGS_DIFFER. */
export async function openOthers(deps: OthersDeps): Promise<Cluster | undefined> {
  const { openWay, settings, version, started: whenStarted } = deps;
  if (openWay === undefined) return undefined;
  const central = { address: addressOf(settings), version, whenStarted };
  return openCluster({
    ...deps,
    openWay,
    central,
    settings: alikeSettings(settings),
    monotonicMs: () => performance.now(),
    onDiffering: tellDiffering(deps),
  });
}

/** Returns what warns while other centrals have other settings. */
function tellDiffering({
  health,
  log,
}: Pick<OthersDeps, "health" | "log">): (others: readonly DifferingCentral[]) => void {
  let before = "";
  return (others) => {
    const text = others.map(differingText).join("; ");
    if (text !== "") {
      const isRefused = others.some(({ refused }) => refused.length > 0);
      const severity = isRefused ? "error" : "warning";
      health.raise("settings_differ", severity, text, "Make the settings alike, on each central.");
      if (text !== before) log.warn({ others }, "another central has other settings");
    } else if (before !== "") {
      health.settle("settings_differ");
      log.info("all centrals at the store have the same settings");
    }
    before = text;
  };
}

/** Pure. Says in which settings a central differs. */
export const differingText = ({ address, refused, told }: DifferingCentral): string =>
  `the central at ${address} has other settings than this one: ${keysText([...refused, ...told])}`;

/** Above the time between two beats. */
const watchMs = 1_000;
const watchesMax = 6;

/**
 * Asks whether this central may join those that work at its store, by its settings; changes nothing. A central whose beat stands still is gone, and one with this central's address is the one that
 * these settings are for. Throws SETTINGS_DIFFER, and what the store throws.
 */
export async function tryJoin(settings: CentralSettings, watchEveryMs = watchMs): Promise<void> {
  const place = postgresPlace(settings);
  if (place === undefined || settings["store.instances"] !== "many") return;
  const { connectPostgresStore } = await import("./store/engine/postgres-store.ts");
  await using store = connectPostgresStore({
    place: { ...place, connections: 1 },
    random: Math.random,
  });
  const ours = alikeSettings(settings);
  const before = new Map<string, number>();
  for (let looks = 0; looks < watchesMax; looks++) {
    const others = (await settingsAtStore(store)).flatMap((one) => {
      const refusal = refusalBySettings(ours, one);
      return refusal === undefined || one.address === addressOf(settings)
        ? []
        : [{ ...one, refusal }];
    });
    const moved = others.find(({ id, beat }) => (before.get(id) ?? beat) !== beat);
    if (moved !== undefined) throw moved.refusal;
    if (others.length === 0) return;
    for (const { id, beat } of others) before.set(id, beat);
    await sleepFor(watchEveryMs);
  }
}

/** Returns whether this central does the job now. One that is alone does all. */
export function isOurs(others: Cluster | undefined, job: CentralJob): boolean {
  return others?.membership.does(job) ?? true;
}

/** How many centrals share what a limit allows. */
export function centralsOf(others: Cluster | undefined): number {
  return others?.membership.count ?? 1;
}
