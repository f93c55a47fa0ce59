// The root of a table thread in tests that comes to harm while the test says so: it dies, or it never answers.

import { existsSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { runTabler } from "../../../src/agent/bots/tables/tabler-thread.ts";
import type { TablerInit, ToTabler } from "../../../src/agent/bots/tables/table-messages.ts";

/** Comes while a file of agent.db's name and this ending exists. */
export type Harm = "die" | "hang";

if (parentPort === null) throw new TypeError("started by the test");
// The test starts this thread with nothing else.
const init = workerData as TablerInit;
parentPort.on("message", ({ kind }: ToTabler) => {
  if (kind !== "build") return;
  const comes = (harm: Harm): boolean => existsSync(`${init.dbPath}.${harm}`);
  if (comes("die")) process.exit(3);
  if (comes("hang")) for (;;);
});
runTabler(parentPort, init);
