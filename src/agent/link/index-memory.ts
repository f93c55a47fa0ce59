// What agent.db remembers of the cache index (meta keys `index_opening`, `index_clear_no`, beside the ledger's epoch and last_clear_seq), so that a copy of
// index.db that was put back is not served: it would hold what was cleared since.

import type { IndexMemory } from "../cache/index/opening.ts";
import type { AgentDb } from "./agent-db.ts";

export function indexMemory({ sqlite, ledger }: Pick<AgentDb, "sqlite" | "ledger">): IndexMemory {
  const get = sqlite.prepare<[string], string>("SELECT value FROM meta WHERE key = ?").pluck();
  const set = sqlite.prepare<[string, string]>(
    "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
  );
  return {
    read: () => ({
      epoch: ledger.position.epoch,
      clearSeq: ledger.lastClearSeq,
      clearNo: Number(get.get("index_clear_no") ?? 0),
      opening: get.get("index_opening") ?? null,
    }),
    /** One FULL transaction. */
    note: (changes) =>
      sqlite
        .transaction(() => {
          if (changes.opening !== undefined && changes.opening !== null)
            set.run("index_opening", changes.opening);
          if (changes.clearNo !== undefined) set.run("index_clear_no", String(changes.clearNo));
        })
        .immediate(),
  };
}
