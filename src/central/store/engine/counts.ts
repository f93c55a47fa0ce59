// How many rows a query finds or removes.

import type { SelectQueryBuilder } from "kysely";

/** PostgreSQL counts in bigints, which come as texts. */
export async function rowCount<DB, Tables extends keyof DB, Columns>(
  query: SelectQueryBuilder<DB, Tables, Columns>,
): Promise<number> {
  const { count } = await query
    .clearSelect()
    .select((select) => select.fn.countAll<number | string>().as("count"))
    .executeTakeFirstOrThrow();
  return Number(count);
}

export async function deletedRows(query: {
  executeTakeFirst(): Promise<{ readonly numDeletedRows: bigint }>;
}): Promise<number> {
  return Number((await query.executeTakeFirst()).numDeletedRows);
}
