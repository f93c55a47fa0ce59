// The audit trail: a line for each change, in the transaction of the change.
//
// It is read by stretches, each in a transaction of its own: however long the trail and however rare what is looked for, nobody waits longer than for one stretch.
// Operators go by ids over all of it, a customer by time over the index of its own lines.

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
  entry: Omit<AuditLine, "id" | "at" | "operation"> & { readonly operation?: string },
): Promise<void> {
  const texts = { ids: JSON.stringify(entry.ids), change: JSON.stringify(entry.change) };
  await tx
    .insertInto("audit")
    .values({ ...entry, ...texts, at })
    .execute();
}

/** Where a customer's lines go on: behind this line, towards the past. */
export type AuditPlace = { readonly at: string; readonly id: number };

export type OwnAuditQuery = {
  /** Inclusive; ISO 8601. */
  readonly since: string | undefined;
  readonly until: string | undefined;
  readonly username: string | undefined;
  /** An operation, or an action where none was noted. */
  readonly operation: string | undefined;
  readonly limit: number;
  readonly after: AuditPlace | undefined;
};

export type OwnAuditPage = {
  /** The newest first. There may be less than asked for, or none, where there are more behind `next`. */
  readonly lines: readonly AuditLine[];
  readonly next: AuditPlace | undefined;
};

/** The lines that one page looks at: some 10 ms. */
const ownLinesAtOnce = 5_000;

/** Returns a page of a customer's own lines, the newest first. */
export async function ownAudit(
  { tx }: Work,
  customerId: number,
  { since, until, username, operation, limit, after }: OwnAuditQuery,
  atOnce = ownLinesAtOnce,
): Promise<OwnAuditPage> {
  let stretch = tx.selectFrom("audit").where("customer_id", "=", customerId);
  if (since !== undefined) stretch = stretch.where("at", ">=", since);
  if (until !== undefined) stretch = stretch.where("at", "<=", until);
  if (after !== undefined)
    stretch = stretch
      .where("at", "<=", after.at)
      .where((line) => line.not(line.and([line("at", "=", after.at), line("id", ">=", after.id)])));
  stretch = stretch.orderBy("at", "desc").orderBy("id", "desc");
  const last = await stretch
    .select(["at", "id"])
    .offset(atOnce - 1)
    .limit(1)
    .executeTakeFirst();
  let query = tx.selectFrom(stretch.selectAll().limit(atOnce).as("line")).selectAll();
  if (username !== undefined)
    query = query.where("user_id", "is not", null).where("who", "=", username);
  if (operation !== undefined)
    query = query.where((line) =>
      line.or([
        line("operation", "=", operation),
        line.and([line("operation", "is", null), line("action", "=", operation)]),
      ]),
    );
  const rows = await query
    .orderBy("at", "desc")
    .orderBy("id", "desc")
    .limit(limit + 1)
    .execute();
  const lines = rows.slice(0, limit).map((row) => lineOf(row));
  const end = rows.length > limit ? lines.at(-1) : last;
  return { lines, next: end === undefined ? undefined : { at: end.at, id: end.id } };
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
  return rows.map((row) => lineOf(row));
}

function lineOf(row: TableRow<"audit">): AuditLine {
  return {
    ...row,
    ids: JSON.parse(row.ids) as AuditLine["ids"], // As written above.
    change: JSON.parse(row.change) as Json,
  };
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
