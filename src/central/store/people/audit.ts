// The audit trail: a line for each change, in the transaction of the change.
//
// It is read by stretches of its ids, each in a transaction of its own: however long the trail and however rare what is looked for, nobody waits longer than for
// one stretch, and no change pays for an index.

import type { AuditEntry, AuditLine, AuditQuery, AuditStretch } from "../../../core/audit-trail.ts";
import type { Json } from "../../../core/journal/canonical-json.ts";
import type { Queries, Store } from "../engine/database.ts";
import type { Work } from "../engine/work.ts";

export function audit(work: Work) {
  return {
    record: async (entry: AuditEntry) => recordAudit(work, entry),
    last: async () => last(work.tx),
    stretch: async (query: AuditQuery, ids: AuditStretch) => stretch(work.tx, query, ids),
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

async function last(db: Queries): Promise<number> {
  const row = await db
    .selectFrom("audit")
    .select("id")
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.id ?? 0;
}

async function stretch(
  db: Queries,
  query: AuditQuery,
  { after, upTo }: AuditStretch,
): Promise<readonly AuditLine[]> {
  const rows = await matching(db, query)
    .selectAll()
    .where("id", ">", after)
    .where("id", "<=", upTo)
    .orderBy("id")
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

const rowsAtOnce = 5_000;

/** The oldest first and in parts, so that a year's trail holds nobody up. How many were removed. */
export async function dropAudit(store: Store, before: Date): Promise<number> {
  const end = before.toISOString();
  for (let dropped = 0; ;) {
    const oldest = await store
      .selectFrom("audit")
      .select(["id", "at"])
      .orderBy("id")
      .limit(rowsAtOnce)
      .execute();
    const old = oldest.findIndex(({ at }) => at >= end);
    const gone = old < 0 ? oldest : oldest.slice(0, old);
    const newest = gone.at(-1);
    if (newest === undefined) return dropped;
    await store.deleteFrom("audit").where("id", "<=", newest.id).execute();
    dropped += gone.length;
    if (gone.length < rowsAtOnce) return dropped;
  }
}
