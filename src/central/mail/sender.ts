// The sender: takes what is due from the outbox, one message after the other for mail and for chat each, and writes down what came of it.
//
// Killed between the peer's acceptance and our commit, it sends that one message once more, under the same id. Nothing else is sent twice: while the
// commit fails, the lane goes no further.

import type { Log } from "../../base/log.ts";
import { retry, sleep } from "../../base/wait.ts";
import { backoffMs, type Backoff } from "../../core/backoff.ts";
import type { Outgoing, OutgoingChannel, TakenMessage } from "../../core/outgoing.ts";
import type { SenderTelemetry } from "./telemetry.ts";
import type { DeliverChat, DeliverMail, Delivery, Outbox } from "./ports.ts";

export type SenderOptions = {
  readonly outbox: Outbox;
  /** Undefined: no mail server is set; mails wait. */
  readonly mail: DeliverMail | undefined;
  readonly chat: DeliverChat;
  readonly telemetry: SenderTelemetry;
  readonly log: Log;
  readonly now: () => Date;
  readonly random: () => number;
  readonly timings?: Partial<SenderTimings>;
};

export type SenderTimings = {
  /** Between two looks into an outbox where nothing is due. */
  readonly idleMs: number;
  /** Longer than any attempt may take. */
  readonly leaseMs: number;
  readonly attemptMsMax: number;
  /** While the mail server cannot be had. */
  readonly down: Backoff;
  /** Of one message. */
  readonly again: Backoff;
  readonly telemetryMs: number;
  /** For the attempt under way when the sender is stopped. */
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

/** Disposing lets the attempt under way end, for a while. */
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

/** Never rejects. */
async function runLane(lane: Lane): Promise<void> {
  const { outbox, channel, timings, telemetry, log, random } = lane;
  const stop = lane.stop.signal;
  let downs = 0;
  while (!stop.aborted) {
    let taken: TakenMessage | undefined;
    try {
      taken = await outbox.take(channel, timings.leaseMs);
    } catch (error) {
      log.error({ err: error, channel }, "the outbox cannot be read");
    }
    if (taken === undefined) {
      await sleep(timings.idleMs, stop);
      continue;
    }
    const signal = AbortSignal.any([lane.cut.signal, AbortSignal.timeout(timings.attemptMsMax)]);
    const delivery = await lane.deliver(taken.message, taken, signal);
    await settle(lane, taken, delivery);
    telemetry.tried(channel, taken.kind, delivery);
    downs = delivery.kind === "down" ? downs + 1 : 0;
    if (downs > 0) await sleep(backoffMs(downs - 1, random(), timings.down), stop);
  }
}

/** Until it is written: sent and not known to be would be sent again. */
async function settle(lane: Lane, taken: TakenMessage, delivery: Delivery): Promise<void> {
  const { log, random, channel, cut } = lane;
  const facts = { channel, kind: taken.kind, id: taken.uid, attempts: taken.attempts };
  const write = async (): Promise<void> => writeDown(lane, taken, delivery);
  try {
    await retry(write, {
      stop: cut.signal,
      random,
      onFailure: (error) => {
        log.error({ err: error, ...facts }, "what came of a message cannot be written down");
        return true;
      },
    });
  } catch {
    return; // Stopped: told above.
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
      // The lane waits as a whole; the message keeps its place.
      return outbox.postpone(taken, new Date(taken.whenCreated), delivery.reason);
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
      log.error({ err: error }, "the outbox cannot be looked at");
    }
  } while (await sleep(telemetryMs, stop));
}
