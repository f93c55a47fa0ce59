// The spool without its thread, step by step: a worker that numbers, a disk in memory, a strict central, and a judge over all of them.

import { expect } from "vitest";
import { LaneWords } from "../../src/agent/requests/lane-words.ts";
import { Spool, type Feed } from "../../src/agent/requests/spool.ts";
import { totalDropped } from "../../src/agent/requests/gaps.ts";
import { planAfter } from "../../src/agent/requests/ship-plan.ts";
import type { LaneFacts, SpoolNotice } from "../../src/agent/requests/spool-messages.ts";
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
  #buffered: number[] = [];
  /** By number, from 1; 0 where none stands for it. */
  readonly #ids: number[] = [];

  constructor(rig: SpoolRig) {
    this.#rig = rig;
    this.feed = rig.spool.open(this.words);
  }

  /** How many of them got a number. */
  accept(count: number): number {
    const most = Math.max(0, Math.min(count, this.words.reserved - this.#next + 1));
    for (let i = 0; i < most; i++) {
      const id = this.#rig.newId();
      this.#buffered.push(id);
      this.#ids.push(id);
      this.#rig.place(id, this.feed, this.#next++);
    }
    this.words.accepted = this.#next - 1;
    return most;
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
    this.words.accepted = this.#next - 1;
  }
}

export class SpoolRig {
  readonly files = new MemoryFiles();
  readonly central = new LogCentral();
  readonly notices: SpoolNotice[] = [];
  readonly directory = "/state/spool";
  nowMs = 1_000;
  spool: Spool;
  workers: RigWorker[] = [];
  /** Those that ended, too. */
  readonly #everyWorker: RigWorker[] = [];
  /** Where each record that was given a number stands. */
  readonly placed = new Map<number, { lane: string; seq: number }>();
  readonly #bytesMax: number;
  #epoch = 0;

  constructor(bytesMax = 2 ** 30) {
    this.#bytesMax = bytesMax;
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

  /** Accepted, handed over and synced. */
  write(worker: RigWorker, count: number): void {
    worker.accept(count);
    worker.handOver();
    this.spool.sync();
  }

  /** The process is gone, and with it what was in memory; another one starts. */
  crash(disk: "kill" | { powerLossKeeps: number }): void {
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

  /** Every record that got a number is at central as it was, once, or in a gap there; nothing else is. */
  judge(): void {
    for (const [id, { lane, seq }] of this.placed) {
      const { records, gaps } = this.central.lane(lane);
      const record = records.get(seq);
      const isTold = gaps.some(({ from, to }) => from <= seq && seq <= to);
      if (record === undefined) expect({ id, lane, seq, isTold }).toMatchObject({ isTold: true });
      else expect(record).toEqual(requestRecord(id));
    }
    const ids = this.central.records().map(({ connection }) => connection);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => this.placed.has(id))).toBe(true);
  }

  /** Records that the spool had said are durable and that are not at central as records: for these reasons. */
  lostAfterAll(): readonly string[] {
    return this.#everyWorker
      .flatMap((worker) => worker.acknowledged())
      .flatMap((id) => {
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
      files: this.files,
      directory: this.directory,
      bytesMax: this.#bytesMax,
      bootEpoch,
      clock: { wallMs: () => 1_700_000_000_000 + this.nowMs, monotonicMs: () => this.nowMs },
      notice: (notice) => this.notices.push(notice),
    });
  }
}
