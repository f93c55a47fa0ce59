// Reports and notices: what is due is composed from what agents reported and put into the outbox, one
// customer a transaction.

import type { EmailNotificationType } from "../wire/customer/notifications.ts";
import { mailTo, type DeliveryContext, type DeliverySubject } from "./deliveries.ts";
import { duePeriods, type ReportTimes } from "./mail/calendar.ts";
import { renderMail } from "./mail/document.ts";
import {
  botReport,
  certificatesMail,
  imagesMail,
  oldVersionsMail,
  pushMail,
  type Composed,
  type ExpiringCertificate,
} from "./mail/notices.ts";
import { weeklyReport } from "./mail/weekly-report.ts";
import { weekdays } from "./settings/notice-fields.ts";
import type { CentralSettings } from "./settings/fields.ts";
import type { CustomerStore } from "./store/engine/customer-store.ts";
import { findCustomer } from "./store/people/customers.ts";
import {
  botsOf,
  clearsOf,
  deploymentsOf,
  trafficBetween,
  userAddresses,
  type DeploymentState,
} from "./store/notices/notice-facts.ts";
import {
  dayBefore,
  newFacts,
  nextOfRun,
  openRun,
  versionChanges,
  type Run,
  type RunKind,
} from "./store/notices/notice-runs.ts";
import { untoldImageBlocks } from "./store/content/image-days.ts";
import { addressees, reportAddressee, type Addressee } from "./store/notices/subscriptions.ts";
import type { Work } from "./store/engine/work.ts";

export type ReportingDeps = DeliveryContext & {
  readonly customers: Pick<CustomerStore, "transact">;
  readonly now: () => Date;
};

const dayMs = 86_400_000;
/** The lifetime of a report; an older one says nothing any more. */
const lifetimeMs = 5 * dayMs;
const daysOf: Readonly<Record<RunKind, number>> = { daily: 7, weekly: 7 };
/** The days before the end of a certificate at which its customer is told. */
const certificateSteps = [30, 14, 7, 3, 1] as const;

type Customer = { readonly id: number; readonly name: string };

export function reportTimes(settings: CentralSettings): ReportTimes {
  return {
    timeZone: settings["reports.time_zone"],
    at: settings["reports.at"],
    weekday: weekdays.indexOf(settings["reports.weekday"]),
  };
}

/**
 * Sends all that is due and not sent. If it is cut off, it goes on where it was, and then with what became
 * due meanwhile.
 */
export async function sendDueReports(deps: ReportingDeps, stop: AbortSignal): Promise<void> {
  const due = duePeriods(deps.now(), reportTimes(deps.settings));
  for (const kind of ["daily", "weekly"] as const) {
    let run: Run | undefined;
    do {
      run = await deps.customers.transact(async (work) =>
        openRun(work, kind, due[kind], daysOf[kind]),
      );
      if (run !== undefined) await finishRun(deps, run, stop);
    } while (run !== undefined && run.period !== due[kind] && !stop.aborted);
  }
}

async function finishRun(deps: ReportingDeps, run: Run, stop: AbortSignal): Promise<void> {
  let count = 0;
  while (!stop.aborted) {
    const isMore = await deps.customers.transact(async (work) => {
      const customer = await nextOfRun(work, run);
      if (customer !== undefined) await reportTo(work, deps, run, customer);
      return customer !== undefined;
    });
    if (!isMore) break;
    count++;
  }
  deps.log.info({ kind: run.kind, period: run.period, customers: count }, "reports");
}

async function reportTo(
  work: Work,
  deps: ReportingDeps,
  run: Run,
  customer: Customer,
): Promise<void> {
  await reportBots(work, deps, run, customer);
  if (run.kind === "daily") return reportCertificates(work, deps, customer);
  await reportWeek(work, deps, run, customer);
  await reportOldVersions(work, deps, run, customer);
}

/** Reports unreviewed bots every day if they are blocked, else every week; not at all if none came. */
async function reportBots(
  work: Work,
  deps: ReportingDeps,
  run: Run,
  { id: customerId, name }: Customer,
): Promise<void> {
  const canAccess = run.kind === "weekly";
  const domains = (await botsOf(work, customerId, run)).filter(
    (domain) => domain.canAccess === canAccess,
  );
  if (domains.length === 0) return;
  const composed = botReport(name, run, canAccess, domains);
  for (const email of await userAddresses(work, customerId)) {
    const addressee = await reportAddressee(work, customerId, "bot_report", email);
    if (addressee === undefined) continue;
    const subject = subjectOf(run, customerId, "bot_report");
    await send(
      work,
      deps,
      subject,
      addressee,
      composed,
      `${email} is the address of a user of ${name}.`,
    );
  }
}

function subjectOf({ kind, period }: Run, customerId: number, type: string): DeliverySubject {
  return { customerId, kind: type, lifetimeMs, onceKey: `${kind}/${period}/${type}/${customerId}` };
}

async function send(
  work: Work,
  deps: ReportingDeps,
  subject: DeliverySubject,
  addressee: Addressee,
  composed: Composed,
  footer: string,
): Promise<void> {
  await mailTo(work, deps, subject, addressee, ({ email, unsubscribeUrl }) => ({
    channel: "mail",
    to: email,
    ...renderMail({ ...composed, footer: [footer], unsubscribeUrl }),
    unsubscribeUrl,
  }));
}

