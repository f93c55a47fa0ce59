// What the customer API needs of the store for notifications, channels of alerts and recovery.

import type { PageRange } from "./content-unit.ts";

export type SubscriptionKey = {
  readonly customerId: number;
  readonly channel: "email" | "monitor";
  readonly type: string;
  readonly email: string;
};

export type Subscriptions = {
  subscribe(
    key: SubscriptionKey,
    countMax: number,
  ): Promise<
    "subscription_created" | "subscription_reactivated" | "subscription_exists" | "too-many"
  >;
  unsubscribe(
    key: SubscriptionKey,
    isPermanent: boolean,
  ): Promise<"unsubscribed" | "subscription_inactive" | "no_subscription">;
};

type ChannelRow = {
  readonly id: number;
  readonly monitor_uid: string;
  readonly when_created: string;
  readonly when_updated: string;
};

/** Ids given to `update` and `remove` belong to the customer. */
export type Channels<W, R extends ChannelRow> = {
  list(customerId: number, range: PageRange): Promise<readonly R[]>;
  find(customerId: number, id: number): Promise<R | undefined>;
  create(customerId: number, write: W, countMax: number): Promise<number | "taken" | "too-many">;
  update(customerId: number, id: number, write: W): Promise<"updated" | "taken">;
  remove(id: number): Promise<void>;
};

type EmailWrite = { readonly monitor_uid: string };
type ChatWrite = EmailWrite & {
  readonly chat_channel_name: string;
  readonly chat_hook_url: string;
};

export type MonitorChannels = {
  readonly chat: Channels<ChatWrite, ChannelRow & ChatWrite>;
  readonly email: Channels<EmailWrite, ChannelRow>;
};

export type Recovery = {
  /** Looked at after the answer. False where so many wait already. */
  request(username: string, email: string, waitingMax: number): Promise<boolean>;
};
