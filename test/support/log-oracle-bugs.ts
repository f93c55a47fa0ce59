// Programs with a bug planted: a copy of the sources in which one place is changed. A judge that lets one of them pass judges nothing.

import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tempDir } from "./temp-dir.ts";

export type PlantedBug = {
  readonly name: string;
  readonly program: "agent" | "central";
  /** Below src/. */
  readonly file: string;
  /** Found once in the file; `$1` … in `by` are its groups. */
  readonly change: RegExp;
  readonly by: string;
};

const root = join(import.meta.dirname, "../..");

/** Among kills and a bad network. */
export const plantedBugs: readonly PlantedBug[] = [
  {
    name: "cursor before data: the agent moves its mark before central has the batch",
    program: "agent",
    file: "agent/requests/shipper.ts",
    change: /(const posted = await post\()/,
    by: "await spool.confirm(lane, batch.lastSeq); $1",
  },
  {
    name: "unlink before commit: a segment goes when it was sent",
    program: "agent",
    file: "agent/requests/lane-shelf.ts",
    change: /lane\.lastSeqOf\(segment\) <= lane\.mark\b/,
    by: "lane.lastSeqOf(segment) <= Math.max(lane.mark, lane.sentThrough)",
  },
  {
    name: "mark outside the transaction: central commits it before the records",
    program: "central",
    file: "central/agents/log-day.ts",
    change: /(const laneId = this\.#sql\.setMark\.get\([^;]*;)/,
    by: '$1 this.#db.exec("COMMIT; BEGIN IMMEDIATE");',
  },
  {
    name: "records outside the transaction: central commits them before the mark",
    program: "central",
    file: "central/agents/log-day.ts",
    change: /return this\.#db\.transaction\(action\)\.immediate\(\);/,
    by: `const set = this.#sql.setMark; const late: unknown[][] = [];
      this.#sql.setMark = { get: (...mark: unknown[]) => (late.push(mark), set.get(mark[0], mark[1], mark[2], 0, mark[4])) };
      try { const done = this.#db.transaction(action).immediate(); for (const mark of late) set.get(...mark); return done; }
      finally { this.#sql.setMark = set; }`,
  },
];

/** In a spool that is full. */
export const unlinkBeforeFsync: PlantedBug = {
  name: "unlink before fsync: a segment is dropped before the gap that tells of it is on disk",
  program: "agent",
  file: "agent/requests/lane-shelf.ts",
  change: /(\n {4}\/\/ On a full disk the gap)/,
  by: "\n    segment.unlink();$1",
};

/** A source tree with the bug; its `main.ts`. */
export function plant({ file, change, by, name }: PlantedBug): { main: string } & Disposable {
  const dir = tempDir();
  cpSync(join(root, "src"), join(dir.path, "src"), { recursive: true });
  cpSync(join(root, "package.json"), join(dir.path, "package.json"));
  symlinkSync(join(root, "node_modules"), join(dir.path, "node_modules"));
  const path = join(dir.path, "src", file);
  const source = readFileSync(path, "utf8");
  const found = source.match(new RegExp(change.source, "g"))?.length ?? 0;
  if (found !== 1) throw new Error(`${name}: ${file} has ${found} places for it`);
  writeFileSync(path, source.replace(change, by));
  return { main: join(dir.path, "src/main.ts"), [Symbol.dispose]: () => dir[Symbol.dispose]() };
}