async function sendToSubscribers(
  work: Work,
  deps: ReportingDeps,
  subject: DeliverySubject & { readonly kind: EmailNotificationType },
  customer: Customer,
  compose: () => Composed | Promise<Composed>,
): Promise<void> {
  const key = { customerId: customer.id, channel: "email", type: subject.kind } as const;
  const all = await addressees(work, key);
  if (all.length === 0) return;
  const composed = await compose();
  for (const addressee of all) {
    const footer = `${addressee.email} is subscribed to this at ${customer.name}.`;
    await send(work, deps, subject, addressee, composed, footer);
  }
}

async function reportWeek(
  work: Work,
  deps: ReportingDeps,
  run: Run,
  customer: Customer,
): Promise<void> {
  const kind = "weekly_report_email";
  const before = { from: dayBefore(run.from, 7), until: dayBefore(run.from) };
  await sendToSubscribers(
    work,
    deps,
    { ...subjectOf(run, customer.id, kind), kind },
    customer,
    async () => {
      const bots = await botsOf(work, customer.id, run);
      return weeklyReport({
        customer: customer.name,
        from: run.from,
        until: run.until,
        traffic: await trafficBetween(work, customer.id, run),
        before: await trafficBetween(work, customer.id, before),
        clears: await clearsOf(work, customer.id, run),
        botRequests: bots.flatMap((one) => one.bots).reduce((sum, bot) => sum + bot.requests, 0),
        deployments: (await deploymentsOf(work, customer.id)).deployments,
      });
    },
  );
}

async function reportOldVersions(
  work: Work,
  deps: ReportingDeps,
  run: Run,
  customer: Customer,
): Promise<void> {
  const { newest, deployments } = await deploymentsOf(work, customer.id);
  const behind = deployments.filter(({ isBehind }) => isBehind);
  if (newest === null || behind.length === 0) return;
  const kind = "send_email_to_customers_about_old_versions_of_accel_pack";
  const subject = { ...subjectOf(run, customer.id, kind), kind } as const;
  await sendToSubscribers(work, deps, subject, customer, () =>
    oldVersionsMail(customer.name, newest, behind),
  );
}

/** Reports a certificate when it passes a step, together with all others that expire soon. */
async function reportCertificates(
  work: Work,
  deps: ReportingDeps,
  customer: Customer,
): Promise<void> {
  const { deployments } = await deploymentsOf(work, customer.id);
  const expiring = deployments.flatMap((one) => expiringOf(one, Date.parse(work.at)));
  const facts = expiring.map(({ names, notAfter, deployment, daysLeft }) => {
    const step = daysLeft < 0 ? "expired" : certificateSteps.findLast((days) => daysLeft < days);
    return `certificate/${deployment}/${names.join(",")}/${notAfter}/${step}`;
  });
  const fresh = await newFacts(work, customer.id, facts);
  if (fresh.size === 0) return;
  const kind = "send_email_to_customer_about_certificates_expiring";
  const subject = { customerId: customer.id, kind, lifetimeMs } as const;
  await sendToSubscribers(work, deps, subject, customer, () =>
    certificatesMail(customer.name, expiring),
  );
}

function expiringOf(
  { name16, certificates }: DeploymentState,
  nowMs: number,
): readonly ExpiringCertificate[] {
  return certificates
    .map(({ names, notAfter }) => {
      const daysLeft = Math.floor((Date.parse(notAfter) - nowMs) / dayMs);
      return { names, notAfter, deployment: name16, daysLeft };
    })
    .filter(({ daysLeft }) => daysLeft < certificateSteps[0]);
}

/** Sends what happens between the reports: other releases on deployments, image variants held back. */
export async function sendEvents(deps: ReportingDeps): Promise<boolean> {
  await deps.customers.transact(async (work) => {
    for (const [customer, changes] of await byCustomer(work, await versionChanges(work))) {
      const { newest } = await deploymentsOf(work, customer.id);
      const kind = "send_email_to_customer_about_accel_pack_push";
      const subject = { customerId: customer.id, kind, lifetimeMs } as const;
      await sendToSubscribers(work, deps, subject, customer, () =>
        pushMail(customer.name, newest, changes),
      );
    }
    const today = work.at.slice(0, 10);
    const blocked = await untoldImageBlocks(work, dayBefore(today));
    for (const [customer, blocks] of await byCustomer(work, blocked)) {
      const kind = "send_email_to_customer_about_domain_images_optimization_blocked_for_today";
      const subject = { customerId: customer.id, kind, lifetimeMs: dayMs } as const;
      await sendToSubscribers(work, deps, subject, customer, () =>
        imagesMail(customer.name, today, blocks),
      );
    }
  });
  return false;
}

async function byCustomer<E extends { readonly customerId: number }>(
  work: Work,
  events: readonly E[],
): Promise<readonly (readonly [Customer, readonly E[]])[]> {
  const found: (readonly [Customer, readonly E[]])[] = [];
  for (const [id, own] of Map.groupBy(events, ({ customerId }) => customerId)) {
    const customer = await findCustomer(work, id);
    if (customer !== undefined) found.push([customer, own]);
  }
  return found;
}
