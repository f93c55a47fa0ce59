// Hands a mail to the mail server: one connection a message, one recipient, the message id of the outbox.

import { createTransport } from "nodemailer";
import { messageOf } from "../../core/faults.ts";
import type { DeliverMail, Delivery } from "./delivery.ts";

export type SmtpSettings = {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte (`smtps:`), required by STARTTLS, used if it is offered, or none. */
  readonly tls: "implicit" | "required" | "offered" | "none";
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** `Name <address>`, or an address. */
  readonly from: string;
  readonly timeoutMs: number;
  /** The host in message ids, under which customers know central. */
  readonly idHost: string;
};

/**
 * The commands whose failures (RFC 5321 §4.2) are about this recipient or this message; those of other
 * commands are about us.
 */
const messageCommands = /^(?:RCPT TO|DATA|BDAT)/i;

export function createSmtpDelivery(settings: SmtpSettings): DeliverMail {
  const { host, port, tls, user, password, from, timeoutMs, idHost } = settings;
  const transport = createTransport({
    host,
    port,
    secure: tls === "implicit",
    requireTLS: tls === "required",
    ignoreTLS: tls === "none",
    ...(user !== undefined && { auth: { user, pass: password ?? "" } }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    // A message contains what we wrote and nothing else: no file and no URL is read for it.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return async (message, { uid, whenCreated }, signal) => {
    const { to, subject, text, html, unsubscribeUrl } = message;
    try {
      await transport.sendMail({
        from,
        to: { name: "", address: to },
        subject,
        text,
        html,
        messageId: `<${uid}@${idHost}>`,
        date: new Date(whenCreated),
        headers: {
          "Auto-Submitted": "auto-generated",
          ...(unsubscribeUrl !== null && {
            "List-Unsubscribe": `<${unsubscribeUrl}>`,
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
          }),
        },
        signal,
      });
      return { kind: "sent" };
    } catch (error) {
      const failure = failureOf(error);
      if (failure.kind !== "down" || failure.hungUp !== true) return failure;
      return (await isThere(transport, signal))
        ? failure
        : { kind: "down", reason: failure.reason };
    }
  };
}

/**
 * Returns whether the server accepts us just now, asked with no message in hand. If the attempt timed out,
 * the server counts as there: an attempt may take longer than its greeting, so it had greeted us.
 */
async function isThere(
  transport: { verify(): Promise<true> },
  signal: AbortSignal,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const end = (): void => resolve(isTimeout(signal));
  if (signal.aborted) end();
  else {
    signal.addEventListener("abort", end, { once: true });
    transport.verify().then(resolve, () => resolve(false));
  }
  return promise;
}

function isTimeout({ reason }: AbortSignal): boolean {
  return reason instanceof DOMException && reason.name === "TimeoutError";
}

/** Classifies a failure. While a server has said nothing, it is not known whether it is there. */
function failureOf(error: unknown): Delivery {
  const reason = messageOf(error).slice(0, 500);
  const member = (name: string): unknown =>
    error instanceof Error ? Object.entries(error).find(([key]) => key === name)?.[1] : undefined;
  const code = Number(member("responseCode") ?? 0);
  // With 421 the server says goodbye, whatever it was asked (RFC 5321 §3.8).
  if (code < 400 || code === 421) return { kind: "down", reason, hungUp: true };
  const command = member("command");
  const isOfMessage =
    (typeof command === "string" && messageCommands.test(command)) || member("code") === "EMESSAGE";
  if (!isOfMessage) return { kind: "down", reason };
  return code >= 500 ? { kind: "refused", reason } : { kind: "later", reason };
}
