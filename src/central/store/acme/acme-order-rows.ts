// Orders of certificates as they are read. An order is one row for as long as its domain wants the certificate: from one
// certificate to the next.

import type { ChallengeAnswer } from "../../../core/acme/challenge-answer.ts";
import type { AcmeOrderState, InRow, LeftOut } from "../../../core/acme/order-step.ts";
import type { AcmeAccount } from "../../../core/acme/wanted-names.ts";
import type { Queries } from "../engine/database.ts";
import type { TableRow } from "../engine/schema.ts";

/** A challenge of an order: what agents answer, and central looks for. */
export type PublishedChallenge = {
  readonly host: string;
  readonly token: string;
  readonly keyAuthorization: string;
  /** What the directory was told of it; absent before. */
  readonly answer?: ChallengeAnswer;
};

export type AcmeOrder = AcmeOrderState &
  AcmeAccount & {
    readonly id: number;
    readonly domainId: number;
    /** The main domain. */
    readonly domain: string;
    readonly customerId: number;
    readonly dueMs: number;
    /** From when somebody may have it tried before; null: at any time. */
    readonly tryFromMs: number | null;
    readonly orderUrl: string | null;
    readonly challenges: readonly PublishedChallenge[];
    /** The chain of the certificate that is there, as PEM. */
    readonly chain: string | null;
    readonly notBefore: string | null;
    readonly notAfter: string | null;
    /** When central got it. */
    readonly whenIssued: string | null;
    readonly windowAskedMs: number | null;
    readonly renewalWindow: string | null;
  };

const msOf = (text: string | null): number | null => (text === null ? null : Date.parse(text));

type Row = TableRow<"acme_orders"> & { readonly domain: string; readonly customer_id: number };

/** The JSON columns were written by this folder alone. */
function orderOf(row: Row): AcmeOrder {
  const { issued_names: names, renew_at: renewAt } = row;
  return {
    id: row.id,
    domainId: row.domain_id,
    domain: row.domain,
    customerId: row.customer_id,
    directory: row.directory,
    email: row.email,
    phase: row.phase,
    attempts: row.attempts,
    inRow: JSON.parse(row.in_row) as InRow,
    error: row.error,
    names: JSON.parse(row.names) as string[],
    ordered: JSON.parse(row.ordered) as string[],
    leftOut: JSON.parse(row.left_out) as LeftOut,
    publishedMs: msOf(row.published_at),
    expiresMs: msOf(row.order_expires),
    issued:
      names === null || renewAt === null
        ? null
        : { names: JSON.parse(names) as string[], renewMs: Date.parse(renewAt) },
    dueMs: Date.parse(row.due_at),
    tryFromMs: msOf(row.try_from),
    orderUrl: row.order_url,
    challenges: JSON.parse(row.challenges) as PublishedChallenge[],
    chain: row.chain,
    notBefore: row.not_before,
    notAfter: row.not_after,
    whenIssued: row.when_issued,
    windowAskedMs: msOf(row.window_asked_at),
    renewalWindow: row.renewal_window,
  };
}

function orderRows(db: Queries) {
  return db
    .selectFrom("acme_orders")
    .innerJoin("domains", "domains.id", "acme_orders.domain_id")
    .selectAll("acme_orders")
    .select(["domains.name as domain", "domains.customer_id"]);
}

export async function acmeOrder(db: Queries, id: number): Promise<AcmeOrder | undefined> {
  const row = await orderRows(db).where("acme_orders.id", "=", id).executeTakeFirst();
  return row === undefined ? undefined : orderOf(row);
}

export type DueOrder = { readonly id: number; readonly customerId: number };

export type DueAsked = {
  readonly at: string;
  /** Ids of orders that are left out. */
  readonly except: readonly number[];
  /** The most of one customer: whoever has a thousand keeps nobody waiting. */
  readonly ofCustomer: number;
  readonly limit: number;
};

/** Returns the orders that are due, the longest overdue first. A domain that no site serves has nobody to answer for it. */
export async function dueOrders(
  db: Queries,
  { at, except, ofCustomer, limit }: DueAsked,
): Promise<readonly DueOrder[]> {
  const due = db
    .selectFrom("acme_orders")
    .innerJoin("domains", "domains.id", "acme_orders.domain_id")
    .select(["acme_orders.id", "domains.customer_id as customerId", "due_at as dueAt"])
    .select((select) =>
      select.fn
        .agg<number>("row_number")
        .over((over) => over.partitionBy("domains.customer_id").orderBy("due_at"))
        .as("turn"),
    )
    .where("due_at", "<=", at)
    .$if(except.length > 0, (query) => query.where("acme_orders.id", "not in", except))
    .where((where) =>
      where.exists(
        where
          .selectFrom("domain_links")
          .select("domain_links.domain_id")
          .whereRef("domain_links.domain_id", "=", "acme_orders.domain_id"),
      ),
    );
  return db
    .selectFrom(due.as("due"))
    .select(["due.id", "due.customerId"])
    .where("due.turn", "<=", ofCustomer)
    .orderBy("due.dueAt")
    .limit(limit)
    .execute();
}
