// Programs with a bug planted: built from the sources with one place changed. A judge that lets one of them pass judges nothing.

import { builtTree, type BuiltTree, type Patch } from "./built-tree.ts";

export type PlantedBug = {
  readonly name: string;
  readonly program: "agent" | "central";
  /** `$1` … in `to` are the groups of `from`. */
  readonly patch: Patch;
};

/** Among kills and a bad network. */
export const plantedBugs: readonly PlantedBug[] = [
  {
    name: "cursor before data: the agent moves its mark before central has the batch",
    program: "agent",
    patch: {
      file: "src/agent/requests/ship/shipper.ts",
      from: /(const posted = await post\()/,
      to: "await spool.confirm(lane, batch.lastSeq); $1",
    },
  },
  {
    name: "unlink before commit: a segment goes when it was sent",
    program: "agent",
    patch: {
      file: "src/agent/requests/spool/lane-shelf.ts",
      from: /lane\.lastSeqOf\(segment\) <= lane\.mark\b/,
      to: "lane.lastSeqOf(segment) <= Math.max(lane.mark, lane.sentThrough)",
    },
  },
  {
    name: "anybody's refusal: a 400 of a proxy makes a record poison",
    program: "agent",
    patch: {
      file: "src/agent/requests/ship/ship-plan.ts",
      from: "return isOwn && !isGap ?",
      to: "return !isGap ?",
    },
  },
  {
    name: "sums that drift: each lane that ends counts one record more",
    program: "agent",
    patch: {
      file: "src/agent/requests/spool/lane-shelf.ts",
      from: "this.#gone.committed += committed;",
      to: "this.#gone.committed += committed + 1;",
    },
  },
];

/** Among kills in central's commits. */
export const plantedInCommits: readonly PlantedBug[] = [
  {
    name: "mark outside the transaction: central commits it before the records",
    program: "central",
    patch: {
      file: "src/central/agents/log-day.ts",
      from: /(const laneId = this\.#sql\.setMark\.get\([^;]*;)/,
      to: '$1 this.#db.exec("COMMIT; BEGIN IMMEDIATE");',
    },
  },
  {
    name: "records outside the transaction: central commits them before the mark",
    program: "central",
    patch: {
      file: "src/central/agents/log-day.ts",
      from: /return this\.#db\.transaction\(action\)\.immediate\(\);/,
      to: `const { setMark, mark } = this.#sql; const late: unknown[][] = [];
      const keep = (site, epoch, no, ...rest) => (late.push([site, epoch, no, ...rest]),
        setMark.get(site, epoch, no, mark.get(site, epoch, no)?.mark ?? 0, rest[1]));
      this.#sql.setMark = { get: keep };
      try { const done = this.#db.transaction(action).immediate(); for (const one of late) setMark.get(...one); return done; }
      finally { this.#sql.setMark = setMark; }`,
    },
  },
];

/** In a spool that is full. */
export const unlinkBeforeFsync: PlantedBug = {
  name: "unlink before fsync: a segment is dropped before the gap that tells of it is on disk",
  program: "agent",
  patch: {
    file: "src/agent/requests/spool/lane-shelf.ts",
    from: /(\n {4}\/\/ On a full disk the gap)/,
    to: "\n    segment.unlink();$1",
  },
};

/** The program with the bug. */
export function plant({ patch }: PlantedBug): BuiltTree {
  return builtTree([patch]);
}
