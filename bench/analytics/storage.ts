// The room that numbers take, by domain and by what it is, and that of the request logs beside them.

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/base/sqlite.ts";
import { finenesses } from "../../src/core/analytics/time-buckets.ts";
import { tempDir } from "../../test/support/temp-dir.ts";
import type { Figures } from "../support/figures.ts";

type Row = {
  readonly domain: string;
  readonly fineness: number;
  readonly kind: string;
  readonly rows: number;
  readonly bytes: number;
};

/** Central must have ended: nothing is in a WAL then. */
export function addStorage(figures: Figures, stateDir: string): void {
  figures.head("storage");
  const path = join(stateDir, "analytics.db");
  const db = openSqlite(path, { sync: "normal", readonly: true });
  const pragma = (name: string): number => Number(db.pragma(name, { simple: true }));
  const inUse = (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
  const rows = db
    .prepare<[], Row>(
      `SELECT s.domain, c.fineness, 'counts' AS kind, count(*) AS rows, sum(length(c.counts)) AS bytes
       FROM counts c JOIN series s ON s.id = c.series_id GROUP BY s.domain, c.fineness
       UNION ALL SELECT s.domain, t.fineness, 'tops', count(*), sum(length(t.keys))
       FROM top t JOIN series s ON s.id = t.series_id GROUP BY s.domain, t.fineness ORDER BY 1, 3, 2`,
    )
    .all();
  db.close();
  for (const domain of new Set(rows.map((row) => row.domain))) {
    const own = rows.filter((row) => row.domain === domain);
    figures.add(`numbers of ${domain}, as if alone`, bytesAlone(path, domain) / 2 ** 20, "MiB");
    for (const { kind, fineness, rows: count, bytes: some } of own)
      figures.add(
        `  ${kind} by ${finenesses[fineness]}`,
        some / 2 ** 20,
        "MiB",
        undefined,
        `${count.toLocaleString("en")} rows of ${Math.round(some / count).toLocaleString("en")} B`,
      );
  }
  figures.add("analytics.db in use", inUse / 2 ** 20, "MiB");
  const logs = join(stateDir, "logs");
  const files = readdirSync(logs).filter((name) => name.endsWith(".db"));
  const all = files.reduce((sum, name) => sum + statSync(join(logs, name)).size, 0);
  figures.add(
    "request logs that are kept",
    all / 2 ** 20,
    "MiB",
    undefined,
    `${files.length} days`,
  );
}

/** The size of a file that has the numbers of one domain alone. */
function bytesAlone(path: string, domain: string): number {
  using dir = tempDir();
  const alone = join(dir.path, "alone.db");
  const all = openSqlite(path, { sync: "normal", readonly: true });
  all.prepare<[string]>("VACUUM INTO ?").run(alone);
  all.close();
  const db = openSqlite(alone, { sync: "normal" });
  for (const table of ["counts", "top"])
    db.prepare<[string]>(
      `DELETE FROM ${table} WHERE series_id NOT IN (SELECT id FROM series WHERE domain = ?)`,
    ).run(domain);
  db.exec("VACUUM");
  db.close();
  return statSync(alone).size;
}
