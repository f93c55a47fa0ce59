// Tries out channels of alerts: a test message takes the way of an alert's through the outbox, to the same addressees.
// Tests take at most half of the turns that a customer has, so that alerts always have the other half.

import { monitorNotificationTypes } from "../wire/customer/notifications.ts";
import type { ChannelTests, TestAsked, TestOutcome } from "./api/deps.ts";
import { mailTo, postTo, type DeliveryContext } from "./deliveries.ts";
import { testChat, testMail, type ChannelTest } from "./mail/test-message.ts";
import { mailAddressKey } from "../core/outgoing.ts";
import { findCustomer } from "./store/people/customers.ts";
import { chatRecipient } from "./store/notices/monitor-channels.ts";
import type { Enqueued } from "./store/notices/outbox.ts";
import { addressees, type Addressee } from "./store/notices/subscriptions.ts";
import type { Work } from "./store/engine/work.ts";

const kind = "test";
/** Whoever asked looks for it now. */
const lifetimeMs = 600_000;

export function createChannelTests(given: DeliveryContext): ChannelTests {
  const { settings } = given;
  const half = (count: number): number => Math.max(1, Math.floor(count / 2));
  const context: DeliveryContext = {
    ...given,
    settings: {
      ...settings,
      "limits.mails_per_address": half(settings["limits.mails_per_address"]),
      "limits.messages_per_customer": half(settings["limits.messages_per_customer"]),
    },
  };
  return {
    async chat(work, asked, { id, hookUrl }) {
      const recipient = chatRecipient(id);
      const text = testChat(await testOf(work, asked));
      const { customerId } = asked;
      const subject = { customerId, kind, lifetimeMs };
      return outcomeOf([await postTo(work, context, subject, { recipient, hookUrl }, text)]);
    },
    async email(work, asked) {
      const test = await testOf(work, asked);
      const { customerId } = asked;
      const subject = { customerId, kind, lifetimeMs };
      const done: Enqueued[] = [];
      for (const addressee of await readers(work, customerId))
        done.push(await mailTo(work, context, subject, addressee, (to) => testMail(test, to)));
      return outcomeOf(done);
    },
  };
}

async function testOf(work: Work, { customerId, username, uid }: TestAsked): Promise<ChannelTest> {
  const customer = (await findCustomer(work, customerId))?.name ?? "";
  return { uid, username, customer, at: work.at };
}

/** Returns everybody who gets alerts of some type by mail, once. */
async function readers(work: Work, customerId: number): Promise<readonly Addressee[]> {
  const found = new Map<string, Addressee>();
  for (const type of Object.keys(monitorNotificationTypes))
    for (const one of await addressees(work, { customerId, channel: "monitor", type }))
      if (!found.has(mailAddressKey(one.email))) found.set(mailAddressKey(one.email), one);
  return [...found.values()];
}

function outcomeOf(done: readonly Enqueued[]): TestOutcome {
  if (done.length === 0) return { kind: "nobody" };
  const messages = done.filter((one) => one !== "limited").length;
  return messages === 0 ? { kind: "limited" } : { kind: "queued", messages };
}
