// What central sends by itself: the outbox with its sender, recoveries of tokens, and the pages that links in
// mails lead to. It is composed here from store and mail.

import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "../base/log.ts";
import type { Health } from "../base/health.ts";
import type { Registry } from "../base/metrics.ts";
import type { Sealer } from "../base/seal.ts";
import {
  emailNotificationTypes,
  monitorNotificationTypes,
} from "../wire/customer/notifications.ts";
import type { ChangeBus } from "./agents/changes.ts";
import type { Cluster } from "./cluster/cluster.ts";
import type { CentralJob } from "./cluster/membership.ts";
import { isOurs } from "./others.ts";
import { evaluateAlerts } from "./alerting.ts";
import { createChannelTests } from "./channel-tests.ts";
import { startReportSchedule } from "./jobs/report-schedule.ts";
import { createHookDelivery } from "./mail/hook.ts";
import { createPages, type LinkPorts } from "./mail/pages.ts";
import { startPolling } from "./mail/polling.ts";
import type { Asker } from "./mail-pages.ts";
import { recoveryMail } from "./mail/recovery-mail.ts";
import { startSender, type SenderTimings } from "./mail/sender.ts";
import { createSmtpDelivery } from "./mail/smtp.ts";
import { SenderTelemetry } from "./mail/telemetry.ts";
import { sendDueReports, sendEvents } from "./reporting.ts";
import type { CentralSettings } from "./settings/fields.ts";
import { readPassword } from "./settings/password-file.ts";
import { recordAudit } from "./store/people/audit.ts";
import type { CustomerStore } from "./store/engine/customer-store.ts";
import type { Store } from "./store/engine/database.ts";
import type { AlertRules } from "./store/content/domain-reports.ts";
import { dropOldNotices } from "./store/notices/notice-expiry.ts";
import { enqueue } from "./store/notices/outbox.ts";
import { Outbox, releaseLeases } from "./store/notices/outbox-sending.ts";
import {
  finishRecovery,
  hasLinksEnough,
  recoveryLifetimeMs,
  recoveryUser,
  startRecovery,
  takeRecoveryRequest,
} from "./store/people/recovery.ts";
import { subscriptionOfLink } from "./store/notices/subscriptions.ts";

export type NoticesDeps = {
  readonly settings: CentralSettings;
  readonly store: Store;
  readonly sealer: Sealer;
  readonly customers: Pick<CustomerStore, "transact">;
  readonly changes?: Pick<ChangeBus, "publish">;
  readonly registry: Registry;
  readonly health: Health;
  readonly log: Log;
  readonly now: () => Date;
  readonly timings?: Partial<SenderTimings>;
  /** The other centrals at the store; absent where this is the only one. */
  readonly others?: Cluster | undefined;
};

export type Notices = AsyncDisposable & {
  /** What tries out channels, for the API. */
  readonly channelTests: ReturnType<typeof createChannelTests>;
  /** Serves the paths below `/mail`. */
  readonly pages: (request: IncomingMessage, response: ServerResponse, asker: Asker) => void;
};

const recoveryPeriodMs = 500;
/** Agents report every 30 s. */
const alertPeriodMs = 10_000;
const eventPeriodMs = 30_000;
const forgetPeriodMs = 3_600_000;
/**
 * The limits of an hour, beside the links that one user has (recovery.ts): for a customer's users at one
 * address, and for the address over all customers, who may each have given it as theirs.
 */
const recoveryLimits = { perRecipient: 15, perCustomer: undefined, perMailbox: 30 };

/** Opens the part. One central at a time sends: the only one at the store, or whose job it is. */
export async function openNotices(deps: NoticesDeps): Promise<Notices> {
  await using stack = new AsyncDisposableStack();
  const { settings, log, now, registry, health, timings } = deps;
  const telemetry = new SenderTelemetry({ registry, health });
  const owner = deps.others?.bus.id ?? randomBytes(8).toString("hex");
  await releaseGone(deps);
  const ours = (job: CentralJob): boolean => isOurs(deps.others, job);
  stack.use(
    startSender({
      outbox: new Outbox({ ...deps, owner }),
      mail: mailDelivery(settings),
      chat: createHookDelivery({
        mayBePrivate: settings["chat.private_hooks"],
        timeoutMs: settings["chat.timeout"],
      }),
      telemetry,
      log,
      now,
      random: Math.random,
      isOurs: () => ours("outbox"),
      ...(timings !== undefined && { timings }),
    }),
  );
  stack.use(
    startPolling({
      name: "recoveries",
      step: async () => ours("recoveries") && recoverNext(deps, telemetry),
      periodMs: recoveryPeriodMs,
      log,
    }),
  );
  stack.use(startForgetting(deps));
  stack.use(
    startPolling({
      name: "alerts",
      step: async () => ours("alerts") && evaluateAlerts({ ...deps, telemetry }),
      periodMs: alertPeriodMs,
      log,
    }),
  );
  stack.use(
    startPolling({
      name: "events",
      step: async () => ours("events") && sendEvents({ ...deps, telemetry }),
      periodMs: eventPeriodMs,
      log,
    }),
  );
  stack.use(
    startReportSchedule({
      at: settings["reports.at"],
      timeZone: settings["reports.time_zone"],
      run: async (stop) => {
        if (ours("reports")) await sendDueReports({ ...deps, telemetry }, stop);
      },
      log,
    }),
  );
  const owned = stack.move();
  return { ...shownOf(deps, telemetry), [Symbol.asyncDispose]: async () => owned.disposeAsync() };
}

