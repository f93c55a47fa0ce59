// Judge of central's day files as they lie on disk: in each lane records and gaps cover 1 to the mark, each number once.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/base/sqlite.ts";

/** Lane as `<site>/<epoch>/<no>` → mark. Throws what does not agree. */
export function judgeDays(directory: string): ReadonlyMap<string, number> {
  const files = readdirSync(directory)
    .filter((name) => /^\d{4}-\d\d-\d\d\.db$/.test(name))
    .sort();
  const numbers = new Map<string, Set<number>>();
  let marks = new Map<string, number>();
  for (const file of files) {
    const { covered, lanes } = readDay(join(directory, file));
    for (const { lane, from, to } of covered) {
      const known = numbers.get(lane) ?? new Set();
      numbers.set(lane, known);
      for (let seq = from; seq <= to; seq++) {
        if (known.has(seq)) throw new Error(`${lane}: ${seq} is there twice`);
        known.add(seq);
      }
    }
    marks = new Map(lanes.map(({ lane, mark }) => [lane, mark]));
  }
  for (const [lane, known] of numbers) {
    const mark = marks.get(lane) ?? 0;
    if (known.size !== mark || Math.max(...known) !== mark)
      throw new Error(`${lane}: ${known.size} numbers up to ${Math.max(...known)}, mark ${mark}`);
  }
  for (const [lane, mark] of marks)
    if (mark > 0 && !numbers.has(lane)) throw new Error(`${lane}: mark ${mark} and no records`);
  return marks;
}

const lane = "l.site_id || '/' || l.epoch || '/' || l.no AS lane";

function readDay(path: string) {
  const db = openSqlite(path, { sync: "full" });
  try {
    return {
      covered: db
        .prepare<[], { lane: string; from: number; to: number }>(
          `SELECT ${lane}, r.seq AS "from", r.seq AS "to" FROM record r JOIN lane l ON l.id = r.lane_id
           UNION ALL SELECT ${lane}, g.from_seq, g.to_seq FROM gap g JOIN lane l ON l.id = g.lane_id`,
        )
        .all(),
      lanes: db
        .prepare<[], { lane: string; mark: number }>(`SELECT ${lane}, mark FROM lane l`)
        .all(),
    };
  } finally {
    db.close();
  }
}
