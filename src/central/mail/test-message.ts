// The message that tries out a channel of alerts: what an alert's would be, saying that it is none.

import type { OutgoingMail } from "../../core/outgoing.ts";
import { oneLine, renderMail } from "./document.ts";
import { timeText } from "./words.ts";

export type ChannelTest = {
  /** The customer's name of the channel. */
  readonly uid: string;
  /** Who asked for it. */
  readonly username: string;
  readonly customer: string;
  /** ISO 8601. */
  readonly at: string;
};

const title = "This is a test, not an alert";

export function testChat({ uid, username, customer, at }: ChannelTest): string {
  const asked = `Asked for by ${username} of ${customer}, ${timeText(at)}. Alerts of this customer come here.`;
  return [`[${oneLine(uid)}] ${title}`, oneLine(asked)].join("\n");
}

export function testMail(
  { uid, username, customer, at }: ChannelTest,
  to: { readonly email: string; readonly unsubscribeUrl: string },
): OutgoingMail {
  const asked = `${username} of ${customer} asked for it.`;
  const rendered = renderMail({
    subject: `[${uid}] ${title}`,
    preview: `${customer}, ${timeText(at)}`,
    title,
    blocks: [
      { kind: "text", text: `${asked} Alerts of this customer reach you as this mail did.` },
    ],
    footer: [
      `${customer}, ${timeText(at)}. Channel: ${uid}.`,
      `${to.email} is subscribed to alerts.`,
    ],
    unsubscribeUrl: to.unsubscribeUrl,
  });
  return { channel: "mail", to: to.email, ...rendered, unsubscribeUrl: to.unsubscribeUrl };
}
