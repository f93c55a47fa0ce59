// What an alert says, in a chat and in a mail: which backends, seen from where, since when; which lists of bots do not come, and why.

import type { BackendTrouble } from "../../core/serving/backend-trouble.ts";
import type { OutgoingMail } from "../../core/outgoing.ts";
import { listHost, listName } from "../../core/stale-list-words.ts";
import type { PlannedAlert, StaleList } from "./alert-plan.ts";
import { oneLine, renderMail, type Block } from "./document.ts";
import { timeText } from "./words.ts";

type Alert = PlannedAlert & {
  readonly troubles?: readonly BackendTrouble[];
  readonly lists?: readonly StaleList[];
  readonly whenFired?: string;
};

export type AlertMessage = {
  readonly kind: "slow" | "unreachable" | "stale-list";
  readonly phase: "firing" | "resolved";
  /** The alerts of one customer and type. */
  readonly alerts: readonly Alert[];
  /** ISO 8601. */
  readonly at: string;
};

export function alertTitle(message: AlertMessage): string {
  const { kind, phase, alerts } = message;
  const what = oneOrCount(
    alerts.map(({ domain }) => domain),
    "domains",
  );
  if (kind === "slow")
    return phase === "firing"
      ? `Slow backend: ${what}`
      : `Resolved: the backend of ${what} answers in time again`;
  const [list, ...more] = staleLists(message);
  if (list !== undefined && more.length === 0)
    return `The ${oneLine(listName(list))} is not fetched: ${list.host}`;
  if (kind === "stale-list")
    return phase === "firing"
      ? `Lists of bots are not fetched: ${what}`
      : `Resolved: the lists of bots of ${what} are fetched again`;
  const edges = alerts.map(({ edge }) => edge);
  const from = oneOrCount(edges, "edge servers");
  const reach = new Set(edges).size === 1 ? "reaches" : "reach";
  return phase === "firing"
    ? `Backend unreachable from ${from}: ${what}`
    : `Resolved: ${from} ${reach} the backend of ${what} again`;
}

function oneOrCount(names: readonly string[], noun: string): string {
  const [first = "", ...more] = new Set(names);
  return more.length === 0 ? first : `${more.length + 1} ${noun}`;
}

/** One line of a mail about a domain. */
type Line = {
  readonly domain: string;
  readonly since: string;
  /** Undefined if there were no requests: an active check reported the trouble. */
  readonly counts: string | undefined;
  /** The edge servers of an alert that is over; empty if it was not by edge server. */
  readonly edges: string;
};

function linesOf({ phase, alerts, at }: AlertMessage): readonly Line[] {
  return [...Map.groupBy(alerts, ({ domain }) => domain)].map(([domain, own]) => {
    const troubles = own.flatMap((alert) => alert.troubles ?? []);
    const bad = troubles.reduce((sum, one) => sum + one.badRequests, 0);
    const all = troubles.reduce((sum, one) => sum + one.requests, 0);
    const isFiring = phase === "firing";
    const times = isFiring
      ? troubles.map(({ since }) => since)
      : own.flatMap(({ whenFired }) => whenFired ?? []);
    const edges = (isFiring ? troubles : own).map(({ edge }) => edge);
    return {
      domain,
      since: timeText(times.toSorted()[0] ?? at),
      counts: all === 0 ? undefined : `${bad} of ${all}`,
      edges: [...new Set(edges)].join(", "),
    };
  });
}

function tableOf(message: AlertMessage): Block {
  const { kind, phase, alerts } = message;
  const isByEdge = alerts.some(({ edge }) => edge !== "");
  const edges = { label: "Seen from" };
  const lines = linesOf(message);
  if (phase === "resolved")
    return {
      kind: "table",
      columns: [{ label: "Domain" }, { label: "Alert since" }, ...(isByEdge ? [edges] : [])],
      rows: lines.map((one) => [one.domain, one.since, ...(isByEdge ? [one.edges] : [])]),
    };
  if (kind === "stale-list")
    return {
      kind: "table",
      columns: [
        { label: "Domain" },
        { label: "List" },
        { label: "From" },
        { label: "Came last" },
        { label: "Why" },
      ],
      rows: staleLists(message).map((list) => [
        list.host,
        oneLine(listName(list)),
        listHost(list),
        timeText(list.since),
        oneLine(list.reason ?? ""),
      ]),
    };
  // The counts are those of the last bad report, which covers half a minute.
  const bad = { label: kind === "slow" ? "Slow" : "Failed", isNumber: true };
  return {
    kind: "table",
    columns: [{ label: "Domain" }, { label: "Since" }, bad, edges],
    rows: lines.map((one) => [one.domain, one.since, one.counts ?? "its check", one.edges]),
  };
}

const staleLists = ({ alerts }: AlertMessage): readonly StaleList[] =>
  alerts.flatMap(({ lists }) => lists ?? []);

/** Writes one line for each domain, with `uid` in front, as the customer named the channel. */
export function alertChat(message: AlertMessage, uid: string): string {
  const head = `[${oneLine(uid)}] ${alertTitle(message)}`;
  if (message.kind === "stale-list" && message.phase === "firing") {
    const lists = staleLists(message).map((list) => {
      const { host, since, reason } = list;
      const why = reason === null ? "" : `; ${reason}`;
      return `• ${host}, ${listName(list)} from ${listHost(list)}: came last ${timeText(since)}${why}`;
    });
    return [head, ...lists.map((line) => oneLine(line))].join("\n");
  }
  const how = message.kind === "slow" ? "slow" : "failed";
  const lines = linesOf(message).map(({ domain, since, counts, edges }) => {
    if (message.phase === "resolved") {
      const from = edges === "" ? "" : `, seen from ${edges}`;
      return `• ${domain} (alert since ${since}${from})`;
    }
    const what =
      counts === undefined
        ? "it fails its check"
        : `${counts} requests ${how} in the last half minute`;
    return `• ${domain}: since ${since}, ${what}, seen from ${edges}`;
  });
  return [head, ...lines.map((line) => oneLine(line))].join("\n");
}

const advice: Readonly<Record<AlertMessage["kind"], string>> = {
  slow: "What is in the cache is answered as fast as ever; everything else waits for the backend.",
  unreachable:
    "What is in the cache is answered; everything else is answered with an error, or with a stale answer where a rule allows it.",
  "stale-list":
    "Each bot keeps the addresses of the list that came last. Visitors are judged by those until its list comes again.",
};

const relief: Readonly<Record<AlertMessage["kind"], string>> = {
  slow: "All was well for a while.",
  unreachable: "All was well for a while.",
  "stale-list": "The lists came again, or are not fetched any more.",
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
  const { kind, phase } = message;
  const title = alertTitle(message);
  const blocks: Block[] = [
    phase === "firing"
      ? { kind: "callout", text: advice[kind], tone: "bad" }
      : { kind: "callout", text: relief[kind], tone: "good" },
    tableOf(message),
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
