// A process that writes a whole set which never ends, and says when a part of it is in agent.db: to be killed.

import { setTimeout as sleep } from "node:timers/promises";
import { SetStore } from "../../../src/agent/bots/sets/set-store.ts";
import { openAgentDb } from "../../../src/agent/link/agent-db.ts";
import type { SetElement } from "../../../src/core/addresses/set-digest.ts";

/** What it says. */
export type HalfWay = "half-way";

const [path = "", host = ""] = process.argv.slice(2);

async function* endless(): AsyncGenerator<readonly SetElement[]> {
  for (let no = 0; ; no++) {
    yield Array.from({ length: 1_000 }, (_, i) => ({
      bot: "new",
      range: `10.${no}.${i >> 8}.${i & 255}`,
    }));
    if (no === 3) process.stdout.write("half-way" satisfies HalfWay);
    if (no > 3) await sleep(1_000);
  }
}

const db = openAgentDb(path, "/nowhere");
const want = { host, kind: "bad" as const, version: 9, count: 1_000_000, digest: "f".repeat(64) };
await new SetStore(db.sqlite).replace(want, endless(), new AbortController().signal);
