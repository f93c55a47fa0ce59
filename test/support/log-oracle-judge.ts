// The judge: what visitors claimed, beside what central's store has. It judges when nothing is on its way any more; then all of this holds:
//
//   lanes       records, canaries and gaps of each lane cover 1 to its mark in order, each number once; the mark is not behind any that was
//               acknowledged to anybody
//   records     each is of a claim, as that one was, once, in a lane of the run that the claim was sent to
//   losses      of a run that ended orderly or goes on: claims = records + gaps. Of one that was killed: what was answered well before has a record,
//               or a gap with another reason than the crash; what was answered last ≤ gaps. Reasons are those that the faults explain

import { claimIdOf, differences, parseRecord } from "./log-oracle-record.ts";
import type { Claim } from "./log-oracle-producer.ts";
import type { ClockStep, Run } from "./log-oracle-scene.ts";
import type { StoredGap, StoreNews } from "./log-oracle-store.ts";

export type Evidence = {
  readonly claims: readonly Claim[];
  readonly runs: readonly Run[];
  readonly news: StoreNews;
  /** By lane: what central said that it has. */
  readonly acknowledged: ReadonlyMap<string, number>;
  readonly clockSteps: readonly ClockStep[];
  /** Why records may be missing, beside crashes. */
  readonly reasons: ReadonlySet<string>;
};

export type Figures = {
  claims: number;
  answered: number;
  records: number;
  canaries: number;
  /** Answered requests without a record. */
  missing: number;
  /** Of those, more than gaps tell. */
  lost: number;
  duplicated: number;
  /** Numbers in gaps, by reason. */
  readonly told: Map<string, number>;
  /** Everything that must not be, lost and duplicated included, as texts. */
  readonly unexplained: string[];
};

/** Of one run, over all it was judged by. */
type RunSum = {
  claims: number;
  answered: number;
  missing: number;
  missingUnanswered: number;
  /** Answered so long before the kill that they were on disk. */
  missingOld: number;
  told: number;
  toldCrash: number;
  /** In lanes that never had a record: those of canaries. */
  toldOfCanaries: number;
  lost: number;
};

/** From a visitor's answer to the disk: milliseconds, on a machine that is very busy more. */
const onDiskWithinMs = 1_500;

const textsMax = 200;

export class Judge {
  readonly figures: Figures = {
    claims: 0,
    answered: 0,
    records: 0,
    canaries: 0,
    missing: 0,
    lost: 0,
    duplicated: 0,
    told: new Map(),
    unexplained: [],
  };
  /** The next number of each lane. */
  readonly #next = new Map<string, number>();
  readonly #sums = new Map<number, RunSum>();
  readonly #visitorLanes = new Set<string>();
  readonly #connections = new Map<string, number>();
  /** Claims judged before: none of them may come again. */
  readonly #judged = new Set<number>();

  judge(evidence: Evidence): void {
    const { claims, runs, news } = evidence;
    this.#judgeLanes(evidence);
    const runOf = new Map(runs.map((run) => [run.epoch, run]));
    const found = this.#judgeRecords(evidence, runOf);
    const ends = endsOf(evidence);
    for (const claim of claims) this.#count(claim, found.has(claim.id), ends.get(claim.run));
    for (const gap of news.gaps) this.#countGap(gap, evidence, runOf);
    for (const run of runs) this.#judgeRun(run);
    for (const { id } of claims) this.#judged.add(id);
  }

  #judgeLanes({ news, acknowledged }: Evidence): void {
    const pieces = [
      ...news.rows.map(({ lane, seq }) => ({ lane, from: seq, to: seq })),
      ...news.gaps,
    ].sort((a, b) => (a.lane === b.lane ? a.from - b.from : a.lane < b.lane ? -1 : 1));
    for (const { lane, from, to } of pieces) {
      const due = this.#next.get(lane) ?? 1;
      if (from < due) {
        this.figures.duplicated++;
        this.#tell(`lane ${lane}: ${from} to ${to} where ${due} is due: twice`);
      } else if (from > due) this.#tell(`lane ${lane}: nothing stands for ${due} to ${from - 1}`);
      this.#next.set(lane, Math.max(due, to + 1));
    }
    for (const [lane, mark] of news.marks) {
      const through = (this.#next.get(lane) ?? 1) - 1;
      if (through !== mark) this.#tell(`lane ${lane}: the mark is ${mark}, covered is ${through}`);
    }
    for (const [lane, mark] of acknowledged) {
      const kept = news.marks.get(lane) ?? 0;
      if (kept < mark) this.#tell(`lane ${lane}: ${mark} was acknowledged, ${kept} is kept`);
    }
  }

