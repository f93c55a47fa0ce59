// What an alert says, in a chat and in a mail: which backends, seen from where, since when.

import type { BackendTrouble } from "../../core/backend-trouble.ts";
import type { OutgoingMail } from "../../core/outgoing.ts";
import type { PlannedAlert } from "./alert-plan.ts";
import { oneLine, renderMail, type Block } from "./document.ts";
import { timeText } from "./words.ts";

export type AlertMessage = {
  readonly kind: "slow" | "unreachable";
  readonly phase: "firing" | "resolved";
  /** Of one customer and type, and of one edge server where the type is by edge server. */
  readonly alerts: readonly (PlannedAlert & {
    readonly troubles?: readonly BackendTrouble[];
    readonly whenFired?: string;
  })[];
  /** ISO 8601. */
  readonly at: string;
};

const listedMax = 20;

export function alertTitle({ kind, phase, alerts }: AlertMessage): string {
  const [first] = alerts;
  const edge = first?.edge ?? "";
  const what = alerts.length === 1 ? (first?.domain ?? "") : `${alerts.length} domains`;
  if (kind === "slow")
    return phase === "firing"
      ? `Slow backend: ${what}`
      : `Resolved: the backend of ${what} answers in time again`;
  return phase === "firing"
    ? `Backend unreachable from ${edge}: ${what}`
    : `Resolved: ${edge} reaches the backend of ${what} again`;
}

function lineOf(message: AlertMessage, alert: AlertMessage["alerts"][number]): readonly string[] {
  const { troubles = [], whenFired } = alert;
  if (message.phase === "resolved")
    return [alert.domain, whenFired === undefined ? "" : timeText(whenFired)];
  const since = troubles.map((one) => one.since).sort()[0] ?? message.at;
  const edges = [...new Set(troubles.map((one) => one.edge))].join(", ");
  return [alert.domain, timeText(since), countsOf(alert) ?? "its check", edges];
}

/** Undefined where nobody asked: its active checks told. */
function countsOf({ troubles = [] }: AlertMessage["alerts"][number]): string | undefined {
  const bad = troubles.reduce((sum, one) => sum + one.badRequests, 0);
  const all = troubles.reduce((sum, one) => sum + one.requests, 0);
  return all === 0 ? undefined : `${bad} of ${all}`;
}

function columnsOf({ kind, phase }: AlertMessage) {
  if (phase === "resolved") return [{ label: "Domain" }, { label: "Alert since" }];
  // Of the last bad report: half a minute.
  const bad = kind === "slow" ? "Slow" : "Failed";
  return [
    { label: "Domain" },
    { label: "Since" },
    { label: bad, isNumber: true },
    { label: "Seen from" },
  ];
}

/** One line for each domain, `uid` in front, as the customer named the channel. */
export function alertChat(message: AlertMessage, uid: string): string {
  const { alerts } = message;
  const lines = alerts.slice(0, listedMax).map((alert) => {
    const [domain = "", since = "", , edges] = lineOf(message, alert);
    if (message.phase === "resolved") return `• ${domain} (alert since ${since})`;
    const counts = countsOf(alert);
    const how = message.kind === "slow" ? "slow" : "failed";
    const what =
      counts === undefined
        ? "it fails its check"
        : `${counts} requests ${how} in the last half minute`;
    return `• ${domain}: since ${since}, ${what}, seen from ${edges}`;
  });
  const rest = alerts.length - listedMax;
  const more = rest > 0 ? [`• and ${rest} more`] : [];
  return [
    `[${oneLine(uid)}] ${alertTitle(message)}`,
    ...lines.map((line) => oneLine(line)),
    ...more,
  ].join("\n");
}

const advice: Readonly<Record<AlertMessage["kind"], string>> = {
  slow: "What is in the cache is answered as fast as ever; everything else waits for the backend.",
  unreachable:
    "What is in the cache is answered; everything else is answered with an error, or with a stale answer where a rule allows it.",
};

export function alertMail(
  message: AlertMessage,
  to: {
    readonly email: string;
    readonly customer: string;
    readonly uids: readonly string[];
    readonly unsubscribeUrl: string;
  },
): OutgoingMail {
  const { kind, phase, alerts } = message;
  const rest = alerts.length - listedMax;
  const title = alertTitle(message);
  const blocks: Block[] = [
    phase === "firing"
      ? { kind: "callout", text: advice[kind], tone: "bad" }
      : { kind: "callout", text: "All was well for a while.", tone: "good" },
    {
      kind: "table",
      columns: columnsOf(message),
      rows: alerts.slice(0, listedMax).map((alert) => lineOf(message, alert)),
      ...(rest > 0 && { more: `and ${rest} more` }),
    },
  ];
  const rendered = renderMail({
    subject: `[${to.uids.join(", ")}] ${title}`,
    preview: `${to.customer}, ${timeText(message.at)}`,
    title,
    blocks,
    footer: [
      `${to.customer}, ${timeText(message.at)}. Channels: ${to.uids.join(", ")}.`,
      `${to.email} is subscribed to this type of alert.`,
    ],
    unsubscribeUrl: to.unsubscribeUrl,
  });
  return { channel: "mail", to: to.email, ...rendered, unsubscribeUrl: to.unsubscribeUrl };
}
