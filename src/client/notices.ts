// Calls about messages: recovery of a token, notifications, channels of the monitor.

import {
  channelTestedShape,
  chatChannelShape,
  emailChannelShape,
  type ChannelTested,
  type ChatChannel,
  type EmailChannel,
} from "../wire/customer/monitor-channels.ts";
import {
  notificationTypesShape,
  recoveryStartedShape,
  subscribedShape,
  unsubscribedShape,
  type EmailNotificationType,
  type MonitorNotificationType,
  type Subscribed,
  type Unsubscribed,
} from "../wire/customer/notifications.ts";
import type { Shape } from "../wire/customer/shape.ts";
import { arrayOf, nothing, type CallOptions, type ApiCalls } from "./transport.ts";

type Channels<C, W> = {
  list(): Promise<readonly C[]>;
  read(id: number): Promise<C>;
  create(channel: W, options?: CallOptions): Promise<C>;
  edit(id: number, channel: W): Promise<C>;
  remove(id: number): Promise<void>;
  /** Sends a test message on the way of an alert; at most 5 a minute. */
  test(id: number, options?: CallOptions): Promise<ChannelTested>;
};

type Subscription<T> = { readonly type: T; readonly email: string };

type Notifications<T> = {
  /** The key of each type, and what it is. */
  types(): Promise<Readonly<Record<string, string>>>;
  subscribe(subscription: Subscription<T>, options?: CallOptions): Promise<Subscribed["status"]>;
  /** Unsubscribes for 30 days, or for good. */
  unsubscribe(
    subscription: Subscription<T> & { readonly isPermanent?: boolean },
    options?: CallOptions,
  ): Promise<Unsubscribed["status"]>;
};

export type ChatChannelGiven = Pick<
  ChatChannel,
  "monitor_uid" | "chat_channel_name" | "chat_hook_url"
>;

export type NoticeClient = {
  /** Sends a link to a new token. Needs no token, and tells nobody whether there is such a user. */
  startRecovery(
    user: { readonly username: string; readonly email: string },
    options?: CallOptions,
  ): Promise<void>;
  readonly chatChannels: Channels<ChatChannel, ChatChannelGiven>;
  readonly emailChannels: Channels<EmailChannel, Pick<EmailChannel, "monitor_uid">>;
  readonly emailNotifications: Notifications<EmailNotificationType>;
  readonly monitorNotifications: Notifications<MonitorNotificationType>;
};

export function noticeClient({ call }: Pick<ApiCalls, "call">): NoticeClient {
  return {
    startRecovery: async (body, options) => {
      const { decode } = recoveryStartedShape;
      await call("POST", "/tokens/start-recovery/", decode, { body, ...options });
    },
    chatChannels: channelCalls("chat", chatChannelShape, { call }),
    emailChannels: channelCalls("email", emailChannelShape, { call }),
    emailNotifications: notificationCalls("email", { call }),
    monitorNotifications: notificationCalls("monitor", { call }),
  };
}

type Kind = "chat" | "email";

function channelCalls<C, W>(
  kind: Kind,
  shape: Shape<C>,
  { call }: Pick<ApiCalls, "call">,
): Channels<C, W> {
  const all = `/monitor-notification-channel/${kind}/`;
  const { decode } = shape;
  return {
    list: async () => (await call("GET", all, arrayOf(shape))).value,
    read: async (id) => (await call("GET", `${all}${id}/`, decode)).value,
    create: async (body, options) => (await call("POST", all, decode, { body, ...options })).value,
    edit: async (id, body) => (await call("PUT", `${all}${id}/`, decode, { body })).value,
    remove: async (id) => void (await call("DELETE", `${all}${id}/`, nothing)),
    test: async (id, options) =>
      (await call("POST", `${all}${id}/test/`, channelTestedShape.decode, { body: {}, ...options }))
        .value,
  };
}

function notificationCalls<T>(
  kind: "email" | "monitor",
  { call }: Pick<ApiCalls, "call">,
): Notifications<T> {
  const path = `/notifications/${kind}`;
  return {
    types: async () =>
      (await call("GET", `${path}/types/`, notificationTypesShape.decode)).value.notification_types,
    subscribe: async ({ type, email }, options) => {
      const body = { notification_type: type, email };
      const to = `${path}/subscribe/`;
      return (await call("POST", to, subscribedShape.decode, { body, ...options })).value.status;
    },
    unsubscribe: async ({ type, email, isPermanent }, options) => {
      const permanence = isPermanent === undefined ? {} : { is_permanent: isPermanent };
      const body = { notification_type: type, email, ...permanence };
      const to = `${path}/unsubscribe/`;
      return (await call("POST", to, unsubscribedShape.decode, { body, ...options })).value.status;
    },
  };
}