  #judgeRecords(
    { claims, news, clockSteps }: Evidence,
    runOf: ReadonlyMap<string, Run>,
  ): ReadonlySet<number> {
    const claimOf = new Map(claims.map((claim) => [claim.id, claim]));
    const found = new Set<number>();
    for (const { lane, seq, line } of news.rows) {
      const record = parseRecord(line);
      if (record === undefined) {
        this.figures.canaries++;
        continue;
      }
      this.figures.records++;
      this.#visitorLanes.add(lane);
      const id = claimIdOf(record);
      const claim = id === undefined ? undefined : claimOf.get(id);
      const where = `lane ${lane}, ${seq}`;
      if (id !== undefined && (found.has(id) || this.#judged.has(id))) {
        this.figures.duplicated++;
        this.#tell(`${where}: the record of claim ${id} comes again`);
      } else if (claim === undefined) {
        this.#tell(`${where}: a record of no claim: ${line.slice(0, 300)}`);
      } else {
        found.add(claim.id);
        for (const difference of differences(record, claim, clockSteps))
          this.#tell(`${where}, claim ${claim.id}: ${difference}`);
        const no = runOf.get(epochOf(lane))?.no;
        if (no !== claim.run)
          this.#tell(`${where}: claim ${claim.id} of run ${claim.run} in ${no}`);
        this.#judgeConnection(claim, record.connection);
      }
    }
    return found;
  }

  /** All requests of one connection carry one number. */
  #judgeConnection({ id, run, socketNo }: Claim, connection: number): void {
    const key = `${run}/${socketNo}`;
    const known = this.#connections.get(key);
    if (known === undefined) this.#connections.set(key, connection);
    else if (known !== connection)
      this.#tell(`claim ${id}: connection ${connection}, before it was ${known}`);
  }

  #count({ run, answer }: Claim, isFound: boolean, endMs = Infinity): void {
    const { figures } = this;
    const sum = this.#sumOf(run);
    figures.claims++;
    sum.claims++;
    if (answer !== undefined) {
      figures.answered++;
      sum.answered++;
    }
    if (isFound) return;
    if (answer === undefined) {
      sum.missingUnanswered++;
      return;
    }
    figures.missing++;
    sum.missing++;
    if (answer.atMs < endMs - onDiskWithinMs) sum.missingOld++;
  }

  #countGap(
    { lane, from, to, reason }: StoredGap,
    { reasons }: Evidence,
    runOf: ReadonlyMap<string, Run>,
  ): void {
    const count = to - from + 1;
    const { told } = this.figures;
    told.set(reason, (told.get(reason) ?? 0) + count);
    const run = runOf.get(epochOf(lane));
    if (run === undefined) this.#tell(`lane ${lane}: a gap of no run, ${from} to ${to}`);
    else {
      const sum = this.#sumOf(run.no);
      sum.told += count;
      if (reason === "crash") sum.toldCrash += count;
      if (!this.#visitorLanes.has(lane)) sum.toldOfCanaries += count;
    }
    const isExplained = reason === "crash" ? run?.killedMs !== undefined : reasons.has(reason);
    if (!isExplained)
      this.#tell(`lane ${lane}: a gap that nothing explains, ${reason}, ${from} to ${to}`);
  }

  #judgeRun({ no, killedMs, isDamaged }: Run): void {
    const sum = this.#sumOf(no);
    const { missing, missingUnanswered, missingOld, told, toldCrash, toldOfCanaries } = sum;
    const excused = told - toldCrash;
    const lost = Math.max(0, missing - told, isDamaged ? 0 : missingOld - excused);
    if (lost > sum.lost) {
      this.figures.lost += lost - sum.lost;
      this.#tell(
        `run ${no}: ${missing} answered requests have no record, ${missingOld} long before its end; gaps tell of ${told}, of a crash ${toldCrash}`,
      );
    }
    sum.lost = lost;
    if (killedMs === undefined && told - toldOfCanaries > missing + missingUnanswered)
      this.#tell(`run ${no}: gaps tell of ${told}, missing are ${missing}, and nothing was killed`);
  }

  #sumOf(run: number): RunSum {
    const sum = this.#sums.get(run) ?? {
      claims: 0,
      answered: 0,
      missing: 0,
      missingUnanswered: 0,
      missingOld: 0,
      told: 0,
      toldCrash: 0,
      toldOfCanaries: 0,
      lost: 0,
    };
    this.#sums.set(run, sum);
    return sum;
  }

  #tell(text: string): void {
    if (this.figures.unexplained.length < textsMax) this.figures.unexplained.push(text);
  }
}

/**
 * By number: when each run that was killed ended. A kill may be noticed late on a machine that is very busy: whoever is dead answers nobody, so that the
 * last answer came about then.
 */
function endsOf({ claims, runs }: Evidence): ReadonlyMap<number, number> {
  const lastMs = new Map<number, number>();
  for (const { run, answer } of claims)
    if (answer !== undefined) lastMs.set(run, Math.max(answer.atMs, lastMs.get(run) ?? 0));
  const end = ({ no, killedMs = Infinity }: Run): number =>
    killedMs === Infinity ? Infinity : Math.min(killedMs, lastMs.get(no) ?? killedMs);
  return new Map(runs.map((run) => [run.no, end(run)]));
}

function epochOf(lane: string): string {
  return lane.split("/", 1)[0] ?? "";
}

export function showFigures({ told, unexplained, lost, duplicated, ...counts }: Figures): string {
  const { claims, answered, records, canaries, missing } = counts;
  const reasons = [...told].map(([reason, count]) => `${reason} ${count}`).join(", ");
  return [
    `${claims} requests, ${answered} answered, ${records} records, ${canaries} canaries;`,
    `${missing} answered ones without a record, gaps tell of: ${reasons === "" ? "none" : reasons};`,
    `lost ${lost}, duplicated ${duplicated}, unexplained ${unexplained.length}`,
  ].join(" ");
}
