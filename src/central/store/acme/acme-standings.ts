// How orders of certificates stand: for the API, for metrics, and for warnings.

import { sql } from "kysely";
import type { InRow, LeftOut, OrderPhase } from "../../../core/acme/order-step.ts";
import type { CertificateOrder } from "../../../wire/customer/certificate-order.ts";
import type { Queries } from "../engine/database.ts";
import type { TableRow } from "../engine/schema.ts";
import type { PageRange, Work } from "../engine/work.ts";
import type { Reach } from "../people/tokens.ts";

type OrderStandingState = CertificateOrder["state"];

type Stands = {
  readonly phase: OrderPhase;
  readonly attempts: number;
  /** JSON. */
  readonly in_row: string;
  readonly error: string | null;
  readonly fingerprint: string | null;
  readonly changed_at: string | null;
};

/**
 * Pure. An order to which nothing has happened yet is about to begin. One whose directory did not answer, limits it, or
 * forgot it has failed until the directory answers, in whichever phase it waits.
 */
function stateOf(order: Stands): OrderStandingState {
  const { phase, attempts, error, fingerprint, changed_at } = order;
  if (phase === "publishing") return "proving";
  if (phase !== "resting") return isPutOff(order) ? "failed" : "ordering";
  if (attempts > 0 || error !== null) return "failed";
  return fingerprint === null || changed_at !== null ? "ordering" : "issued";
}

/** Pure. The column was written by this folder alone. */
function isPutOff({ phase, error, in_row }: Stands): boolean {
  if (error === null) return false;
  const inRow = JSON.parse(in_row) as InRow;
  return inRow["put-off"] > 0 || (phase === "placing" && inRow.forgotten > 0);
}

export async function listCertificateOrders(
  work: Work,
  reach: Reach,
  { after, limit }: PageRange,
): Promise<readonly CertificateOrder[]> {
  if (reach.domains?.length === 0) return [];
  const rows = await ordersOf(work, reach)
    .where("acme_orders.id", ">", after)
    .orderBy("acme_orders.id")
    .limit(limit)
    .execute();
  return rows.map(standingOf);
}

/** Returns an order of the customer's that the token is for. */
export async function certificateOrder(
  work: Work,
  reach: Reach,
  id: number,
): Promise<CertificateOrder | undefined> {
  if (reach.domains?.length === 0) return undefined;
  const row = await ordersOf(work, reach).where("acme_orders.id", "=", id).executeTakeFirst();
  return row === undefined ? undefined : standingOf(row);
}

/** `domains` must not be empty. */
function ordersOf({ tx }: Work, { customerId, domains }: Reach) {
  return tx
    .selectFrom("acme_orders")
    .innerJoin("domains", "domains.id", "acme_orders.domain_id")
    .selectAll("acme_orders")
    .select("domains.name as domain")
    .where("domains.customer_id", "=", customerId)
    .$if(domains !== null, (query) => query.where("domains.name", "in", domains ?? []));
}

function standingOf(row: TableRow<"acme_orders"> & { readonly domain: string }): CertificateOrder {
  return {
    id: row.id,
    domain: row.domain,
    names: namesOf(row.names),
    directory: row.directory,
    email: row.email,
    state: stateOf(row),
    attempts: row.attempts,
    error: row.error,
    left_out: Object.entries(JSON.parse(row.left_out) as LeftOut).map(([host, reason]) => ({
      host,
      reason,
    })),
    // A certificate that is there may be looked at before, for what its directory says of its renewal.
    next_at: stateOf(row) === "issued" ? (row.renew_at ?? row.due_at) : row.due_at,
    certificate: certificateOf(row),
  };
}

/** Written by this folder alone. */
const namesOf = (json: string): string[] => JSON.parse(json) as string[];

type IssuedRow = {
  readonly issued_names: string | null;
  readonly not_before: string | null;
  readonly not_after: string | null;
  readonly fingerprint: CertificateFingerprint | null;
  readonly renew_at: string | null;
  readonly when_issued: string | null;
};
type CertificateFingerprint = NonNullable<CertificateOrder["certificate"]>["fingerprint"];

function certificateOf(row: IssuedRow): CertificateOrder["certificate"] {
  const { issued_names: names, not_before, not_after, fingerprint, renew_at, when_issued } = row;
  if (names === null || not_before === null || not_after === null || fingerprint === null)
    return null;
  return {
    names: namesOf(names),
    not_before,
    not_after,
    fingerprint,
    renew_at: renew_at ?? not_after,
    when_issued: when_issued ?? not_before,
  };
}

export type OrdersCounted = {
  readonly states: ReadonlyMap<OrderStandingState, number>;
  /** ISO 8601; null if there is no certificate. */
  readonly firstExpiry: string | null;
};

export async function countOrders(db: Queries): Promise<OrdersCounted> {
  const rows = await db
    .selectFrom("acme_orders")
    .select(["phase", "attempts", "in_row", "error", "fingerprint", "not_after", "changed_at"])
    .execute();
  const states = new Map<OrderStandingState, number>();
  let firstExpiry: string | null = null;
  for (const row of rows) {
    const state = stateOf(row);
    states.set(state, (states.get(state) ?? 0) + 1);
    const { not_after: end } = row;
    if (end !== null && (firstExpiry === null || end < firstExpiry)) firstExpiry = end;
  }
  return { states, firstExpiry };
}

/** An order whose renewal is due. */
export type DueRenewal = {
  readonly id: number;
  readonly domain: string;
  readonly error: string | null;
  readonly renewAt: string;
  readonly notAfter: string;
};

/** Returns the orders whose certificate was to be renewed by now, whatever they wait for. */
export async function dueRenewals(db: Queries, at: string): Promise<readonly DueRenewal[]> {
  const rows = await db
    .selectFrom("acme_orders")
    .innerJoin("domains", "domains.id", "acme_orders.domain_id")
    .select(["acme_orders.id", "domains.name as domain", "error"])
    .select(["renew_at as renewAt", "not_after as notAfter"])
    .where("renew_at", "<", at)
    .orderBy("acme_orders.id")
    .execute();
  return rows.flatMap(({ renewAt, notAfter, ...row }) =>
    renewAt === null || notAfter === null ? [] : [{ ...row, renewAt, notAfter }],
  );
}

/** Whether any domain orders certificates, or did: what was ordered for a domain that is gone is to be taken back. */
export async function hasOrders(db: Queries): Promise<boolean> {
  const row = await db
    .selectFrom("acme_domains")
    .leftJoin("acme_orders", "acme_orders.domain_id", "acme_domains.domain_id")
    .select(sql<number>`1`.as("one"))
    .where((where) =>
      where.or([where("said", "is not", null), where("acme_orders.id", "is not", null)]),
    )
    .limit(1)
    .executeTakeFirst();
  if (row !== undefined) return true;
  const left = await db
    .selectFrom("certificates")
    .select("id")
    .where("acme_order_id", "is not", null)
    .limit(1)
    .executeTakeFirst();
  return left !== undefined;
}
