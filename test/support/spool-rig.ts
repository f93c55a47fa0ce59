// The spool without its thread, step by step: a worker that numbers, a disk in memory, a strict central, and a judge over all of them.

import { expect } from "vitest";
import { windowAtRest } from "../../src/agent/requests/spool/lane-window.ts";
import { LaneWords } from "../../src/agent/requests/worker/lane-words.ts";
import type { ShelfOptions } from "../../src/agent/requests/spool/lane-shelf.ts";
import { Spool, type Feed } from "../../src/agent/requests/spool/spool.ts";
import { totalDropped } from "../../src/agent/requests/spool/gaps.ts";
import { planAfter } from "../../src/agent/requests/ship/ship-plan.ts";
import type { SpoolFiles } from "../../src/agent/requests/spool/spool-files.ts";
import type {
  CrashLoss,
  LaneFacts,
  SpoolNotice,
} from "../../src/agent/requests/spool/spool-messages.ts";
import { batchBytesMax, batchRecordsMax } from "../../src/wire/request-log.ts";
import { LogCentral } from "./log-central.ts";
import { MemoryFiles } from "./memory-files.ts";
import { requestRecord } from "./request-records.ts";

const text = new TextEncoder();

/** Numbers as a lane writer does, without its clock. */
export class RigWorker {
  readonly words = new LaneWords(LaneWords.allocate());
  readonly feed: Feed;
  readonly #rig: SpoolRig;
  #next = 1;
  #isResting = true;
  #buffered: number[] = [];
  /** By number, from 1; 0 where none stands for it. */
  readonly #ids: number[] = [];

  constructor(rig: SpoolRig) {
    this.#rig = rig;
    this.feed = rig.spool.open(this.words);
  }

