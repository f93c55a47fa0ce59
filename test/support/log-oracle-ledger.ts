// The agent's sums beside what central has: by lane and number, committed are records and canaries, dropped are gaps of the same reason. Compared when
// nothing is on its way; then they are the same, number by number.
//
// Sums begin where spool/marks says. When that is lost or older, what they begin with is read here from the directory, as the agent is to read it: lanes
// that the marks name go on from there, others from their first segment, and what is in neither is not the agent's any more.
// After that only the numbers are the same, not their kinds: of what central took before, the agent is told no more than how far it goes.

import { cpSync, readdirSync } from "node:fs";
import { parseSegmentName } from "../../src/agent/requests/spool/segment.ts";
import { diskFiles } from "../../src/agent/requests/spool/spool-files.ts";
import { recoverLanes } from "../../src/agent/requests/spool/spool-recovery.ts";
import { noMarks, readMarks, type SpoolMarks } from "../../src/agent/requests/spool/spool-marks.ts";
import { formatLaneId } from "../../src/wire/request-log.ts";
import type { Sums } from "./log-oracle-balance.ts";
import type { StoreNews } from "./log-oracle-store.ts";
import { tempDir } from "./temp-dir.ts";

const record = "record";

type Piece = { readonly from: number; to: number; readonly kind: string };
/** Numbers of a lane that the agent counts. */
type Counted = { readonly above: number; readonly through: number };

type Origin = {
  /** By kind. */
  readonly sums: ReadonlyMap<string, number>;
  readonly lanes: ReadonlyMap<string, Counted>;
  /** Lanes of these runs that are not among `lanes` are not counted. */
  readonly epochs: ReadonlySet<string>;
};

export class Ledger {
  /** How often the sums were compared. */
  compared = 0;
  /** By lane, in order of number. */
  readonly #pieces = new Map<string, Piece[]>();
  #isSetBack = false;
  #origin: Origin = { sums: new Map(), lanes: new Map(), epochs: new Set() };

  take({ rows, gaps }: StoreNews): void {
    const pieces = [
      ...rows.map(({ lane, seq }) => ({ lane, from: seq, to: seq, kind: record })),
      ...gaps.map(({ reason, atLeast, ...gap }) => {
        const isUnproven = reason === "crash" && atLeast === 0;
        return { ...gap, kind: isUnproven ? "unproven" : reason };
      }),
    ].sort((a, b) => a.from - b.from);
    for (const { lane, ...piece } of pieces) {
      const known = this.#pieces.get(lane) ?? [];
      const last = known.at(-1);
      if (last !== undefined && last.kind === piece.kind && last.to + 1 === piece.from)
        last.to = piece.to;
      else known.push(piece);
      this.#pieces.set(lane, known);
    }
  }

  /** The agent is to begin with what this spool is now; `epochs` are those of all runs before. `undone`: central knows more of it than it does itself. */
  rebase(spoolDir: string, epochs: Iterable<string>, past: "same" | "undone" = "same"): void {
    this.#isSetBack = true;
    const found = readMarks(diskFiles, spoolDir);
    const marks = typeof found === "string" ? noMarks : found;
    const first = firstNumbers(spoolDir);
    const ends = past === "undone" ? lastNumbers(spoolDir, marks) : undefined;
    const endOf = (id: string): number => ends?.get(id) ?? Infinity;
    const lanes = new Map<string, Counted>();
    for (const [lane, seq] of first) lanes.set(lane, { above: seq - 1, through: endOf(lane) });
    for (const { lane, counted, end } of marks.lanes) {
      const id = formatLaneId(lane);
      lanes.set(id, { above: counted, through: first.has(id) ? endOf(id) : end });
    }
    this.#origin = { sums: sumsOf(marks), lanes, epochs: new Set(epochs) };
  }

  /** What does not agree. */
  compare({ committed, droppedBy, accepted, unproven, unknown }: Sums): readonly string[] {
    this.compared++;
    const due = this.#due();
    const told = new Map([...droppedBy, ["unproven", unproven], [record, committed]]);
    const total = [...due.values()].reduce((sum, count) => sum + count, 0);
    const kinds = this.#isSetBack ? [] : [...due.keys(), ...told.keys()];
    const wrong = [...new Set(kinds)]
      .map((kind) => ({ kind, agent: told.get(kind) ?? 0, central: due.get(kind) ?? 0 }))
      // Of what the agent calls unknown central has the kinds, in whatever parts.
      .filter(({ agent, central }) => (unknown === 0 ? agent !== central : agent > central))
      .map(
        ({ kind, agent, central }) => `${kind}: the agent says ${agent}, central has ${central}`,
      );
    const least = accepted + unproven;
    if (total < least || total > least + unknown)
      wrong.push(
        `the agent accepted ${accepted} beside ${unproven} and ${unknown}, central has ${total}`,
      );
    return wrong;
  }

  #due(): ReadonlyMap<string, number> {
    const { sums, lanes, epochs } = this.#origin;
    const due = new Map(sums);
    for (const [lane, pieces] of this.#pieces) {
      const isNew = !epochs.has(lane.split("/", 1)[0] ?? "");
      const counted = lanes.get(lane) ?? (isNew ? { above: 0, through: Infinity } : undefined);
      if (counted === undefined) continue;
      for (const { from, to, kind } of pieces) {
        const count = Math.min(to, counted.through) - Math.max(from, counted.above + 1) + 1;
        if (count > 0) due.set(kind, (due.get(kind) ?? 0) + count);
      }
    }
    return due;
  }
}

function sumsOf({ committed, dropped, lanes }: SpoolMarks): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  const add = (kind: string, count: number): unknown =>
    sums.set(kind, (sums.get(kind) ?? 0) + count);
  for (const each of [{ committed, dropped }, ...lanes]) {
    add(record, each.committed);
    for (const [reason, count] of Object.entries(each.dropped)) add(reason, count);
  }
  return sums;
}

/** By lane: through where it may have given out numbers. What central has behind that, of a later that is undone, is not the agent's. */
function lastNumbers(spoolDir: string, marks: SpoolMarks): ReadonlyMap<string, number> {
  using copy = tempDir(); // A recovery cuts torn tails off.
  cpSync(spoolDir, copy.path, { recursive: true });
  const lanes = recoverLanes(diskFiles, copy.path, marks, {
    isLive: () => false,
    isRelaxed: false,
    damaged: () => undefined,
    failed: () => undefined,
  });
  return new Map(lanes.map(({ id, end }) => [id, end]));
}

/** By lane: where its first segment begins. */
function firstNumbers(spoolDir: string): ReadonlyMap<string, number> {
  const first = new Map<string, number>();
  for (const file of readdirSync(spoolDir)) {
    const name = parseSegmentName(file);
    if (name === undefined) continue;
    const id = formatLaneId(name.lane);
    first.set(id, Math.min(name.firstSeq, first.get(id) ?? Infinity));
  }
  return first;
}
