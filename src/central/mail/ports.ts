// What sending needs of the rest of central: declared here, given by the composition root.

import type {
  Busy,
  Outgoing,
  OutgoingChannel,
  OutgoingChat,
  OutgoingMail,
  TakenMessage,
} from "../../core/outgoing.ts";

/** Each is one transaction; all throw on a broken store only. */
export type Outbox = {
  /** A message that is due and whose peer is not busy; nobody else gets it before the lease is over. */
  take(channel: OutgoingChannel, leaseMs: number, busy?: Busy): Promise<TakenMessage | undefined>;
  sent(taken: TakenMessage): Promise<void>;
  failed(taken: TakenMessage, reason: string): Promise<void>;
  /** Not before `until`, nor anything else for the same recipient. */
  postpone(taken: TakenMessage, until: Date, reason: string): Promise<void>;
  /** It keeps its place, and is due as it was. */
  putBack(taken: TakenMessage, reason: string): Promise<void>;
  /** What came too late fails; one for each. */
  expire(): Promise<readonly { readonly channel: OutgoingChannel; readonly kind: string }[]>;
  backlog(): Promise<
    readonly {
      readonly channel: OutgoingChannel;
      readonly waiting: number;
      readonly oldest: string;
    }[]
  >;
};

export type Delivery =
  | { readonly kind: "sent" }
  /** This message will not be taken, ever. */
  | { readonly kind: "refused"; readonly reason: string }
  /** This message was not taken now. `waitMs`: what the peer asks for. */
  | { readonly kind: "later"; readonly reason: string; readonly waitMs?: number }
  /** Nothing can be sent at present; `hungUp`: or else nothing like this message, for the server is there. */
  | { readonly kind: "down"; readonly reason: string; readonly hungUp?: true };

/** Never rejects; ends soon after the signal aborted. */
export type Deliver<M extends Outgoing> = (
  message: M,
  facts: { readonly uid: string; readonly whenCreated: string },
  signal: AbortSignal,
) => Promise<Delivery>;

export type DeliverMail = Deliver<OutgoingMail>;
export type DeliverChat = Deliver<OutgoingChat>;