function startForgetting({ store, settings, others, now, log }: NoticesDeps): AsyncDisposable {
  return startPolling({
    name: "forgetting old messages",
    step: async () => {
      if (!isOurs(others, "retention")) return false;
      const removed = await dropOldNotices(store, now(), settings["mail.keep"]);
      log.debug({ removed }, "old messages are forgotten");
      return false;
    },
    periodMs: forgetPeriodMs,
    log,
  });
}

/** Releases what senders that are gone had taken: now, and each time that this central takes the outbox up. */
async function releaseGone({ others, store, log }: NoticesDeps): Promise<void> {
  if (others === undefined) return releaseLeases(store, []);
  const { bus, membership } = others;
  const release = async (): Promise<void> =>
    releaseLeases(store, [bus.id, ...membership.others.map(({ id }) => id)]);
  membership.onTaken((job) => {
    if (job !== "outbox") return;
    release().catch((error: unknown) =>
      log.warn(
        { err: error },
        "messages that a central had taken that is gone wait for their lease",
      ),
    );
  });
  await release();
}

/** Reads the password. Throws FILE_UNUSABLE if the file cannot be read. */
export function mailPassword(settings: CentralSettings): string | undefined {
  return readPassword("mail.password_file", settings["mail.password_file"]);
}

const stepS = { "100ms": 0.1, "500ms": 0.5, "2s": 2, "10s": 10 } as const;

/** Returns what counts as slow in a report. */
export function alertRules(settings: CentralSettings): AlertRules {
  return {
    slowAboveS: stepS[settings["alerts.slow_response"]],
    slowPercent: settings["alerts.slow_percent"],
    slowRequests: settings["alerts.slow_requests"],
  };
}

const tlsOf = { required: "required", offered: "offered", never: "none" } as const;

function mailDelivery(settings: CentralSettings) {
  const { "mail.server": server, "mail.from": from } = settings;
  if (server === undefined || from === undefined) return undefined;
  return createSmtpDelivery({
    host: server.host,
    port: server.port,
    tls: server.isTls ? "implicit" : tlsOf[settings["mail.starttls"]],
    user: settings["mail.user"],
    password: mailPassword(settings),
    from,
    timeoutMs: settings["mail.timeout"],
    idHost: new URL(settings.base_url).hostname.replace(/^\[(.*)\]$/, "$1"),
  });
}

/** Handles the next recovery; returns whether there was one. */
async function recoverNext(
  { customers, settings }: NoticesDeps,
  telemetry: SenderTelemetry,
): Promise<boolean> {
  const done = await customers.transact(async (work) => {
    const request = await takeRecoveryRequest(work);
    if (request === undefined) return "none";
    const { user } = request;
    if (user === undefined) return "nobody";
    if (await hasLinksEnough(work, user.userId)) return "limited";
    const message = recoveryMail(settings.base_url, user, await startRecovery(work, user.userId));
    return enqueue(
      work,
      {
        customerId: user.customerId,
        kind: "recovery",
        recipient: user.email.toLowerCase(),
        message,
        lifetimeMs: recoveryLifetimeMs,
        // The links sent before are as good.
        patienceMs: 0,
      },
      recoveryLimits,
    );
  });
  if (done === "limited") telemetry.limited("recovery");
  return done !== "none";
}

function shownOf(deps: NoticesDeps, telemetry: SenderTelemetry) {
  return { channelTests: createChannelTests({ ...deps, telemetry }), pages: pagesOf(deps) };
}

/** Returns the pages. The audit trail records what a page changes, with who asked for it. */
function pagesOf(deps: NoticesDeps): Notices["pages"] {
  return (request, response, asker) => {
    const ports = linkPorts(deps, asker);
    createPages({ ports, describe: describeType, log: deps.log })(request, response);
  };
}

function linkPorts({ customers }: Pick<NoticesDeps, "customers">, asker: Asker): LinkPorts {
  return {
    recoverable: async (token) => customers.transact(async (work) => recoveryUser(work, token)),
    recover: async (token) =>
      customers.transact(async (work) => {
        const user = await recoveryUser(work, token);
        if (user === undefined) return undefined;
        const { userId, customerId, username } = user;
        const newToken = await finishRecovery(work, userId);
        await recordAudit(work, {
          ...byLink(customerId, "recover token", asker),
          who: username,
          user_id: userId,
          ids: { user_id: userId },
        });
        return { username, newToken };
      }),
    subscription: async (token) =>
      customers.transact(async (work) => subscriptionOfLink(work, token, undefined)),
    changeSubscription: async (token, action) =>
      customers.transact(async (work) => {
        const found = await subscriptionOfLink(work, token, action);
        if (found !== undefined)
          await recordAudit(work, {
            ...byLink(found.customerId, `${action} subscription`, asker),
            who: found.email,
            ids: { notification_type: found.type },
          });
        return found;
      }),
  };
}

function byLink(customerId: number, action: string, asker: Asker) {
  return {
    via: "api",
    customer_id: customerId,
    action: `LINK ${action}`,
    user_id: null,
    change: {},
    address: asker.address,
    request_id: asker.requestId,
  } as const;
}

function describeType(type: string): string {
  const known: Readonly<Record<string, string>> = {
    ...emailNotificationTypes,
    ...monitorNotificationTypes,
  };
  return (Object.hasOwn(known, type) ? known[type] : undefined) ?? "Reports of unreviewed bots.";
}
