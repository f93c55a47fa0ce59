// The keys of central's settings about mail, chat, reports and alerts: a part of the table in fields.ts.

import { duration, flagField, integer, oneOf, textField } from "../../base/settings-fields.ts";
import type { FieldTable, Parsed } from "../../base/settings.ts";
import { isMailAddress } from "../../core/outgoing.ts";

export type MailServer = { readonly host: string; readonly port: number; readonly isTls: boolean };

/** Parses `smtp://host[:587]` or `smtps://host[:465]`. */
function mailServer(raw: unknown): Parsed<MailServer> {
  const reason =
    "must be smtp://host:port or smtps://host:port; user and password are keys of their own";
  if (typeof raw !== "string" || !/^smtps?:\/\//.test(raw) || !URL.canParse(raw))
    return { ok: false, reason };
  const url = new URL(raw);
  const isPlain = url.username + url.password + url.search + url.hash === "";
  if (!isPlain || url.hostname === "" || !["", "/"].includes(url.pathname))
    return { ok: false, reason };
  const isTls = url.protocol === "smtps:";
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { ok: true, value: { host, port: Number(url.port || (isTls ? 465 : 587)), isTls } };
}

/** Parses an address, or `Name <address>`. */
function sender(raw: unknown): Parsed<string> {
  const text = typeof raw === "string" ? raw : "";
  const named = /^[^<>",;:@\p{Cc}]+ <(?<address>[^<>]+)>$/u.exec(text)?.groups;
  return isMailAddress(named?.["address"] ?? text)
    ? { ok: true, value: text }
    : { ok: false, reason: "must be a mail address, or `Name <address>`" };
}

function timeZone(raw: unknown): Parsed<string> {
  try {
    return {
      ok: true,
      value: new Intl.DateTimeFormat("en", { timeZone: String(raw) }).resolvedOptions().timeZone,
    };
  } catch {
    return { ok: false, reason: "must be a time zone such as Europe/Berlin" };
  }
}

export const weekdays = [
  "sunday",
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
] as const;

const mailFields = {
  "mail.server": {
    doc: "The mail server: smtp://host:587 (STARTTLS, see `mail.starttls`) or smtps://host:465. Without a server mails wait in the outbox, and health says so.",
    optional: true,
    example: "smtp://mail.example.com:587",
    parse: mailServer,
    conflict: (settings) =>
      settings["mail.server"] !== undefined && settings["mail.from"] === undefined
        ? "needs `mail.from`"
        : undefined,
  },
  "mail.starttls": {
    doc: "When mail over smtp:// is encrypted by STARTTLS: `required` always, `offered` if the server offers it, `never` not at all (for a server on this host).",
    fallback: "required",
    parse: oneOf("required", "offered", "never"),
  },
  "mail.user": {
    doc: "The user name at the mail server, if it asks for one.",
    optional: true,
    example: "accel",
    parse: textField(),
    conflict: (settings) =>
      settings["mail.user"] !== undefined && settings["mail.password_file"] === undefined
        ? "needs `mail.password_file`"
        : undefined,
  },
  "mail.password_file": {
    doc: "The file with the password for the mail server, readable by this user only.",
    optional: true,
    example: "/etc/accel-central/mail.password",
    parse: textField(/^\//, "an absolute path"),
  },
  "mail.from": {
    doc: "The sender of all mails.",
    optional: true,
    example: "Acceleration <accel@example.com>",
    parse: sender,
  },
  "mail.timeout": {
    doc: "How long each step with the mail server may take.",
    fallback: "30s",
    parse: duration("1s", "100s"),
  },
  "mail.keep": {
    doc: "How long the fact is kept that a message was sent, or why it was not. Its content is removed at once.",
    fallback: "30d",
    parse: duration("1d"),
  },
  "chat.private_hooks": {
    doc: "Whether customers' chat hooks may lead to private addresses, including this host's own.",
    fallback: false,
    parse: flagField(),
  },
  "chat.timeout": {
    doc: "How long a chat hook may take to answer.",
    fallback: "10s",
    parse: duration("1s", "60s"),
  },
} as const satisfies FieldTable;

const reportFields = {
  "reports.time_zone": {
    doc: "The time zone of the times below.",
    fallback: "UTC",
    parse: timeZone,
  },
  "reports.at": {
    doc: "The time of day, in hours and minutes, at which the daily and the weekly reports are sent.",
    fallback: "06:30",
    parse: textField(/^(?:[01]\d|2[0-3]):[0-5]\d$/, "a time such as 06:30"),
  },
  "reports.weekday": {
    doc: `The day of the weekly reports: ${weekdays.join(", ")}.`,
    fallback: "monday",
    parse: oneOf(...weekdays),
  },
} as const satisfies FieldTable;

const alertFields = {
  "alerts.slow_response": {
    doc: "An answer of a backend that takes longer than this is slow. Agents count in these steps: 100ms, 500ms, 2s, 10s.",
    fallback: "2s",
    parse: oneOf("100ms", "500ms", "2s", "10s"),
  },
  "alerts.slow_percent": {
    doc: "A backend is slow when more than this percentage of its answers within half a minute is slow.",
    fallback: 50,
    parse: integer(1, 99),
  },
  "alerts.slow_requests": {
    doc: "A backend is only slow when it gave at least this many answers within half a minute.",
    fallback: 5,
    parse: integer(1, 1_000_000),
  },
  "alerts.after": {
    doc: "A backend that is slow or unreachable for this long causes an alert.",
    fallback: "5min",
    parse: duration("0s", "1d"),
  },
  "alerts.resolved_after": {
    doc: "An alert is over when there was no trouble for this long.",
    fallback: "5min",
    parse: duration("0s", "1d"),
  },
} as const satisfies FieldTable;

/** These keys stand with the other limits. */
export const noticeLimitFields = {
  "limits.mails_per_address": {
    doc: "How many messages of one customer go to one address, or one chat channel, in an hour. Further messages wait for their turn.",
    fallback: 30,
    parse: integer(1, 100_000),
  },
  "limits.messages_per_customer": {
    doc: "How many messages are sent for one customer in a day. Further messages wait for their turn.",
    fallback: 2_000,
    parse: integer(1, 10_000_000),
  },
  "limits.recoveries_per_address": {
    doc: "How many recoveries of a token one network address may start in an hour. At most 5 mails an hour are sent for one user, and 30 to one mail address.",
    fallback: 20,
    parse: integer(1, 1_000_000),
  },
} as const satisfies FieldTable;

export const noticeFields = { ...mailFields, ...reportFields, ...alertFields };
