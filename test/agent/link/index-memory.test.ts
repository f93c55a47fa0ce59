// What agent.db remembers of the cache index: across restarts, with the journal's position, and not across a new instance's forgetting.

import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openAgentDb, indexMemory } from "../../../src/agent/link/agent-db.ts";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import { tempDir } from "../../support/temp-dir.ts";

test("opening and clear number are kept; epoch and seq are the ledger's", () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.db");
  {
    using db = openAgentDb(path);
    const memory = indexMemory(db);
    expect(memory.read()).toEqual({ epoch: null, clearSeq: 0, clearNo: 0, opening: null });
    memory.note({ opening: "one" });
    memory.note({ clearNo: 7 });
    const epoch = "e".repeat(32);
    db.ledger.restart({ epoch, seq: 3, chain: chainStart, receipt: undefined, imports: [] });
    db.ledger.commit({
      seq: 4,
      chain: chainStart,
      receipt: { seq: 4, phase: "applied", detail: {}, took_ms: 1 },
      isClear: true,
    });
  }
  using db = openAgentDb(path);
  const memory = indexMemory(db);
  expect(memory.read()).toEqual({
    epoch: "e".repeat(32),
    clearSeq: 4,
    clearNo: 7,
    opening: "one",
  });
  memory.note({ opening: "two", clearNo: 8 });
  db.ledger.forget();
  expect(memory.read()).toEqual({ epoch: null, clearSeq: 0, clearNo: 8, opening: "two" });
});

test("why a copied index is not trusted is known until another opening is noted, also over a start that ended before", () => {
  using dir = tempDir();
  const [path, copy] = [join(dir.path, "agent.db"), join(dir.path, "copy.db")];
  {
    using db = openAgentDb(path);
    indexMemory(db).note({ opening: "one" });
    expect(indexMemory(db).read().moved).toBeUndefined();
  }
  copyFileSync(path, copy);
  const why =
    "this state directory is a copy, for its agent.db is another file than the one that was used last; clears that were given here since then are not known";
  {
    using db = openAgentDb(copy);
    expect(indexMemory(db).read()).toMatchObject({ opening: "one", moved: why });
  }
  using db = openAgentDb(copy);
  const memory = indexMemory(db);
  memory.note({ clearNo: 3 });
  expect(memory.read().moved).toBe(why);
  memory.note({ opening: "two" });
  expect(memory.read()).toMatchObject({ opening: "two", moved: undefined });
});
