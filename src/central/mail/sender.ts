// The sender takes what is due from the outbox and stores the outcome. Mails go one after the other, chat
// messages side by side: a hook that does not answer holds up nobody else's.
//
// If it is killed between a peer's acceptance and our commit, it sends that message once more, under the same
// id: at most one mail, and one message to each hook under way. Nothing else is sent twice: while the commit
// fails, the message still counts as under way.

import type { Log } from "../../base/log.ts";
import { retry, sleep } from "../../base/wait.ts";
import { backoffMs, type Backoff } from "../../core/backoff.ts";
import type { Outgoing, OutgoingChannel, TakenMessage } from "../../core/outgoing.ts";
import { Sendings, type FlightLimits } from "./flights.ts";
import type { SenderTelemetry } from "./telemetry.ts";
import type { DeliverChat, DeliverMail, Delivery } from "./delivery.ts";
import type { Outbox } from "../store/notices/outbox-sending.ts";

export type SenderOptions = {
  readonly outbox: Outbox;
  /** Undefined if no mail server is set; mails then wait. */
  readonly mail: DeliverMail | undefined;
  readonly chat: DeliverChat;
  readonly telemetry: SenderTelemetry;
  readonly log: Log;
  readonly now: () => Date;
  readonly random: () => number;
  readonly timings?: Partial<SenderTimings>;
  /** Whether this central sends now, and not another at the store. Always, if absent. */
  readonly isOurs?: () => boolean;
};

export type SenderTimings = {
  /** The pause between two looks into an outbox in which nothing is due. */
  readonly idleMs: number;
  /** The time for which a taken message is leased: longer than any attempt may take. */
  readonly leaseMs: number;
  readonly attemptMsMax: number;
  /** The backoff while the mail server cannot be had. */
  readonly down: Backoff;
  /** The backoff of one message. */
  readonly again: Backoff;
  readonly telemetryMs: number;
  /** The time that the attempt under way has when the sender is stopped. */
  readonly graceMs: number;
};

const usual: SenderTimings = {
  idleMs: 1_000,
  leaseMs: 180_000,
  attemptMsMax: 120_000,
  down: { firstMs: 1_000, mostMs: 60_000 },
  again: { firstMs: 10_000, mostMs: 3_600_000 },
  telemetryMs: 10_000,
  graceMs: 5_000,
};

const flightLimits: Readonly<Record<OutgoingChannel, FlightLimits>> = {
  mail: { all: 1, perCustomer: 1 },
  // A customer whose hooks do not answer keeps two connections busy, not all.
  chat: { all: 32, perCustomer: 2 },
};

/**
 * How often the mail server may hang up at one message while it is there; then the messages behind it go
 * first.
 */
const hungUpMax = 3;

/** Starts the sender. Disposing lets the attempt under way end, for a while. */
export function startSender(options: SenderOptions): AsyncDisposable {
  const timings = { ...usual, ...options.timings };
  const stop = new AbortController();
  const cut = new AbortController();
  const { mail, chat } = options;
  const deliver = async (message: Outgoing, taken: TakenMessage, signal: AbortSignal) => {
    if (message.channel === "chat") return chat(message, taken, signal);
    return mail === undefined ? noServer : mail(message, taken, signal);
  };
  const lanes = (["mail", "chat"] as const)
    .filter((channel) => channel === "chat" || mail !== undefined)
    .map(async (channel) => runLane({ ...options, timings, deliver, channel, stop, cut }));
  const watching = watch(options, timings, stop.signal);
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      const late = setTimeout(() => cut.abort(), timings.graceMs);
      await Promise.all([...lanes, watching]);
      clearTimeout(late);
    },
  };
}

const noServer: Delivery = { kind: "down", reason: "no mail server is set" };

type Lane = Omit<SenderOptions, "timings"> & {
  readonly timings: SenderTimings;
  readonly channel: OutgoingChannel;
  readonly deliver: (
    message: Outgoing,
    taken: TakenMessage,
    signal: AbortSignal,
  ) => Promise<Delivery>;
  readonly stop: AbortController;
  readonly cut: AbortController;
};

/**
 * The attempts in a row after which nothing could be sent, and those of them at which the server hung up at
 * one message.
 */
type Downs = { count: number; hungUp: { id: number; count: number } };

