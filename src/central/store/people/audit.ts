// The audit trail: a line for each change, in the transaction of the change.
//
// It is read by stretches of its ids, each in a transaction of its own: however long the trail and however rare what is looked for, nobody waits longer than for
// one stretch, and no change pays for an index.

import type { Json } from "../../../core/journal/canonical-json.ts";
import type { AuditAsked } from "../../../wire/operator.ts";
import type { Store } from "../engine/database.ts";
import type { TableRow } from "../engine/schema.ts";
import type { Work } from "../engine/work.ts";

export type AuditLine = Omit<TableRow<"audit">, "ids" | "change"> & {
  readonly ids: Readonly<Record<string, Json>>;
  readonly change: Json;
};

export type AuditQuery = Pick<AuditAsked, "customer_id" | "who" | "since">;

export async function recordAudit(
  { tx, at }: Work,
  entry: Omit<AuditLine, "id" | "at">,
): Promise<void> {
  const texts = { ids: JSON.stringify(entry.ids), change: JSON.stringify(entry.change) };
  await tx
    .insertInto("audit")
    .values({ ...entry, ...texts, at })
    .execute();
}

/** The id of the newest line. */
export async function lastAuditId({ tx }: Work): Promise<number> {
  const row = await tx.selectFrom("audit").select("id").orderBy("id", "desc").executeTakeFirst();
  return row?.id ?? 0;
}

/** Lines with ids above `after`, up to `upTo`. */
export async function auditStretch(
  { tx }: Work,
  { customer_id: customerId, who, since }: AuditQuery,
  { after, upTo }: { readonly after: number; readonly upTo: number },
): Promise<readonly AuditLine[]> {
  let query = tx.selectFrom("audit").selectAll().where("id", ">", after).where("id", "<=", upTo);
  if (customerId !== undefined) query = query.where("customer_id", "=", customerId);
  if (since !== undefined) query = query.where("at", ">=", since);
  if (who !== undefined)
    query = query.where((where) =>
      where.or([
        where("who", "=", who),
        where("user_id", "in", where.selectFrom("users").select("id").where("username", "=", who)),
      ]),
    );
  const rows = await query.orderBy("id").execute();
  return rows.map((row) => ({
    ...row,
    ids: JSON.parse(row.ids) as AuditLine["ids"], // As written above.
    change: JSON.parse(row.change) as Json,
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
