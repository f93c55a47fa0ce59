// Joins the other centrals at the store, where the settings say that there are some.

import { hostname } from "node:os";
import { setTimeout as sleepFor } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import type { Registry } from "../base/metrics.ts";
import type { Sealer } from "../base/seal.ts";
import { listenText } from "../base/settings-fields.ts";
import type { Health } from "../base/health.ts";
import { durationText } from "../core/quantities.ts";
import type { CentralTold } from "../wire/central-told.ts";
import { centralAddress } from "./cluster/ask-central.ts";
import { openCluster, type Cluster } from "./cluster/cluster.ts";
import { refusalBySettings, type CentralJob, type DifferingCentral } from "./cluster/membership.ts";
import { alikeSettings, keysText } from "./settings/alike.ts";
import { readAuthority } from "./settings/authority.ts";
import type { CentralSettings } from "./settings/fields.ts";
import { postgresPlace, type CentralStore } from "./store-opening.ts";
import { settingsAtStore } from "./store/centrals/centrals.ts";

export type OthersDeps = Pick<CentralStore, "store" | "id" | "openWay" | "onLone"> & {
  readonly settings: CentralSettings;
  readonly version: string;
  readonly registry: Registry;
  readonly sealer: Sealer;
  /** When this central started, ISO 8601. */
  readonly started: string;
  readonly log: Log;
  readonly health: Pick<Health, "raise" | "settle">;
  readonly now: () => Date;
};

/** Names a central to people. */
const addressOf = ({ listen }: CentralSettings): string =>
  centralAddress(hostname(), listenText(listen));

/** Returns undefined where this central is the only one. Throws what the store throws, STORE_KEY_WRONG and SETTINGS_DIFFER. */
export async function openOthers(deps: OthersDeps): Promise<Cluster | undefined> {
  const { openWay, onLone, settings, version, started: whenStarted } = deps;
  if (openWay === undefined) return undefined;
  const central = { address: addressOf(settings), version, whenStarted };
  return openCluster({
    ...deps,
    openWay,
    central,
    settings: alikeSettings(settings),
    baseUrl: settings.base_url,
    authority: () => readAuthority(settings.ca_file)?.pem,
    hostName: hostname(),
    onLone,
    monotonicMs: () => performance.now(),
    onDiffering: tellDiffering(deps),
    onClock: tellClock(deps),
  });
}

/** Returns what warns while other centrals have other settings. */
export function tellDiffering({
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

/** A clock that is kept by NTP is off by milliseconds. */
const clockMsMax = 5_000;
/** Tokens of ten minutes bear no more than that; this is told long before. */
const clockErrorMs = 60_000;

/** Returns what warns while this central's clock and the store's differ. */
export function tellClock({
  health,
  log,
}: Pick<OthersDeps, "health" | "log">): (aheadMs: number) => void {
  let isTold = false;
  return (aheadMs) => {
    const differsMs = Math.abs(aheadMs);
    if (differsMs <= clockMsMax) {
      if (isTold) log.info("this central's clock and the store's are the same again");
      isTold = false;
      return health.settle("clock_differs");
    }
    const way = aheadMs > 0 ? "ahead of" : "behind";
    const text = `this central's clock is ${durationText(Math.round(differsMs / 1_000))} ${way} that of the store's server`;
    health.raise(
      "clock_differs",
      differsMs < clockErrorMs ? "warning" : "error",
      text,
      "Look at the time service (chronyc tracking, timedatectl) of this host, and of the PostgreSQL that `store.url` names: where every central warns, it is that one.",
    );
    if (!isTold) log.warn({ ahead_ms: aheadMs }, "this central's clock and the store's differ");
    isTold = true;
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

/** Returns what this central says to the others; undefined where there are none. */
export function toldOf(others: Cluster | undefined): CentralTold | undefined {
  return others && { central: others.bus.id, works: others.membership.works };
}

/** Less than requests in flight have behind a stop (front.ts), and above the time for which agents are drained (agents/drain.ts). */
const waitedOnMs = 14_000;

/** Returns what ends waiting for a proof. A central that stops alone hears of none any more; of several, the agents it had tell the others, and those tell it. */
export function waitsEnd(stop: AbortSignal, others: Cluster | undefined): AbortSignal {
  if (others === undefined) return stop;
  const later = new AbortController();
  const end = (): void => later.abort(stop.reason);
  stop.addEventListener("abort", () => void setTimeout(end, waitedOnMs).unref(), { once: true });
  return later.signal;
}