  /** How many of them got a number. */
  accept(count: number): number {
    this.wake();
    const most = Math.max(0, Math.min(count, this.words.reserved - this.#next + 1));
    for (let i = 0; i < most; i++) {
      const id = this.#rig.newId();
      this.#buffered.push(id);
      this.#ids.push(id);
      this.#rig.place(id, this.feed, this.#next++);
    }
    this.words.accepted = this.words.seen = this.#next - 1;
    return most;
  }

  /** Something comes: more is reserved. */
  wake(): void {
    if (this.#isResting) this.#rig.spool.receive(this.feed, { type: "wake" });
    this.#isResting = false;
  }

  handOver(): void {
    const ids = this.#buffered;
    if (ids.length === 0) return;
    this.#buffered = [];
    const firstSeq = this.#next - ids.length;
    ids.forEach((id, at) => this.#rig.place(id, this.feed, firstSeq + at));
    const lines = ids.map((id) => `${JSON.stringify(requestRecord(id))}\n`);
    const payload = text.encode(lines.join(""));
    this.#rig.spool.receive(this.feed, { type: "group", firstSeq, count: ids.length, payload });
  }

  /** Records that the spool said are durable. */
  acknowledged(): readonly number[] {
    return this.#ids.slice(0, this.words.durable).filter((id) => id > 0);
  }

  /** Nothing came for a while: gives back what is reserved. */
  rest(): void {
    this.handOver();
    const through = this.#next - 1 + (this.#next === 1 ? 0 : windowAtRest);
    if (this.words.reserved <= through) return;
    this.#isResting = true;
    this.#rig.spool.receive(this.feed, { type: "quiet", through, rests: true });
  }

  /** Less comes than before: gives back what is reserved beyond the next `kept` numbers. */
  giveBack(kept: number): void {
    this.handOver();
    const through = this.#next - 1 + kept;
    this.#rig.spool.receive(this.feed, { type: "quiet", through, rests: false });
  }

  /** Dropped before they were queued. */
  drop(count: number): void {
    this.handOver();
    this.#rig.spool.receive(this.feed, {
      type: "gap",
      firstSeq: this.#next,
      count,
      reason: "behind",
    });
    this.#ids.push(...Array.from({ length: count }, () => 0));
    this.#next += count;
    this.words.accepted = this.words.seen = this.#next - 1;
  }
}

export type Placed = { readonly lane: string; readonly seq: number };

/** What a rig begins with. */
export type RigOrigin = {
  readonly files: MemoryFiles;
  readonly central: LogCentral;
  readonly placed: ReadonlyMap<number, Placed>;
  /** Of the process before. */
  readonly epoch: number;
  readonly wrap: (files: MemoryFiles, rig: SpoolRig) => SpoolFiles;
};

export type RigPolicy = Pick<ShelfOptions, "bytesMax" | "whenFull" | "durability" | "name16">;

export class SpoolRig {
  readonly files: MemoryFiles;
  readonly central: LogCentral;
  readonly notices: SpoolNotice[] = [];
  readonly losses: CrashLoss[] = [];
  readonly directory = "/state/spool";
  nowMs = 1_000;
  spool: Spool;
  workers: RigWorker[] = [];
  /** Those that ended, too. */
  readonly #everyWorker: RigWorker[] = [];
  /** Where each record that was given a number stands. */
  readonly placed: Map<number, Placed>;
  readonly #policy: RigPolicy;
  /** What the spool gets for the disk. */
  readonly #wrapped: SpoolFiles;
  #epoch: number;

  constructor(bytesMax = 2 ** 30, policy: Partial<RigPolicy> = {}, from: Partial<RigOrigin> = {}) {
    this.files = from.files ?? new MemoryFiles();
    this.central = from.central ?? new LogCentral();
    this.placed = new Map(from.placed);
    this.#epoch = from.epoch ?? 0;
    this.#wrapped = from.wrap?.(this.files, this) ?? this.files;
    this.#policy = {
      bytesMax,
      whenFull: "drop_oldest",
      durability: "group",
      name16: "00000000000000aa",
      ...policy,
    };
    this.spool = this.#start();
  }

  newId(): number {
    return this.placed.size + 1;
  }

  place(id: number, feed: Feed, number: number): void {
    this.placed.set(id, { lane: feed.lane.id, seq: number - feed.lane.base });
  }

  worker(): RigWorker {
    const worker = new RigWorker(this);
    this.workers.push(worker);
    this.#everyWorker.push(worker);
    return worker;
  }

  /** Accepted, handed over and synced; in pieces where so many are not reserved at once. Returns for how many there was room. */
  write(worker: RigWorker, count: number): number {
    let left = count;
    for (let tries = 0; left > 0 && tries < 2; tries++) {
      const accepted = worker.accept(left);
      worker.handOver();
      this.spool.sync();
      left -= accepted;
      if (accepted > 0) tries = 0;
    }
    return count - left;
  }

  /** The process is gone, and with it what was in memory; another one starts, maybe with other settings. */
  crash(disk: "kill" | { powerLossKeeps: number }, policy: Partial<RigPolicy> = {}): void {
    Object.assign(this.#policy, policy);
    if (disk === "kill") this.files.kill();
    else this.files.powerLoss(disk.powerLossKeeps);
    this.workers = [];
    this.spool = this.#start();
  }

  /** Workers and spool end orderly; another process starts. `meanwhile` is called before the old one is gone. */
  restart(meanwhile: () => void = () => undefined): void {
    for (const worker of this.workers) {
      worker.handOver();
      this.spool.end(worker.feed);
    }
    this.spool.close();
    meanwhile();
    this.files.kill();
    this.workers = [];
    this.spool = this.#start();
  }

  lanes(): readonly LaneFacts[] {
    return this.spool.facts().lanes;
  }

  /** One batch of one lane; `answer` false: central commits and the answer is lost. */
  ship(lane: string, { recordsMax = batchRecordsMax, answered = true } = {}): boolean {
    const batch = this.spool.read(lane, { recordsMax, bytesMax: batchBytesMax });
    if (batch === undefined) return false;
    const answer = this.central.take(lane, batch.firstSeq, batch.lastSeq, batch.body);
    if (!answered) return true;
    const step = planAfter(batch, answer);
    switch (step.kind) {
      case "committed":
      case "conflict":
        this.spool.confirm(lane, step.mark);
        return true;
      case "halve":
        return this.ship(lane, { recordsMax: Math.floor(batch.lines / 2) });
      case "poison":
        this.spool.poison(lane, batch.firstSeq, step.why);
        return true;
      case "recode":
      case "wait":
        throw new Error(`central: ${step.why}`);
      default:
        return step satisfies never;
    }
  }

  /** Until central has everything that can be sent. */
  drain(): void {
    for (let left = 10_000; left > 0; left--) {
      this.spool.persist();
      const waiting = this.lanes().filter(({ mark, durable }) => mark < durable);
      if (waiting.length === 0) return;
      for (const { lane } of waiting) this.ship(lane);
    }
    throw new Error("the spool does not drain");
  }

  /** Until nothing more can be sent, on a disk that takes no marks. */
  drainUnwritten(): void {
    for (const { lane } of this.lanes()) while (this.ship(lane)) this.spool.tick();
  }

  /** Every record that got a number is at central as it was, once, or in a gap there; nothing else is. */
  judge(): void {
    for (const [id, { lane, seq }] of this.placed) {
      const { records, gaps } = this.central.lane(lane);
      const record = records.get(seq);
      const isTold = gaps.some(({ from, to }) => from <= seq && seq <= to);
      if (record === undefined) {
        if (!isTold) expect({ id, lane, seq }).toBe("told as a gap");
      } else if (JSON.stringify(record) !== JSON.stringify(requestRecord(id)))
        expect(record).toEqual(requestRecord(id));
    }
    const ids = this.central.records().map(({ connection }) => connection);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => this.placed.has(id))).toBe(true);
  }

  /** Records that the spool has said are durable. */
  acknowledged(): readonly number[] {
    return this.#everyWorker.flatMap((worker) => worker.acknowledged());
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Records that the spool had said are durable and that are not at central as records: for these reasons. */
  lostAfterAll(acknowledged = this.acknowledged()): readonly string[] {
    return acknowledged.flatMap((id) => {
      const { lane, seq } = this.placed.get(id) ?? { lane: "", seq: 0 };
      const { gaps } = this.central.lane(lane);
      return gaps.filter(({ from, to }) => from <= seq && seq <= to).map(({ reason }) => reason);
    });
  }

  /** The balance holds, in sum and in each lane. */
  balanced(): void {
    const { balance, lanes } = this.spool.facts();
    for (const each of [balance, ...lanes.map((lane) => lane.balance)]) {
      const { accepted, committed, spooled, inMemory, dropped } = each;
      expect(committed + spooled + inMemory + totalDropped(dropped)).toBe(accepted);
      expect(Math.min(committed, spooled, inMemory)).toBeGreaterThanOrEqual(0);
    }
  }

  #start(): Spool {
    const bootEpoch = (++this.#epoch).toString(16).padStart(16, "0");
    return new Spool({
      files: this.#wrapped,
      directory: this.directory,
      ...this.#policy,
      bootEpoch,
      clock: { wallMs: () => 1_700_000_000_000 + this.nowMs, monotonicMs: () => this.nowMs },
      notice: (notice) => this.notices.push(notice),
      crashed: (loss) => this.losses.push(loss),
    });
  }
}
