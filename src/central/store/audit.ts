// The audit trail: a line for each change, in the transaction of the change.

import type { Json } from "../../core/canonical-json.ts";
import type { Queries, Store } from "./database.ts";
import type { Work } from "./work.ts";

export type AuditEntry = {
  readonly via: "api" | "operator";
  readonly who: string;
  readonly userId: number | null;
  readonly customerId: number | null;
  readonly action: string;
  readonly ids: Readonly<Record<string, Json>>;
  readonly change: Json;
  readonly address: string | null;
  readonly requestId: string | null;
};

export type AuditLine = AuditEntry & { readonly id: number; readonly at: string };

export type AuditQuery = {
  readonly customerId: number | undefined;
  /** A user's name, also of one who had it when the line was written, or an operator's account. */
  readonly who: string | undefined;
  readonly since: string | undefined;
};

export function audit(work: Work) {
  return {
    record: async (entry: AuditEntry) => recordAudit(work, entry),
    page: async (query: AuditQuery, range: { readonly after: number; readonly limit: number }) =>
      page(work.tx, query, range),
    before: async (query: AuditQuery, count: number) => before(work.tx, query, count),
  };
}

export async function recordAudit({ tx, at }: Work, entry: AuditEntry): Promise<void> {
  await tx
    .insertInto("audit")
    .values({
      at,
      via: entry.via,
      who: entry.who,
      user_id: entry.userId,
      customer_id: entry.customerId,
      action: entry.action,
      ids: JSON.stringify(entry.ids),
      change: JSON.stringify(entry.change),
      address: entry.address,
      request_id: entry.requestId,
    })
    .execute();
}

function matching(db: Queries, { customerId, who, since }: AuditQuery) {
  let query = db.selectFrom("audit");
  if (customerId !== undefined) query = query.where("customer_id", "=", customerId);
  if (since !== undefined) query = query.where("at", ">=", since);
  if (who !== undefined)
    query = query.where((where) =>
      where.or([
        where("who", "=", who),
        where("user_id", "in", where.selectFrom("users").select("id").where("username", "=", who)),
      ]),
    );
  return query;
}

async function page(
  db: Queries,
  query: AuditQuery,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<readonly AuditLine[]> {
  const rows = await matching(db, query)
    .selectAll()
    .where("id", ">", after)
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    id: row.id,
    at: row.at,
    via: row.via,
    who: row.who,
    userId: row.user_id,
    customerId: row.customer_id,
    action: row.action,
    ids: JSON.parse(row.ids) as AuditLine["ids"], // As written above.
    change: JSON.parse(row.change) as Json,
    address: row.address,
    requestId: row.request_id,
  }));
}

async function before(db: Queries, query: AuditQuery, count: number): Promise<number> {
  const row = await matching(db, query)
    .select("id")
    .orderBy("id", "desc")
    .limit(1)
    .offset(count)
    .executeTakeFirst();
  return row?.id ?? 0;
}

const rowsAtOnce = 5_000;

/** In parts, so that a year's trail holds nobody up. How many were removed. */
export async function dropAudit(store: Store, before: Date): Promise<number> {
  for (let dropped = 0; ;) {
    const part = store
      .selectFrom("audit")
      .select("id")
      .where("at", "<", before.toISOString())
      .limit(rowsAtOnce);
    const { numDeletedRows } = await store
      .deleteFrom("audit")
      .where("id", "in", part)
      .executeTakeFirst();
    dropped += Number(numDeletedRows);
    if (Number(numDeletedRows) < rowsAtOnce) return dropped;
  }
}
