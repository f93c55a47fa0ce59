// How channels are told that central stops: all at once, or, where agents can go to another central at once, spread over some seconds, for each that comes there costs it something.

import { sleep } from "../../base/wait.ts";
import type { Log } from "../../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Presence } from "../cluster/presence.ts";
import type { Channel } from "./channel.ts";

/** So many agents a second come back to the others, as far as it is for this central. Agents add a second of their own. */
export const drainedPerSecond = 500;
/** A stop has 30 s (`TimeoutStopSec=` of the unit); requests have 18 s of it (front.ts), and behind them the logs and the store take some. */
export const drainMostMs = 12_000;
/** A balancer that looks every 2 s has seen by then that this central takes nobody new. */
const noticedMs = 2_500;
/** Agents come back after so long at least, and up to twice as long. */
const leastReconnectMs = 1_000;

/** Pure. The time over which so many channels are drained, in milliseconds. `others`: centrals to which agents can go. */
export function drainSpreadMs(channels: number, others: number): number {
  if (others === 0 || channels <= drainedPerSecond) return 0;
  return Math.min(drainMostMs, (channels / drainedPerSecond) * 1_000);
}

/** Pure. What an agent is told that is told `ms` after the stop began: where many are drained, nobody comes back before a balancer has noticed. */
export function reconnectAfterMs(ms: number, spreadMs: number): number {
  return spreadMs === 0 ? leastReconnectMs : Math.max(leastReconnectMs, noticedMs - ms);
}

export type Drained<T> = { readonly channel: T; readonly ms: number };

/** Pure. Who is told when, the first first. `random` returns a number in [0, 1). */
export function drainPlan<T>(
  channels: readonly T[],
  spreadMs: number,
  random: () => number,
): readonly Drained<T>[] {
  return channels
    .map((channel) => ({ channel, ms: spreadMs === 0 ? 0 : random() * spreadMs }))
    .toSorted((one, other) => one.ms - other.ms);
}

type Draining = {
  readonly spreadMs: number;
  readonly random: () => number;
  readonly monotonicMs: () => number;
  /** Told to agents as the reason. */
  readonly reason: string;
  /** After so long agents come back that are told `ms` after the beginning. */
  readonly reconnectMs: (ms: number) => number;
  /** Ends it early: the others keep their channels. */
  readonly stop?: AbortSignal;
};

/** Tells all of them. Resolves with their ends when the last one has been told. */
async function drainChannels(
  channels: readonly Channel[],
  { spreadMs, random, monotonicMs, reason, reconnectMs, stop }: Draining,
): Promise<readonly Promise<void>[]> {
  const stopped = stop ?? new AbortController().signal;
  const beganMs = monotonicMs();
  const closing: Promise<void>[] = [];
  for (const { channel, ms } of drainPlan(channels, spreadMs, random)) {
    const left = ms - (monotonicMs() - beganMs);
    if (left > 0) await sleep(left, stopped);
    if (stopped.aborted) break;
    closing.push(tellDrained(channel, Math.round(reconnectMs(ms)), reason));
  }
  return closing;
}

export type DrainDeps = {
  readonly others?:
    | {
        readonly presence: Pick<Presence, "drains">;
        readonly membership: Pick<Membership, "count">;
      }
    | undefined;
  readonly monotonicMs: () => number;
  readonly log: Pick<Log, "info" | "warn">;
  readonly random?: () => number;
  readonly spreadMs?: typeof drainSpreadMs;
};

/** Tells all that central stops. Resolves with their ends when the last one has been told. */
export async function drainForStop(
  deps: DrainDeps,
  channels: readonly Channel[],
): Promise<readonly Promise<void>[]> {
  const { others, monotonicMs, log, random = Math.random } = deps;
  const { spreadMs: spreadOf = drainSpreadMs } = deps;
  const spreadMs = spreadOf(channels.length, (others?.membership.count ?? 1) - 1);
  others?.presence.drains();
  if (spreadMs > 0)
    log.info({ channels: channels.length, seconds: spreadMs / 1_000 }, "channels are drained");
  const reconnectMs = (ms: number): number => reconnectAfterMs(ms, spreadMs);
  const reason = "central stops or begins anew";
  return drainChannels(channels, { spreadMs, random, monotonicMs, reason, reconnectMs });
}

/** Time for some looks whether the address of all still leads to others when the first have come back. */
const sentOffMs = 10_000;

/** Pure. The time over which so many agents are sent off by a central that goes on, in milliseconds. */
export function sendOffSpreadMs(channels: number): number {
  return Math.max(sentOffMs, (channels / drainedPerSecond) * 1_000);
}

/** Has all come back at other centrals; ends early by the signal. Resolves when those that were told are gone. */
export async function sendOff(
  { monotonicMs, log, random = Math.random }: DrainDeps,
  channels: readonly Channel[],
  stop: AbortSignal,
): Promise<void> {
  const spreadMs = sendOffSpreadMs(channels.length);
  log.warn(
    { channels: channels.length, seconds: spreadMs / 1_000 },
    "agents are sent to the other centrals",
  );
  const told = { reason: "other centrals have the store", reconnectMs: () => leastReconnectMs };
  await Promise.all(
    await drainChannels(channels, { spreadMs, random, monotonicMs, stop, ...told }),
  );
}

/** Tells one agent, and closes. Resolves when the channel is gone. */
async function tellDrained({ socket }: Channel, reconnect: number, reason: string): Promise<void> {
  await socket.send({ type: "drain", reconnect_after_ms: reconnect });
  socket.close(1001, reason);
  await socket.gone;
}
