// What central sends: a mail, or a line in a chat. It is written whole before the first attempt, so that each
// attempt sends the same.

export type OutgoingMail = {
  readonly channel: "mail";
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /**
   * The address that ends this very subscription; null if the mail was asked for by hand and there is nothing
   * to unsubscribe from.
   */
  readonly unsubscribeUrl: string | null;
};

export type OutgoingChat = {
  readonly channel: "chat";
  readonly hookUrl: string;
  readonly text: string;
};

export type Outgoing = OutgoingMail | OutgoingChat;

export type OutgoingChannel = Outgoing["channel"];

/** A message that a sender has for an attempt. */
export type TakenMessage = {
  readonly id: number;
  /** An id that is the same in each attempt. */
  readonly uid: string;
  readonly customerId: number;
  readonly kind: string;
  readonly recipient: string;
  /** The number of attempts, this one included. */
  readonly attempts: number;
  /** ISO 8601. */
  readonly whenCreated: string;
  readonly message: Outgoing;
};

/** The customers, recipients and hooks that a sender is busy with: nothing more is taken for them. */
export type Busy = {
  readonly customers: readonly number[];
  readonly messages: readonly Pick<TakenMessage, "customerId" | "recipient" | "message">[];
};

/**
 * One address as HTML forms accept it: ASCII, no quoting, no list, nothing that a header could be made of.
 */
export const mailAddressPattern =
  "^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$";

const mailAddress = new RegExp(mailAddressPattern);

export function isMailAddress(text: string): boolean {
  return text.length <= 254 && mailAddress.test(text);
}

/** Returns the same key for two spellings of one mailbox; no server in use tells them apart. */
export function mailAddressKey(address: string): string {
  return address.toLowerCase();
}
