// How channels are told that central stops: all at once, or, where agents can go to another central at once, spread over some seconds, for each that comes there costs it something.

import type { Channel } from "./channel.ts";

/** So many agents a second come back to the others, as far as it is for this central. Agents add a second of their own. */
export const drainedPerSecond = 500;
/** A stop has 30 s (`TimeoutStopSec=` of the unit); behind the channels requests and logs have 8 s, and the store some. */
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

/** Tells one agent, and closes. Resolves when the channel is gone. */
export async function tellDrained({ socket }: Channel, reconnect: number): Promise<void> {
  await socket.send({ type: "drain", reconnect_after_ms: reconnect });
  socket.close(1001, "central is stopping");
  await socket.gone;
}
