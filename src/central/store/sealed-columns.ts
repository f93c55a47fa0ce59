// Every column that is sealed with the store's key, and what each text in it is bound to. Who brings a store to another key, or proves that
// a key opens a whole store, goes through them all.

import { sql } from "kysely";
import type { Sealer } from "../../base/seal.ts";
import type { Queries, Store, Tx } from "./engine/database.ts";
import { accountContext } from "./acme/acme-accounts.ts";
import { issuedKeyContext, orderKeyContext } from "./acme/acme-orders.ts";
import { answerContext } from "./engine/idempotency.ts";
import { secretContext } from "./journal/site-secret.ts";
import { hookContext } from "./notices/monitor-channels.ts";
import { messageContext } from "./notices/outbox.ts";
import { linkContext } from "./notices/subscriptions.ts";
import { keyContext, privateKeyContext } from "./vault/symmetric-keys.ts";

type Row = Readonly<Record<string, unknown>>;

export type SealedColumn = {
  readonly table: string;
  readonly column: string;
  /** The columns by which a row is found, in their order. */
  readonly keys: readonly string[];
  /** The other columns that the context is made of. */
  readonly more?: readonly string[];
  /** Whether the context is of the deployment site's name. */
  readonly isOfSite?: boolean;
  readonly context: (row: Row) => string;
};

const text = (row: Row, column: string): string => String(row[column]);

export const sealedColumns: readonly SealedColumn[] = [
  {
    table: "deployment_sites",
    column: "secret_sealed",
    keys: ["id"],
    more: ["name16"],
    context: (row) => secretContext(text(row, "name16")),
  },
  {
    table: "old_secrets",
    column: "secret_sealed",
    keys: ["id"],
    isOfSite: true,
    context: (row) => secretContext(text(row, "name16")),
  },
  {
    table: "symmetric_keys",
    column: "key_sealed",
    keys: ["id"],
    more: ["name"],
    context: (row) => keyContext(text(row, "name")),
  },
  {
    table: "certificates",
    column: "private_key_sealed",
    keys: ["id"],
    more: ["fingerprint"],
    isOfSite: true,
    context: (row) =>
      privateKeyContext({ name16: text(row, "name16"), fingerprint: text(row, "fingerprint") }),
  },
  {
    table: "idempotency",
    column: "answer_sealed",
    keys: ["scope", "key"],
    context: (row) => answerContext({ scope: text(row, "scope"), key: text(row, "key") }),
  },
  {
    table: "outbox",
    column: "sealed",
    keys: ["id"],
    more: ["uid"],
    context: (row) => messageContext(text(row, "uid")),
  },
  {
    table: "subscriptions",
    column: "link_sealed",
    keys: ["id"],
    more: ["link_digest"],
    context: (row) => linkContext(text(row, "link_digest")),
  },
  {
    table: "chat_channels",
    column: "hook_sealed",
    keys: ["id"],
    more: ["customer_id"],
    context: (row) => hookContext(Number(row["customer_id"])),
  },
  {
    table: "acme_accounts",
    column: "key_sealed",
    keys: ["id"],
    more: ["customer_id", "directory", "email"],
    context: (row) =>
      accountContext({
        customerId: Number(row["customer_id"]),
        directory: text(row, "directory"),
        email: text(row, "email"),
      }),
  },
  {
    table: "acme_orders",
    column: "key_sealed",
    keys: ["id"],
    context: (row) => orderKeyContext(Number(row["id"])),
  },
  {
    table: "acme_orders",
    column: "issued_key_sealed",
    keys: ["id"],
    context: (row) => issuedKeyContext(Number(row["id"])),
  },
];

const pageRows = 500;

/** Opens every sealed text. Returns how many there are. Throws SEAL_BROKEN at the first that does not open. */
export async function openAllSealed(store: Queries, sealer: Pick<Sealer, "open">): Promise<number> {
  let count = 0;
  for (const column of sealedColumns)
    for await (const rows of pagesOf(store, column))
      for (const row of rows) {
        sealer.open(text(row, column.column), column.context(row));
        count++;
      }
  return count;
}

/** Seals every text anew: a page in each transaction. Returns how many there are. Throws SEAL_BROKEN where one does not open; pages before it are sealed anew. */
export async function resealAll(store: Store, sealer: Sealer): Promise<number> {
  let count = 0;
  for (const column of sealedColumns)
    for await (const rows of pagesOf(store, column)) {
      await store.transaction().execute(async (tx) => {
        for (const row of rows) await reseal(tx, column, row, sealer);
      });
      count += rows.length;
    }
  return count;
}

async function reseal(
  tx: Tx,
  { table, column, keys, context }: SealedColumn,
  row: Row,
  sealer: Sealer,
): Promise<void> {
  const plain = sealer.open(text(row, column), context(row));
  const found = sql.join(
    keys.map((key) => sql`${sql.ref(key)} = ${row[key]}`),
    sql` AND `,
  );
  await sql`UPDATE ${sql.table(table)} SET ${sql.ref(column)} = ${sealer.seal(plain, context(row))} WHERE ${found}`.execute(
    tx,
  );
}

/** The rows that have a sealed text, in the order of their keys. */
async function* pagesOf(
  db: Queries,
  { table, column, keys, more = [], isOfSite = false }: SealedColumn,
): AsyncGenerator<readonly Row[]> {
  const of = (name: string) => sql.ref(`t.${name}`);
  const chosen = sql.join([...keys, ...more, column].map(of));
  const site = isOfSite ? sql`, s.name16` : sql``;
  const joined = isOfSite ? sql`JOIN deployment_sites AS s ON s.id = t.deployment_site_id` : sql``;
  const order = sql.join(keys.map(of));
  let last: Row | undefined;
  for (;;) {
    const after = last && sql`AND (${order}) > (${sql.join(keys.map((key) => last?.[key]))})`;
    const { rows } = await sql<Row>`
      SELECT ${chosen}${site} FROM ${sql.table(table)} AS t ${joined}
      WHERE ${of(column)} IS NOT NULL AND ${of(column)} <> '' ${after ?? sql``}
      ORDER BY ${order} LIMIT ${pageRows}
    `.execute(db);
    if (rows.length > 0) yield rows;
    if (rows.length < pageRows) return;
    last = rows.at(-1);
  }
}
