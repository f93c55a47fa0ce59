// `/notifications/`: which messages there are, and which addresses get them.

import { gives, makes } from "../../wire/customer/operation.ts";
import {
  emailNotificationTypes,
  emailSubscribe,
  emailUnsubscribe,
  monitorNotificationTypes,
  monitorSubscribe,
  monitorUnsubscribe,
  notificationTypesShape,
  subscribedShape,
  unsubscribedShape,
  type NotificationTypes,
  type Subscribed,
  type Unsubscribed,
} from "../../wire/customer/notifications.ts";
import { isTrue, type Body } from "../../wire/customer/shape.ts";
import { conflict, created, ok } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { addSubscription, endSubscription } from "../store/notices/subscriptions.ts";

/** The most subscriptions of a customer, including those that ended: they must not come back as new ones. */
const subscriptionsMax = 1_000;

type Kind<S, U> = {
  readonly channel: "email" | "monitor";
  readonly types: NotificationTypes["notification_types"];
  readonly subscribe: Body<S>;
  readonly unsubscribe: Body<U>;
};
type Named = { notification_type: string; email: string };
type Ended = Named & { is_permanent?: Parameters<typeof isTrue>[0] };

export function notificationEndpoints(): readonly Endpoint[] {
  return [
    ...endpointsOf({
      channel: "email",
      types: emailNotificationTypes,
      subscribe: emailSubscribe,
      unsubscribe: emailUnsubscribe,
    }),
    ...endpointsOf({
      channel: "monitor",
      types: monitorNotificationTypes,
      subscribe: monitorSubscribe,
      unsubscribe: monitorUnsubscribe,
    }),
  ];
}

function endpointsOf<S extends Named, U extends Ended>(kind: Kind<S, U>): readonly Endpoint[] {
  const { channel, types } = kind;
  const [what, noun] =
    channel === "email"
      ? ["e-mail notifications", "EmailNotification"]
      : ["monitor alerts", "MonitorAlert"];
  return [
    forUsers({
      method: "GET",
      path: `/notifications/${channel}/types/`,
      id: `list${noun}Types`,
      needs: { role: "read", scope: "domain" },
      summary: `List the types of ${what}`,
      gives: gives(notificationTypesShape),
      handle: async () => ok({ notification_types: types } satisfies NotificationTypes),
    }),
    forUsers({
      method: "POST",
      path: `/notifications/${channel}/subscribe/`,
      id: `subscribeTo${noun}s`,
      needs: { role: "write", scope: "customer" },
      summary: `Subscribe an address to a type of ${what}`,
      gives: makes(subscribedShape),
      refuses: [409],
      body: kind.subscribe,
      handle: async ({ actor, body, change }) =>
        change(async (work) => {
          const { notification_type: type, email } = body;
          const key = { customerId: actor.customerId, channel, type, email };
          const status = await addSubscription(work, key, subscriptionsMax);
          if (status === "too-many")
            return conflict(`a customer has at most ${subscriptionsMax} subscriptions`);
          return created({ status } satisfies Subscribed);
        }),
    }),
    forUsers({
      method: "POST",
      path: `/notifications/${channel}/unsubscribe/`,
      id: `unsubscribeFrom${noun}s`,
      needs: { role: "write", scope: "customer" },
      summary: `Suspend or end an address's subscription to a type of ${what}`,
      gives: gives(unsubscribedShape),
      body: kind.unsubscribe,
      handle: async ({ actor, body, change }) =>
        change(async (work) => {
          const { notification_type: type, email, is_permanent } = body;
          const key = { customerId: actor.customerId, channel, type, email };
          const status = await endSubscription(work, key, isTrue(is_permanent));
          return ok({ status } satisfies Unsubscribed);
        }),
    }),
  ];
}
