// How many rows a query finds or removes.

import type { SelectQueryBuilder } from "kysely";

/** PostgreSQL counts in bigints, which come as texts. */
export async function rowCount<DB, Tables extends keyof DB, Columns>(
  query: SelectQueryBuilder<DB, Tables, Columns>,
): Promise<number> {
  const row = await query
    .clearSelect()
    .select((select) => select.fn.countAll<number | string>().as("count"))
    .executeTakeFirstOrThrow();
  // Its one column: the type of a row of any tables does not name it.
  return Number(Object.values(row)[0]);
}

export async function deletedRows(query: {
  executeTakeFirst(): Promise<{ readonly numDeletedRows: bigint }>;
}): Promise<number> {
  return Number((await query.executeTakeFirst()).numDeletedRows);
}
