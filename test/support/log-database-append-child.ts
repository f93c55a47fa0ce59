// A process that appends to request logs in a database until it is killed: `node log-database-append-child.ts DIRECTORY WAY`,
// WAY a `LogDatabaseWay` as JSON. Says `<lane no> <through>` after each commit. What fails it sends again, as agents do.

import { setTimeout as sleepFor } from "node:timers/promises";
import type { LogDatabaseWay } from "../../src/central/agents/log-messages.ts";
import { logPlaceText } from "../../src/central/agents/postgres-logs/log-database.ts";
import { PostgresLogStore } from "../../src/central/agents/postgres-logs/postgres-log-store.ts";
import { WaitingSql } from "../../src/central/agents/postgres-logs/waiting-sql.ts";
import type { AppendOutcome } from "../../src/central/agents/log-take.ts";
import { requestRecord } from "./request-records.ts";

const [directory = "", json = ""] = process.argv.slice(2);
// The parent passes it.
const way = JSON.parse(json) as LogDatabaseWay;
const epoch = "00000000000000c1";
const dayMs = 86_400_000;
const firstDayMs = Date.parse("2030-01-15T12:00:00Z");
const lanes = [1, 2, 3];
const linesOfBatch = 200;
const pauseMs = 50;

using store = new PostgresLogStore(
  new WaitingSql(way),
  directory,
  logPlaceText(way.database),
  (path) => {
    throw new Error(`${path} is broken`);
  },
);
const marks = new Map(lanes.map((no) => [no, 0]));
for (let round = 0; ; round++) {
  const nowMs = firstDayMs + (Math.floor(round / 40) % 3) * dayMs;
  const outcomes = await appended(nowMs);
  for (const [at, outcome] of outcomes.entries()) {
    const no = lanes[at] ?? 0;
    if (outcome.kind === "conflict") marks.set(no, outcome.mark);
    else if (outcome.kind === "committed" || outcome.kind === "repeated") {
      marks.set(no, outcome.through);
      process.stdout.write(`${no} ${outcome.through}\n`);
    } else throw new Error(JSON.stringify(outcome));
  }
}

async function appended(nowMs: number): Promise<readonly AppendOutcome[]> {
  const requests = lanes.map((no) => batch(no, (marks.get(no) ?? 0) + 1, nowMs));
  try {
    return store.append(requests);
  } catch {
    await sleepFor(pauseMs); // Its server is being killed, and comes again.
    return [];
  }
}

/** Records, a canary and a gap of three. */
function batch(no: number, firstSeq: number, nowMs: number) {
  const lines = Array.from({ length: linesOfBatch }, (_, at) =>
    JSON.stringify(requestRecord(firstSeq + at, { domain: `${no}.example.test` })),
  );
  const gapFrom = firstSeq + linesOfBatch + 1;
  lines.push(JSON.stringify({ canary: { at: nowMs / 1_000 } }));
  lines.push(JSON.stringify({ gap: { from_seq: gapFrom, to_seq: gapFrom + 2, reason: "behind" } }));
  return {
    siteId: 1,
    lane: { epoch, no },
    firstSeq,
    lastSeq: gapFrom + 2,
    encoding: "identity" as const,
    body: Buffer.from(lines.join("\n")),
    nowMs,
  };
}
