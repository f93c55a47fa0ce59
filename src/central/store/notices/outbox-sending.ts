// The outbox from its senders' side: one of them at a time takes what is due, and writes down what came of it.

import type { ExpressionBuilder } from "kysely";
import type { Sealer } from "../../../base/seal.ts";
import type { Busy, OutgoingChannel, TakenMessage } from "../../../core/outgoing.ts";
import type { Store } from "../engine/database.ts";
import { openMessage } from "./outbox.ts";
import type { StoreTables } from "../engine/schema.ts";

const nothing: Busy = { customers: [], messages: [] };

/**
 * The outbox as a sender sees it. Each sender has a name; what it took is nobody else's until its lease is
 * over. Each method is one transaction, and throws on a broken store only.
 */
export class Outbox {
  readonly #store: Store;
  readonly #sealer: Pick<Sealer, "open">;
  readonly #now: () => Date;
  readonly #owner: string;

  constructor(options: {
    readonly store: Store;
    readonly sealer: Pick<Sealer, "open">;
    readonly now: () => Date;
    readonly owner: string;
  }) {
    this.#store = options.store;
    this.#sealer = options.sealer;
    this.#now = options.now;
    this.#owner = options.owner;
  }

  /** A message that is due and whose peer is not busy; nobody else gets it before the lease is over. Undefined when there is none. */
  async take(
    channel: OutgoingChannel,
    leaseMs: number,
    busy: Busy = nothing,
  ): Promise<TakenMessage | undefined> {
    const now = this.#now();
    const at = now.toISOString();
    const leased = {
      lease_owner: this.#owner,
      lease_until: new Date(now.getTime() + leaseMs).toISOString(),
    };
    const passed = busy.messages.map(({ recipient }) => recipient);
    for (;;) {
      const next = await nextDue(this.#store, channel, at, busy.customers, passed);
      if (next === undefined) return undefined;
      if (isPeerBusy(next.customer_id, openMessage(this.#sealer, next.uid, next.sealed), busy)) {
        passed.push(next.recipient);
        continue;
      }
      const row = await this.#store
        .updateTable("outbox")
        .set((set) => ({ ...leased, attempts: set("attempts", "+", 1) }))
        .where("id", "=", next.id)
        // Once more: another instance may have taken it meanwhile, and then the next one is looked for.
        .where((free) => isFree(free, at))
        .returning(["id", "uid", "customer_id", "kind", "recipient", "attempts"])
        .returning(["when_created", "sealed"])
        .executeTakeFirst();
      if (row === undefined) continue;
      const { id, uid, customer_id, kind, recipient, attempts, when_created, sealed } = row;
      const message = openMessage(this.#sealer, uid, sealed);
      const facts = { id, uid, customerId: customer_id, kind, recipient, attempts };
      return { ...facts, whenCreated: when_created, message };
    }
  }

  async sent(taken: TakenMessage): Promise<void> {
    await this.#end(taken, { state: "sent", error: null });
  }

  async failed(taken: TakenMessage, error: string): Promise<void> {
    await this.#end(taken, { state: "failed", error });
  }

  /** Its content is let go. */
  async #end(
    { id }: TakenMessage,
    end: { readonly state: "sent" | "failed"; readonly error: string | null },
  ): Promise<void> {
    await this.#store
      .updateTable("outbox")
      .set({ ...end, ...letGo, sealed: "", when_ended: this.#now().toISOString() })
      .where("id", "=", id)
      .where("lease_owner", "=", this.#owner)
      .execute();
  }

  /** The attempt failed for no fault of the message: it keeps its place, and is due as it was. */
  async putBack({ id }: TakenMessage, error: string): Promise<void> {
    await this.#store
      .updateTable("outbox")
      .set({ ...letGo, error })
      .where("id", "=", id)
      .where("lease_owner", "=", this.#owner)
      .execute();
  }

  /** The attempt failed: not before `until`, nor anything else for the same recipient. */
  async postpone({ id, recipient }: TakenMessage, until: Date, error: string): Promise<void> {
    const due = until.toISOString();
    await this.#store.transaction().execute(async (tx) => {
      await tx
        .updateTable("outbox")
        .set({ ...letGo, due_at: due, error })
        .where("id", "=", id)
        .where("lease_owner", "=", this.#owner)
        .execute();
      await tx
        .updateTable("outbox")
        .set({ due_at: due })
        .where("recipient", "=", recipient)
        .where("state", "=", "waiting")
        .where("due_at", "<", due)
        .execute();
    });
  }

  /** Fails what came too late to be sent; returns one row for each message. */
  async expire(): Promise<readonly { readonly channel: OutgoingChannel; readonly kind: string }[]> {
    const at = this.#now().toISOString();
    return this.#store
      .updateTable("outbox")
      .set({
        ...letGo,
        state: "failed",
        error: "it could not be sent in time",
        sealed: "",
        when_ended: at,
      })
      .where("expires_at", "<=", at)
      .where((row) => isFree(row, at))
      .returning(["channel", "kind"])
      .execute();
  }

  /**
   * Returns the backlog by channel. `oldest` is the time, ISO 8601, of the message that has waited longest.
   */
  async backlog(): Promise<
    readonly {
      readonly channel: OutgoingChannel;
      readonly waiting: number;
      readonly oldest: string;
    }[]
  > {
    return this.#store
      .selectFrom("outbox")
      .select((select) => [
        "channel",
        select.fn.countAll<number>().as("waiting"),
        select.fn.min("when_created").as("oldest"),
      ])
      .where("state", "=", "waiting")
      .groupBy("channel")
      .execute();
  }
}

const letGo = { lease_owner: null, lease_until: null };

async function nextDue(
  store: Store,
  channel: OutgoingChannel,
  at: string,
  exceptCustomers: readonly number[],
  exceptRecipients: readonly string[],
) {
  let due = store
    .selectFrom("outbox")
    .select(["id", "uid", "customer_id", "recipient", "sealed"])
    .where("channel", "=", channel)
    .where("expires_at", ">", at)
    .where("due_at", "<=", at)
    .where((free) => isFree(free, at))
    .orderBy("due_at")
    .orderBy("id")
    .limit(1);
  if (exceptCustomers.length > 0) due = due.where("customer_id", "not in", exceptCustomers);
  if (exceptRecipients.length > 0) due = due.where("recipient", "not in", exceptRecipients);
  return due.executeTakeFirst();
}

/** Two channels of a customer may be one hook. */
function isPeerBusy(customerId: number, message: TakenMessage["message"], busy: Busy): boolean {
  return (
    message.channel === "chat" &&
    busy.messages.some(
      (other) =>
        other.customerId === customerId &&
        other.message.channel === "chat" &&
        other.message.hookUrl === message.hookUrl,
    )
  );
}

/** Waiting, and nobody has it at that time. */
function isFree(row: ExpressionBuilder<StoreTables, "outbox">, at: string) {
  return row.and([
    row("state", "=", "waiting"),
    row.or([row("lease_until", "is", null), row("lease_until", "<=", at)]),
  ]);
}

/** Releases the leases of who is gone: of all but those named. `alive` are the senders that may be at it. */
export async function releaseLeases(store: Store, alive: readonly string[]): Promise<void> {
  let released = store.updateTable("outbox").set(letGo).where("lease_owner", "is not", null);
  if (alive.length > 0) released = released.where("lease_owner", "not in", alive);
  await released.execute();
}
