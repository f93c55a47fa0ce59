// `/monitor-notification-channel/`: where a customer's alerts go.

import { Type, type Static } from "typebox";
import { Timestamp } from "../parts.ts";
import { body, Id, nameText, open, shape } from "./shape.ts";

const readOnly = ["id", "customer", "when_created", "when_updated"];
const MonitorUid = nameText(255);
const uid = "team-a";
const hook = "https://chat.example.com/hooks/8f14e45f";

export const chatChannelWrite = body(
  {
    monitor_uid: MonitorUid,
    chat_channel_name: nameText(255),
    chat_hook_url: Type.String({
      minLength: 1,
      maxLength: 2_048,
      description:
        'A URL to which `{"text": "…"}` can be posted. Private addresses are refused, unless the operator allows them.',
    }),
  },
  readOnly,
  { examples: [{ monitor_uid: uid, chat_channel_name: "#alerts", chat_hook_url: hook }] },
);

export const emailChannelWrite = body({ monitor_uid: MonitorUid }, readOnly, {
  description: "With at least one, alerts go to every address that is subscribed to their type.",
  examples: [{ monitor_uid: uid }],
});

const common = {
  id: Id,
  monitor_uid: Type.String(),
  customer: open({ id: Id }),
  when_created: Timestamp,
  when_updated: Timestamp,
};
const example = {
  id: 4,
  monitor_uid: uid,
  customer: { id: 3 },
  when_created: "2026-11-22T12:00:00.000Z",
  when_updated: "2026-11-22T12:00:00.000Z",
};

export const ChatChannel = open(
  { ...common, chat_channel_name: Type.String(), chat_hook_url: Type.String() },
  {
    title: "ChatChannel",
    examples: [{ ...example, chat_channel_name: "#alerts", chat_hook_url: hook }],
  },
);
export type ChatChannel = Static<typeof ChatChannel>;
export const chatChannelShape = shape(ChatChannel);

export const EmailChannel = open(common, { title: "EmailChannel", examples: [example] });
export type EmailChannel = Static<typeof EmailChannel>;
export const emailChannelShape = shape(EmailChannel);

export const ChannelTested = open(
  {
    queued: Type.Literal(true),
    messages: Type.Integer({
      minimum: 1,
      description:
        "How many messages are on their way: one to a chat, one to each address that is subscribed to alerts.",
    }),
  },
  { title: "ChannelTested", examples: [{ queued: true, messages: 1 }] },
);
export type ChannelTested = Static<typeof ChannelTested>;
export const channelTestedShape = shape(ChannelTested);
