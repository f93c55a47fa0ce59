// What the sender shows about itself: metrics and health warnings. It decides nothing.

import type { Health } from "../../base/health.ts";
import { createMetrics, type Registry } from "../../base/metrics.ts";
import type { OutgoingChannel } from "../../core/outgoing.ts";
import type { Delivery } from "./delivery.ts";

export const messageMetrics = {
  accel_central_messages_waiting: {
    kind: "gauge",
    help: "Messages in the outbox that are not sent yet, by channel: mail, chat.",
    labels: ["channel"],
  },
  accel_central_messages_oldest_seconds: {
    kind: "gauge",
    help: "How long the oldest message that is not sent yet has waited; 0 if none waits.",
    labels: ["channel"],
  },
  accel_central_message_attempts_total: {
    kind: "counter",
    help: "Attempts to send a message, by outcome: sent, refused (for good), later (not taken now), down (the server cannot be reached).",
    labels: ["channel", "kind", "outcome"],
  },
  accel_central_messages_expired_total: {
    kind: "counter",
    help: "Messages that could not be sent in time and were given up.",
    labels: ["channel", "kind"],
  },
  accel_central_messages_deferred_total: {
    kind: "counter",
    help: "Messages that wait for their turn because their customer has reached the limit for the recipient or in total.",
    labels: ["kind"],
  },
  accel_central_messages_limited_total: {
    kind: "counter",
    help: "Messages that were not written because their turn would have come too late.",
    labels: ["kind"],
  },
} as const;

/** The time after which mail counts as stuck; a mail server that is restarted is back earlier. */
const stuckMs = 600_000;
const channels = ["mail", "chat"] as const;

export class SenderTelemetry {
  readonly #health: Health;
  readonly #metrics;
  #lastFailure = "";
  /**
   * Whether the last attempt failed. A single mail that is not accepted yet says nothing about the server.
   */
  #isDown = false;
  #downSinceMs: number | undefined;

  constructor({ registry, health }: { readonly registry: Registry; readonly health: Health }) {
    this.#health = health;
    this.#metrics = createMetrics(messageMetrics, registry);
  }

  tried(channel: OutgoingChannel, kind: string, delivery: Delivery): void {
    const outcome = delivery.kind;
    this.#metrics.accel_central_message_attempts_total.inc({ channel, kind, outcome });
    if (channel !== "mail") return;
    this.#isDown = delivery.kind === "down";
    if (delivery.kind === "down") this.#lastFailure = delivery.reason;
  }

  expired(channel: OutgoingChannel, kind: string): void {
    this.#metrics.accel_central_messages_expired_total.inc({ channel, kind });
  }

  deferred(kind: string): void {
    this.#metrics.accel_central_messages_deferred_total.inc({ kind });
  }

  limited(kind: string): void {
    this.#metrics.accel_central_messages_limited_total.inc({ kind });
  }

  backlog(
    waiting: readonly {
      readonly channel: OutgoingChannel;
      readonly waiting: number;
      readonly oldest: string;
    }[],
    hasServer: boolean,
    now: Date,
  ): void {
    this.#downSinceMs = this.#isDown ? (this.#downSinceMs ?? now.getTime()) : undefined;
    const isStuck = this.#downSinceMs !== undefined && now.getTime() - this.#downSinceMs > stuckMs;
    for (const channel of channels) {
      const row = waiting.find((one) => one.channel === channel);
      const ageMs = row === undefined ? 0 : Math.max(0, now.getTime() - Date.parse(row.oldest));
      this.#metrics.accel_central_messages_waiting.set({ channel }, row?.waiting ?? 0);
      this.#metrics.accel_central_messages_oldest_seconds.set({ channel }, ageMs / 1_000);
      if (channel === "mail") this.#tellMail(row?.waiting ?? 0, ageMs, hasServer, isStuck);
    }
  }

  #tellMail(waiting: number, ageMs: number, hasServer: boolean, isStuck: boolean): void {
    const count = `${waiting} mail${waiting === 1 ? "" : "s"}`;
    if (waiting > 0 && !hasServer) {
      const text = `${count} cannot be sent: no mail server is set`;
      const hint = "Set `mail.server` and `mail.from` in central.yaml and restart.";
      this.#health.raise("mail_unset", "warning", text, hint);
    } else this.#health.settle("mail_unset");
    if (waiting > 0 && isStuck) {
      const text = `${count} wait, the oldest for ${Math.round(ageMs / 60_000)} minutes; the server cannot be reached: ${this.#lastFailure}`;
      const hint = "Check the mail server and the keys of `mail:` in central.yaml.";
      this.#health.raise("mail_stuck", "error", text, hint);
    } else this.#health.settle("mail_stuck");
  }
}
