// What became of a subscription, in words. Pure.

import type { Subscribed, Unsubscribed } from "../wire/customer/notifications.ts";

type Status = Subscribed["status"] | Unsubscribed["status"];

const words: Readonly<Record<Status, string>> = {
  subscription_created: "gets these messages from now on",
  subscription_reactivated: "gets these messages again from now on",
  subscription_exists: "gets these messages already",
  unsubscribed: "gets these messages no more",
  subscription_inactive: "does not get these messages at present; nothing was changed",
  no_subscription: "was never subscribed to these messages",
};

/** `isPause` says that 30 days without the messages were asked for, and not an end. */
export function subscriptionWords(status: Status, isPause: boolean): string {
  return status === "unsubscribed" && isPause
    ? "gets these messages again in 30 days, and none before"
    : words[status];
}