/** Runs a lane. Never rejects. */
async function runLane(lane: Lane): Promise<void> {
  const { channel, timings, stop } = lane;
  const flights = new Sendings(flightLimits[channel]);
  const downs: Downs = { count: 0, hungUp: { id: 0, count: 0 } };
  stop.signal.addEventListener("abort", () => flights.wake(), { once: true });
  while (!stop.signal.aborted) {
    // Taken before looking, so that a landing meanwhile is not missed.
    const { change } = flights;
    const mayTake = !flights.isFull && (lane.isOurs?.() ?? true);
    const taken = mayTake ? await takeNext(lane, flights) : undefined;
    if (taken === undefined) await sleep(timings.idleMs, change);
    else flights.start(taken, async () => fly(lane, taken, downs));
  }
  await flights.ended();
}

async function takeNext(
  { outbox, channel, timings, log }: Lane,
  { busy }: Sendings,
): Promise<TakenMessage | undefined> {
  try {
    return await outbox.take(channel, timings.leaseMs, busy);
  } catch (error) {
    log.error({ err: error, channel }, "the outbox cannot be read");
    return undefined;
  }
}

/** Makes one attempt, and pauses the lane if nothing can be sent. Never rejects. */
async function fly(lane: Lane, taken: TakenMessage, downs: Downs): Promise<void> {
  const { channel, timings, telemetry, random, stop, cut } = lane;
  const signal = AbortSignal.any([cut.signal, AbortSignal.timeout(timings.attemptMsMax)]);
  const delivery = await lane.deliver(taken.message, taken, signal);
  await settle(lane, taken, overtaken(delivery, taken, downs));
  telemetry.tried(channel, taken.kind, delivery);
  downs.count = delivery.kind === "down" ? downs.count + 1 : 0;
  if (downs.count > 0) await sleep(backoffMs(downs.count - 1, random(), timings.down), stop.signal);
}

/**
 * Returns the delivery. If the server is there and hangs up at this message again and again, the message
 * counts as not accepted now.
 */
function overtaken(delivery: Delivery, { id }: TakenMessage, downs: Downs): Delivery {
  if (delivery.kind !== "down" || delivery.hungUp !== true) return delivery;
  const count = downs.hungUp.id === id ? downs.hungUp.count + 1 : 1;
  downs.hungUp = { id, count };
  return count < hungUpMax ? delivery : { kind: "later", reason: delivery.reason };
}

/**
 * Writes down what came of a message, and tries until that succeeds: one that was sent and is not known to be
 * would be sent again.
 */
async function settle(lane: Lane, taken: TakenMessage, delivery: Delivery): Promise<void> {
  const { log, random, channel, cut } = lane;
  const facts = { channel, kind: taken.kind, id: taken.uid, attempts: taken.attempts };
  const write = async (): Promise<void> => writeDown(lane, taken, delivery);
  try {
    await retry(write, {
      stop: cut.signal,
      random,
      onFailure: (error) => {
        log.error({ err: error, ...facts }, "the outcome of a message cannot be stored");
        return true;
      },
    });
  } catch {
    return; // Stopped; it was logged above.
  }
  if (delivery.kind === "sent") log.info(facts, "message sent");
  else log.warn({ ...facts, reason: delivery.reason }, `message ${wordOf[delivery.kind]}`);
}

const wordOf = { refused: "refused for good", later: "not taken", down: "not sent" } as const;

async function writeDown(
  { outbox, now, random, timings }: Lane,
  taken: TakenMessage,
  delivery: Delivery,
): Promise<void> {
  switch (delivery.kind) {
    case "sent":
      return outbox.sent(taken);
    case "refused":
      return outbox.failed(taken, delivery.reason);
    case "later": {
      const pauseMs = backoffMs(taken.attempts - 1, random(), timings.again);
      const waitMs = Math.max(delivery.waitMs ?? 0, timings.again.firstMs / 2 + pauseMs);
      return outbox.postpone(taken, new Date(now().getTime() + waitMs), delivery.reason);
    }
    case "down":
      // The lane waits as a whole.
      return outbox.putBack(taken, delivery.reason);
    default:
      return delivery satisfies never;
  }
}

async function watch(
  { outbox, telemetry, mail, now, log }: SenderOptions,
  { telemetryMs }: SenderTimings,
  stop: AbortSignal,
): Promise<void> {
  do {
    try {
      for (const { channel, kind } of await outbox.expire()) telemetry.expired(channel, kind);
      telemetry.backlog(await outbox.backlog(), mail !== undefined, now());
    } catch (error) {
      log.error({ err: error }, "the outbox cannot be examined");
    }
  } while (await sleep(telemetryMs, stop));
}
