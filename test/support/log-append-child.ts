// A process that appends to a log store until it is killed: `node log-append-child.ts DIRECTORY HONEST|MARK_FIRST`. Says `<lane no> <through>` after each commit.
//
// MARK_FIRST is a planted bug: the mark is committed before the records that it tells of, and the process is killed between the two.

import { openSqlite } from "../../src/base/sqlite.ts";
import { LogStore } from "../../src/central/agents/log-store.ts";
import { requestRecord } from "./fake-agent.ts";

export type AppendMode = "HONEST" | "MARK_FIRST";

const [directory = "", mode = "HONEST"] = process.argv.slice(2);
const epoch = "00000000000000c1";
const dayMs = 86_400_000;
const firstDayMs = Date.parse("2030-01-15T12:00:00Z");
const lanes = [1, 2, 3];
const linesOfBatch = 200;

using store = new LogStore(directory, (path) => {
  throw new Error(`${path} is broken`);
});
let windows = 0;
const marks = new Map(lanes.map((no) => [no, 0]));
for (let round = 0; ; round++) {
  const nowMs = firstDayMs + (Math.floor(round / 40) % 3) * dayMs;
  const requests = lanes.map((no) => batch(no, (marks.get(no) ?? 0) + 1, nowMs));
  if (mode === "MARK_FIRST") markFirst(nowMs);
  const outcomes = store.append(requests);
  for (const [at, outcome] of outcomes.entries()) {
    const no = lanes[at] ?? 0;
    if (outcome.kind === "conflict") marks.set(no, outcome.mark);
    else if (outcome.kind === "committed" || outcome.kind === "repeated") {
      marks.set(no, outcome.through);
      process.stdout.write(`${no} ${outcome.through}\n`);
    } else throw new Error(JSON.stringify(outcome));
  }
}

/** Records, a canary and a gap of three. */
function batch(no: number, firstSeq: number, nowMs: number) {
  const lines = Array.from({ length: linesOfBatch }, (_, at) =>
    JSON.stringify(requestRecord({ uri_path: `/${no}/${firstSeq + at}` })),
  );
  const gapFrom = firstSeq + linesOfBatch + 1;
  lines.push(JSON.stringify({ canary: { at: nowMs / 1_000 } }));
  lines.push(JSON.stringify({ gap: { from_seq: gapFrom, to_seq: gapFrom + 2, reason: "crash" } }));
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

function markFirst(nowMs: number): void {
  const day = new Date(nowMs).toISOString().slice(0, 10);
  try {
    const db = openSqlite(`${directory}/${day}.db`, { sync: "full", readonly: false });
    const before = db.prepare("SELECT site_id, epoch, no, mark FROM lane").all();
    db.exec(`UPDATE lane SET mark = mark + ${linesOfBatch + 4}`);
    if (++windows === 5) process.kill(process.pid, "SIGKILL");
    for (const { mark, no } of before as { mark: number; no: number }[])
      db.prepare("UPDATE lane SET mark = ? WHERE no = ?").run(mark, no);
    db.close();
  } catch {
    // The day has not begun.
  }
}
