// The mail with the link to a new token.

import { renderMail } from "./document.ts";
import { recoverUrl } from "./links.ts";
import type { OutgoingMail } from "../../core/outgoing.ts";

export function recoveryMail(
  baseUrl: string,
  user: { readonly username: string; readonly email: string },
  token: string,
): OutgoingMail {
  const host = new URL(baseUrl).host;
  const rendered = renderMail({
    subject: `A new token for ${user.username}`,
    preview: "Somebody asked for a new API token. The link is valid for an hour.",
    title: "A new API token",
    blocks: [
      {
        kind: "text",
        text: `Somebody asked for a new API token for the user ${user.username} at ${host}. Open the link and confirm; the new token is shown once.`,
      },
      { kind: "button", label: "Get a new token", url: recoverUrl(baseUrl, token) },
      {
        kind: "text",
        text: "The link works once and for an hour. With the new token all others of this user stop working.",
      },
      {
        kind: "text",
        text: "If it was not you, do nothing: without the link nothing changes.",
      },
    ],
    footer: [`Sent by ${host} because somebody asked for a token recovery with this address.`],
    unsubscribeUrl: null,
  });
  return { channel: "mail", to: user.email, ...rendered, unsubscribeUrl: null };
}
