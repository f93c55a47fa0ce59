// Where a customer's alerts go: chat channels, and e-mail channels, each known by a name of the customer's own.

import { dropWaiting, redirectWaiting } from "./outbox.ts";
import type { PageRange, Work } from "../engine/work.ts";

export type ChatChannelWrite = {
  readonly monitor_uid: string;
  readonly chat_channel_name: string;
  readonly chat_hook_url: string;
};
export type EmailChannelWrite = { readonly monitor_uid: string };

type Common = {
  readonly id: number;
  readonly monitor_uid: string;
  readonly when_created: string;
  readonly when_updated: string;
};
export type EmailChannelRow = Common;
export type ChatChannelRow = Common & ChatChannelWrite;

/** The operations of both kinds of channel. The ids given to `update` and `remove` belong to the customer. */
export type Channels<W extends EmailChannelWrite, R extends EmailChannelRow> = {
  list(customerId: number, range: PageRange): Promise<readonly R[]>;
  find(customerId: number, id: number): Promise<R | undefined>;
  create(customerId: number, write: W, countMax: number): Promise<number | ChannelRefusal>;
  update(customerId: number, id: number, write: W): Promise<"updated" | "taken">;
  remove(id: number): Promise<void>;
};

/** `taken`: another channel of the customer has this `monitor_uid`. */
export type ChannelRefusal = "taken" | "too-many";

export function chatChannels(work: Work): Channels<ChatChannelWrite, ChatChannelRow> {
  const { tx, at, sealer } = work;
  const rows = (customerId: number) =>
    tx.selectFrom("chat_channels").selectAll().where("customer_id", "=", customerId);
  type Row = Awaited<ReturnType<ReturnType<typeof rows>["execute"]>>[number];
  const opened = ({ customer_id, hook_sealed, ...row }: Row): ChatChannelRow => ({
    ...row,
    chat_hook_url: sealer.open(hook_sealed, hookContext(customer_id)),
  });
  const stored = (customerId: number, { chat_hook_url, ...write }: ChatChannelWrite) => ({
    ...write,
    hook_sealed: sealer.seal(chat_hook_url, hookContext(customerId)),
    when_updated: at,
  });
  return {
    async list(
      customerId: number,
      { after, limit }: PageRange,
    ): Promise<readonly ChatChannelRow[]> {
      const page = rows(customerId).where("id", ">", after).orderBy("id").limit(limit);
      return (await page.execute()).map((row) => opened(row));
    },

    async find(customerId: number, id: number): Promise<ChatChannelRow | undefined> {
      const row = await rows(customerId).where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : opened(row);
    },

    async create(
      customerId: number,
      write: ChatChannelWrite,
      countMax: number,
    ): Promise<number | ChannelRefusal> {
      const refused = refusal(await rows(customerId).execute(), write.monitor_uid, countMax);
      if (refused !== undefined) return refused;
      const { id } = await tx
        .insertInto("chat_channels")
        .values({ customer_id: customerId, ...stored(customerId, write), when_created: at })
        .returning("id")
        .executeTakeFirstOrThrow();
      return id;
    },

    /** The id belongs to the customer. What is still to be sent goes where the hook leads now. */
    async update(
      customerId: number,
      id: number,
      write: ChatChannelWrite,
    ): Promise<"updated" | "taken"> {
      if (isTaken(await rows(customerId).execute(), write.monitor_uid, id)) return "taken";
      await tx
        .updateTable("chat_channels")
        .set(stored(customerId, write))
        .where("id", "=", id)
        .execute();
      await redirectWaiting(work, chatRecipient(id), write.chat_hook_url);
      return "updated";
    },

    /** Removes a channel with what is still to be sent to it. */
    async remove(id: number): Promise<void> {
      await tx.deleteFrom("chat_channels").where("id", "=", id).execute();
      await dropWaiting(work, chatRecipient(id));
    },
  };
}

export function emailChannels({ tx, at }: Work): Channels<EmailChannelWrite, EmailChannelRow> {
  const rows = (customerId: number) =>
    tx
      .selectFrom("email_channels")
      .select(["id", "monitor_uid", "when_created", "when_updated"])
      .where("customer_id", "=", customerId);
  return {
    async list(
      customerId: number,
      { after, limit }: PageRange,
    ): Promise<readonly EmailChannelRow[]> {
      return rows(customerId).where("id", ">", after).orderBy("id").limit(limit).execute();
    },

    async find(customerId: number, id: number): Promise<EmailChannelRow | undefined> {
      return rows(customerId).where("id", "=", id).executeTakeFirst();
    },

    async create(
      customerId: number,
      { monitor_uid }: EmailChannelWrite,
      countMax: number,
    ): Promise<number | ChannelRefusal> {
      const refused = refusal(await rows(customerId).execute(), monitor_uid, countMax);
      if (refused !== undefined) return refused;
      const { id } = await tx
        .insertInto("email_channels")
        .values({ customer_id: customerId, monitor_uid, when_created: at, when_updated: at })
        .returning("id")
        .executeTakeFirstOrThrow();
      return id;
    },

    /** The id belongs to the customer. */
    async update(
      customerId: number,
      id: number,
      { monitor_uid }: EmailChannelWrite,
    ): Promise<"updated" | "taken"> {
      if (isTaken(await rows(customerId).execute(), monitor_uid, id)) return "taken";
      await tx
        .updateTable("email_channels")
        .set({ monitor_uid, when_updated: at })
        .where("id", "=", id)
        .execute();
      return "updated";
    },

    async remove(id: number): Promise<void> {
      await tx.deleteFrom("email_channels").where("id", "=", id).execute();
    },
  };
}

type Known = Pick<Common, "id" | "monitor_uid">;

/** Undefined: one of that name can be added to those of the customer. */
function refusal(own: readonly Known[], uid: string, countMax: number): ChannelRefusal | undefined {
  if (isTaken(own, uid)) return "taken";
  return own.length >= countMax ? "too-many" : undefined;
}

function isTaken(own: readonly Known[], uid: string, exceptId?: number): boolean {
  return own.some((channel) => channel.monitor_uid === uid && channel.id !== exceptId);
}

export function chatRecipient(channelId: number): string {
  return `chat:${channelId}`;
}

export function hookContext(customerId: number): string {
  return `chat_channels/${customerId}`;
}
