// The outcome of giving a message to a mail server or a chat hook.

import type { Outgoing, OutgoingChat, OutgoingMail } from "../../core/outgoing.ts";

export type Delivery =
  | { readonly kind: "sent" }
  /** This message will never be accepted. */
  | { readonly kind: "refused"; readonly reason: string }
  /** This message was not accepted now. `waitMs` is what the peer asks for. */
  | { readonly kind: "later"; readonly reason: string; readonly waitMs?: number }
  /**
   * Nothing can be sent at present; with `hungUp` perhaps only nothing like this message, for the server is
   * there.
   */
  | { readonly kind: "down"; readonly reason: string; readonly hungUp?: true };

/** Delivers a message. Never rejects; ends soon after the signal aborts. */
export type Deliver<M extends Outgoing> = (
  message: M,
  facts: { readonly uid: string; readonly whenCreated: string },
  signal: AbortSignal,
) => Promise<Delivery>;

export type DeliverMail = Deliver<OutgoingMail>;
export type DeliverChat = Deliver<OutgoingChat>;
