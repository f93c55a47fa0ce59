// A subscription of an address to a kind of message: what subscribing and unsubscribing do to it, and what is
// answered.
//
//   none ──subscribe──▶ active ──unsubscribe──▶ suspended (30 days, then active by itself)
//                         │  ▲───────subscribe──────┘ │ unsubscribe for good
//                         └──unsubscribe for good──▶ ended ──subscribe──▶ active

export const suspensionMs = 30 * 86_400_000;

export type Subscription =
  | { readonly state: "active" }
  | { readonly state: "suspended"; readonly untilMs: number }
  | { readonly state: "ended" };

export type SubscribeOutcome = {
  readonly status: "subscription_created" | "subscription_reactivated" | "subscription_exists";
  readonly becomes: Subscription;
};

export type UnsubscribeOutcome = {
  readonly status: "unsubscribed" | "subscription_inactive" | "no_subscription";
  /** Undefined if there is no subscription. */
  readonly becomes: Subscription | undefined;
};

/** Returns the subscription as it is now: a suspension that is over is active again. */
export function atPresent(subscription: Subscription, nowMs: number): Subscription {
  const isOver = subscription.state === "suspended" && subscription.untilMs <= nowMs;
  return isOver ? { state: "active" } : subscription;
}

export function subscribe(before: Subscription | undefined, nowMs: number): SubscribeOutcome {
  const becomes = { state: "active" } as const;
  if (before === undefined) return { status: "subscription_created", becomes };
  return atPresent(before, nowMs).state === "active"
    ? { status: "subscription_exists", becomes }
    : { status: "subscription_reactivated", becomes };
}

export function unsubscribe(
  before: Subscription | undefined,
  isPermanent: boolean,
  nowMs: number,
): UnsubscribeOutcome {
  if (before === undefined) return { status: "no_subscription", becomes: undefined };
  const present = atPresent(before, nowMs);
  const isNews = present.state === "active" || (present.state === "suspended" && isPermanent);
  if (!isNews) return { status: "subscription_inactive", becomes: present };
  return {
    status: "unsubscribed",
    becomes: isPermanent
      ? { state: "ended" }
      : { state: "suspended", untilMs: nowMs + suspensionMs },
  };
}
