// Puts messages into the outbox, in the transaction of what causes them: within the limits, with the links of
// their addressee.

import type { Log } from "../base/log.ts";
import { mailAddressKey, type OutgoingMail } from "../core/outgoing.ts";
import type { SenderTelemetry } from "./mail/telemetry.ts";
import { unsubscribeUrl } from "./mail/links.ts";
import type { CentralSettings } from "./settings/fields.ts";
import {
  enqueue,
  type Enqueued,
  type NewMessage,
  type OutboxLimits,
} from "./store/notices/outbox.ts";
import type { Addressee } from "./store/notices/subscriptions.ts";
import type { Work } from "./store/engine/work.ts";

export type DeliveryContext = {
  readonly settings: CentralSettings;
  readonly telemetry: SenderTelemetry;
  readonly log: Log;
};

export type DeliverySubject = {
  readonly customerId: number;
  readonly kind: string;
  readonly lifetimeMs: number;
  /** A key of the event; each address gets the message once. */
  readonly onceKey?: string;
};

export async function mailTo(
  work: Work,
  context: DeliveryContext,
  subject: DeliverySubject,
  addressee: Addressee,
  compose: (to: { readonly email: string; readonly unsubscribeUrl: string }) => OutgoingMail,
): Promise<Enqueued> {
  const { email, linkToken } = addressee;
  const link = unsubscribeUrl(context.settings.base_url, linkToken);
  const recipient = mailAddressKey(email);
  return put(work, context, {
    ...subject,
    recipient,
    message: compose({ email, unsubscribeUrl: link }),
    ...(subject.onceKey !== undefined && { onceKey: `${subject.onceKey}/${recipient}` }),
  });
}

export async function postTo(
  work: Work,
  context: DeliveryContext,
  subject: DeliverySubject,
  chat: { readonly recipient: string; readonly hookUrl: string },
  text: string,
): Promise<Enqueued> {
  const { recipient, hookUrl } = chat;
  return put(work, context, {
    ...subject,
    recipient,
    message: { channel: "chat", hookUrl, text },
  });
}

async function put(
  work: Work,
  { settings, telemetry, log }: DeliveryContext,
  message: NewMessage,
): Promise<Enqueued> {
  const limits: OutboxLimits = {
    perRecipient: settings["limits.mails_per_address"],
    perCustomer: settings["limits.messages_per_customer"],
  };
  const done = await enqueue(work, message, limits);
  if (done === "limited" || done === "deferred") telemetry[done](message.kind);
  if (done === "limited")
    log.warn(
      { kind: message.kind, customer_id: message.customerId },
      "a message was not written: too many are before it, and its turn would come too late",
    );
  return done;
}
