// `/notifications/` and `/tokens/start-recovery/`: which messages there are, who gets them, and how a lost
// token is replaced.

import { Type, type Static } from "typebox";
import { mailAddressPattern } from "../../core/outgoing.ts";
import { body, BooleanLike, open, shape } from "./shape.ts";

/** Maps the key of a type to what it is. */
export const emailNotificationTypes = {
  weekly_report_email:
    "Every week: what visitors requested of each domain, what the cache answered, what was blocked, and the state of the deployments.",
  send_email_to_customer_about_certificates_expiring:
    "When a certificate that a deployment serves is about to expire: 30, 14, 7, 3 and 1 days before, and when it has expired.",
  send_email_to_customers_about_old_versions_of_accel_pack:
    "Every week, while deployments run an older accel_pack than the newest.",
  send_email_to_customer_about_accel_pack_push:
    "When a deployment runs another version of accel_pack than before.",
  send_email_to_customer_about_domain_images_optimization_blocked_for_today:
    "Once a domain and day (UTC): when a host has tried as many image variants as the devlove allows it in a day, so that pictures without one are served as originals until 00:00 UTC.",
} as const;

export const slowBackendType =
  "maker.monitor.dashboards.for_alerts.for_domains.domains_backend_slow_response_graphs";
export const unreachableBackendType =
  "maker.monitor.dashboards.for_alerts.for_edge_servers.customer_backend_unreachable_graphs";

/** Ours: the specification knows no lists that are fetched. */
export const staleListType = "bot_list_not_fetched";

export const monitorNotificationTypes = {
  [slowBackendType]:
    "When the backend of a domain answers slowly for a while, and when it no longer does.",
  [unreachableBackendType]:
    "When an edge server cannot reach a backend for a while, and when it can again.",
  [staleListType]:
    "When a list of bots that is fetched from a URL has not come for three intervals, and when it has.",
} as const;

export type EmailNotificationType = keyof typeof emailNotificationTypes;
export type MonitorNotificationType = keyof typeof monitorNotificationTypes;

/** An address to which messages can be sent. */
const Address = Type.String({
  maxLength: 254,
  pattern: mailAddressPattern,
  description: "A mail address in ASCII.",
});

function oneOfKeys<const T extends Readonly<Record<string, string>>>(types: T) {
  return Type.Unsafe<keyof T & string>({ type: "string", enum: Object.keys(types) });
}

const EmailType = oneOfKeys(emailNotificationTypes);
const MonitorType = oneOfKeys(monitorNotificationTypes);
const isPermanent = { is_permanent: Type.Optional(BooleanLike) };
const permanence =
  "Without `is_permanent` the subscription is suspended for 30 days, and then becomes active again by itself.";

export const emailSubscribe = body({ notification_type: EmailType, email: Address }, [], {
  examples: [{ notification_type: "weekly_report_email", email: "ada@example.com" }],
});
export const emailUnsubscribe = body(
  { notification_type: EmailType, email: Address, ...isPermanent },
  [],
  {
    description: permanence,
    examples: [
      { notification_type: "weekly_report_email", email: "ada@example.com" },
      { notification_type: "weekly_report_email", email: "ada@example.com", is_permanent: true },
    ],
  },
);
export const monitorSubscribe = body({ notification_type: MonitorType, email: Address }, [], {
  examples: [{ notification_type: slowBackendType, email: "ada@example.com" }],
});
export const monitorUnsubscribe = body(
  { notification_type: MonitorType, email: Address, ...isPermanent },
  [],
  {
    description: permanence,
    examples: [
      { notification_type: unreachableBackendType, email: "ada@example.com", is_permanent: true },
    ],
  },
);

export const NotificationTypes = open(
  { notification_types: Type.Record(Type.String(), Type.String()) },
  {
    title: "NotificationTypes",
    description: "The key of each type, and what it is.",
    examples: [{ notification_types: monitorNotificationTypes }],
  },
);
export type NotificationTypes = Static<typeof NotificationTypes>;
export const notificationTypesShape = shape(NotificationTypes);

const statuses = <const S extends string>(...values: readonly S[]) =>
  Type.Unsafe<S>({ type: "string", enum: [...values] });

export const Subscribed = open(
  {
    status: statuses("subscription_created", "subscription_reactivated", "subscription_exists"),
  },
  { title: "Subscribed", examples: [{ status: "subscription_created" }] },
);
export type Subscribed = Static<typeof Subscribed>;
export const subscribedShape = shape(Subscribed);

export const Unsubscribed = open(
  { status: statuses("unsubscribed", "subscription_inactive", "no_subscription") },
  { title: "Unsubscribed", examples: [{ status: "unsubscribed" }] },
);
export type Unsubscribed = Static<typeof Unsubscribed>;
export const unsubscribedShape = shape(Unsubscribed);

export const recoveryStart = body(
  {
    username: Type.String({ minLength: 1, maxLength: 150 }),
    email: Type.String({ minLength: 1, maxLength: 254 }),
  },
  [],
  { examples: [{ username: "ada", email: "ada@example.com" }] },
);

export const RecoveryStarted = open(
  { status: statuses("email sent") },
  {
    title: "RecoveryStarted",
    description: "The answer is the same whether there is such a user or not.",
    examples: [{ status: "email sent" }],
  },
);
export type RecoveryStarted = Static<typeof RecoveryStarted>;
export const recoveryStartedShape = shape(RecoveryStarted);
