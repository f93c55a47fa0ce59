// Rows of the specification's endpoint tables: bots, channels of the monitor, notifications.

import { expect } from "vitest";
import { slowBackendType } from "../../../src/wire/customer/notifications.ts";
import { rowsOf, type Row, type Scene, type Told } from "./row-scene.ts";

const any = (kind: StringConstructor | NumberConstructor): unknown => expect.any(kind);
const chatBody = {
  monitor_uid: "team-b",
  chat_channel_name: "#b",
  chat_hook_url: "https://chat.example.com/hooks/b",
};
const channel = (scene: Scene): object => ({
  id: any(Number),
  customer: { id: Number(scene.slot("customer_id")) },
  when_created: any(String),
  when_updated: any(String),
});
const subscription = { notification_type: "weekly_report_email", email: "ops@example.com" };
const alert = { notification_type: slowBackendType, email: "ops@example.com" };

const chat = "/monitor-notification-channel/chat/";
const email = "/monitor-notification-channel/email/";

const lines: readonly Told[] = [
  [`GET ${chat}`, "an array", undefined, 200, (scene) => [channel(scene)]],
  [`POST ${chat}`, "made", chatBody, 201, (scene) => ({ ...channel(scene), ...chatBody })],
  [`GET ${chat}{channel_id}/`, "the channel", undefined, 200, channel],
  [`PUT ${chat}{channel_id}/`, "edited", chatBody, 200, () => chatBody],
  [`DELETE ${chat}{channel_id}/`, "gone, no body", undefined, 204],
  [`GET ${email}`, "an array", undefined, 200, (scene) => [channel(scene)]],
  [`POST ${email}`, "made", { monitor_uid: "team-b" }, 201, channel],
  [`GET ${email}{channel_id}/`, "the channel", undefined, 200, channel],
  [`PUT ${email}{channel_id}/`, "edited", { monitor_uid: "c" }, 200, () => ({ monitor_uid: "c" })],
  [`DELETE ${email}{channel_id}/`, "gone, no body", undefined, 204],
  ["GET /notifications/email/types/", "five types", undefined, 200, () => typesOf(5)],
  ["POST /notifications/email/subscribe/", "status", subscription, 201, created],
  ["POST /notifications/email/unsubscribe/", "status", subscription, 200, nobody],
  ["GET /notifications/monitor/types/", "three types", undefined, 200, () => typesOf(3)],
  ["POST /notifications/monitor/subscribe/", "status", alert, 201, created],
  ["POST /notifications/monitor/unsubscribe/", "status", alert, 200, nobody],
];

function typesOf(count: number): object {
  return {
    notification_types: expect.toSatisfy(
      (types: object) =>
        Object.keys(types).length === count &&
        Object.values(types).every((text) => typeof text === "string" && text !== ""),
    ),
  };
}
function created(): object {
  return { status: "subscription_created" };
}
function nobody(): object {
  return { status: "no_subscription" };
}

const marked = (scene: Scene, custom: boolean): object => ({
  attach_to_bot: scene.slot("bot"),
  attach_to_domain: scene.domain,
  ...(custom && { is_custom_ip_range: "True" }),
});
const removed = (scene: Scene, custom: boolean): object => ({
  remove_from_bot: scene.slot("bot"),
  remove_from_domain: scene.domain,
  ...(custom && { is_custom_ip_range: "True" }),
});

/** The five paths of a list, and its array. */
function botRows(set: "bad" | "vip"): readonly Row[] {
  const [mark, remove] = [`/mark-as-${set}-bot`, `/remove-ip-from-${set}-bot-list`];
  const range = "192.0.2.0/24";
  const holds = (...ip_addresses: readonly string[]): object => ({ ip_addresses });
  const custom = set === "bad" ? ["198.51.100.8", "198.51.100.9"] : ["198.51.100.8/31"];
  return [
    ...rowsOf([
      [
        `GET /is-${set}-bot/{ip}/`,
        "whether it is",
        undefined,
        200,
        () => ({ [`is_${set}_bot`]: true, ip_address_or_range: "192.0.2.7" }),
      ],
      [
        `GET /is-${set}-bot/{iprange}/`,
        "whether all of it is, echoed with a slash",
        undefined,
        200,
        () => ({ [`is_${set}_bot`]: true, ip_address_or_range: range }),
      ],
      [
        `GET /list-${set}-bots/`,
        "an array of the customer's",
        undefined,
        200,
        (scene) => [{ name: scene.slot("bot"), domain: scene.domain, ...holds(range) }],
      ],
    ]),
    {
      line: `POST ${mark}/{ip}/`,
      fact: "200: the address is attached",
      run: async (scene) =>
        scene.gives(["POST", `${mark}/198.51.100.7/`, marked(scene, false)], 200, {
          name: scene.slot("bot"),
          ...holds(range, "198.51.100.7"),
        }),
    },
    {
      line: `POST ${mark}/{iprange}/`,
      fact: "200: the CIDR range is attached, with the flag the custom one",
      run: async (scene) => {
        const cidr = ["POST", `${mark}/203.0.113.0_24/`, marked(scene, false)] as const;
        await scene.gives(cidr, 200, holds(range, "203.0.113.0/24"));
        await scene.gives(
          ["POST", `${mark}/198.51.100.8_1/`, marked(scene, true)],
          200,
          holds(range, ...custom, "203.0.113.0/24"),
        );
      },
    },
    {
      line: `POST ${remove}/{ip}/`,
      fact: "200: the address is detached",
      run: async (scene) => {
        await scene.gives(["POST", `${mark}/198.51.100.7/`, marked(scene, false)], 200);
        const detach = ["POST", `${remove}/198.51.100.7/`, removed(scene, false)] as const;
        await scene.gives(detach, 200, holds(range));
      },
    },
    {
      line: `POST ${remove}/{iprange}/`,
      fact: "200: the range is detached, CIDR or custom",
      run: async (scene) => {
        await scene.gives(["POST", `${mark}/198.51.100.8_1/`, marked(scene, true)], 200);
        await scene.gives(["POST", `${remove}/198.51.100.8_1/`, removed(scene, true)], 200);
        const detach = ["POST", `${remove}/192.0.2.0_24/`, removed(scene, false)] as const;
        await scene.gives(detach, 200, { name: scene.slot("bot"), ip_addresses: [] });
      },
    },
  ];
}

export const noticeRows: readonly Row[] = [...botRows("bad"), ...botRows("vip"), ...rowsOf(lines)];
