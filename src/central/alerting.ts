// Evaluates alerts from what agents reported. What begins and what ends is stored together with the messages
// that say so.

import {
  slowBackendType,
  staleListType,
  unreachableBackendType,
} from "../wire/customer/notifications.ts";
import type { ChangeBus } from "./agents/changes.ts";
import { mailTo, postTo, type DeliveryContext } from "./deliveries.ts";
import { alertChat, alertMail, type AlertMessage } from "./mail/alert-message.ts";
import { onlySite, planAlerts, planStaleLists } from "./mail/alert-plan.ts";
import { staleSources } from "./store/bots/bot-sources.ts";
import type { CustomerStore } from "./store/engine/customer-store.ts";
import { findCustomer } from "./store/people/customers.ts";
import {
  alertTargets,
  endTroubles,
  fireAlert,
  firingAlerts,
  resolveAlert,
  troubles,
} from "./store/notices/alerts.ts";
import { addressees } from "./store/notices/subscriptions.ts";
import type { Work } from "./store/engine/work.ts";

export type AlertingDeps = DeliveryContext & {
  readonly customers: Pick<CustomerStore, "transact">;
  readonly changes?: Pick<ChangeBus, "publish">;
};

const types = { slow: slowBackendType, unreachable: unreachableBackendType } as const;
/** The lifetime of an alert's messages: yesterday's alert is no alert. */
const lifetimeMs = 86_400_000;
/** The most transitions in one transaction; the rest is left for the next. */
const transitionsMax = 200;
/** The most alerts in one message; chats cut text longer than some 16,000 characters. */
const alertsPerMessage = 50;

/** Evaluates alerts. Returns whether something is left for the next transaction. */
export async function evaluateAlerts(deps: AlertingDeps): Promise<boolean> {
  const { settings, log } = deps;
  const done = await deps.customers.transact(async (work) => {
    await endTroubles(work, settings["alerts.resolved_after"]);
    const plan = await planned(work, settings["alerts.after"]);
    const fire = plan.fire.slice(0, transitionsMax);
    const resolve = plan.resolve.slice(0, transitionsMax - fire.length);
    for (const alert of fire) await fireAlert(work, alert);
    for (const { id } of resolve) await resolveAlert(work, id);
    for (const alerts of grouped<Alerts[number]>(fire)) await tell(work, deps, "firing", alerts);
    for (const alerts of grouped(resolve)) await tell(work, deps, "resolved", alerts);
    const left = plan.fire.length + plan.resolve.length - fire.length - resolve.length;
    const changed = [...fire, ...resolve].map(({ customerId, domain }) => ({ customerId, domain }));
    return { fired: fire.length, resolved: resolve.length, left, changed };
  });
  const { changed, ...told } = done;
  for (const { customerId, domain } of changed)
    deps.changes?.publish({ kind: "customer", customerId, topics: ["alerts"], domains: [domain] });
  if (told.fired + told.resolved > 0) log.info(told, "alerts");
  return told.left > 0;
}

/** What begins and what ends, of backends and of lists. */
async function planned(work: Work, afterMs: number) {
  const firing = await firingAlerts(work);
  const [ofLists, ofBackends] = [
    firing.filter(({ type }) => type === staleListType),
    firing.filter(({ type }) => type !== staleListType),
  ];
  const backends = planAlerts(await troubles(work), ofBackends, types, afterMs);
  const lists = planStaleLists(await staleSources(work), ofLists, staleListType);
  const sited = backends.fire.map((alert) => ({
    ...alert,
    deploymentSiteId: onlySite(alert.troubles),
  }));
  return {
    fire: [...sited, ...lists.fire.map((alert) => ({ ...alert, deploymentSiteId: null }))],
    resolve: [...backends.resolve, ...lists.resolve],
  };
}

type Alerts = AlertMessage["alerts"];

const kinds: Readonly<Record<string, AlertMessage["kind"]>> = {
  [slowBackendType]: "slow",
  [unreachableBackendType]: "unreachable",
  [staleListType]: "stale-list",
};

/** Groups what each customer is to be told at once of one type; each alert is named in one message. */
function grouped<A extends Alerts[number]>(alerts: readonly A[]): readonly (readonly A[])[] {
  const placeOf = ({ domain, edge }: A): string => `${domain} ${edge}`;
  const sorted = alerts.toSorted((one, other) =>
    placeOf(one).localeCompare(placeOf(other), "en", { numeric: true }),
  );
  const groups = Map.groupBy(sorted, ({ customerId, type }) => `${customerId} ${type}`).values();
  return [...groups].flatMap((group) =>
    Array.from({ length: Math.ceil(group.length / alertsPerMessage) }, (_, i) =>
      group.slice(i * alertsPerMessage, (i + 1) * alertsPerMessage),
    ),
  );
}

async function tell(
  work: Work,
  deps: AlertingDeps,
  phase: AlertMessage["phase"],
  alerts: Alerts,
): Promise<void> {
  const [first] = alerts;
  if (first === undefined) return;
  const { customerId, type } = first;
  const kind = kinds[type] ?? "unreachable";
  const message: AlertMessage = { kind, phase, alerts, at: work.at };
  const subject = { customerId, kind: type, lifetimeMs };
  const { chats, mailUids: uids } = await alertTargets(work, customerId);
  for (const chat of chats) await postTo(work, deps, subject, chat, alertChat(message, chat.uid));
  if (uids.length === 0) return;
  const customer = (await findCustomer(work, customerId))?.name ?? "";
  for (const addressee of await addressees(work, { customerId, channel: "monitor", type }))
    await mailTo(work, deps, subject, addressee, (to) =>
      alertMail(message, { ...to, customer, uids }),
    );
}
