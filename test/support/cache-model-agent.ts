// The agent of the model check: the real classes of index thread, workers and main, put together as their composition roots do, without threads and
// processes. What those would order by chance lies open: messages in inboxes, turns of the loop, questions to the matcher.

import { mkdirSync } from "node:fs";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { openPatternCheck } from "../../src/base/pattern-check.ts";
import { CacheMetrics } from "../../src/agent/cache/cache-metrics.ts";
import { Clearing } from "../../src/agent/cache/clearing/clearing.ts";
import { ClearOrders } from "../../src/agent/cache/clearing/clear-orders.ts";
import { DiskRoom } from "../../src/agent/cache/index/disk-room.ts";
import { IndexKeeper } from "../../src/agent/cache/index/index-keeper.ts";
import {
  Matcher,
  type MatchAnswer,
  type MatchJob,
} from "../../src/agent/cache/clearing/match-job.ts";
import type { MatchProcess } from "../../src/agent/cache/clearing/matcher-child.ts";
import type { Call, CallName, Calls, View } from "../../src/agent/cache/messages.ts";
import type { IndexFacts } from "../../src/agent/cache/index/opening.ts";
import type { Scope } from "../../src/agent/cache/entry.ts";
import { KeyPresence } from "../../src/agent/cache/index/key-presence.ts";
import { SharedHeader } from "../../src/agent/cache/index/shared-header.ts";
import { Verification } from "../../src/agent/cache/clearing/verification.ts";
import { WorkerCache } from "../../src/agent/cache/worker/worker-cache.ts";
import { WriteQueue } from "../../src/agent/cache/index/write-queue.ts";
import { FakePort, reached } from "./cache-model-time.ts";
import type { IndexClock } from "../../src/agent/cache/index/clock.ts";

const workerCount = 2;
const patterns = openPatternCheck();

export type Question = {
  readonly job: MatchJob;
  /** What the matcher read, when it did. */
  answer: MatchAnswer | undefined;
  readonly resolve: (answer: MatchAnswer) => void;
};

export type ThreadEvents = {
  readonly dropped: () => void;
  readonly opened: (opening: string) => void;
  readonly widened: (scope: Scope) => void;
  readonly unverified: (left: number) => void;
};

type ThreadOptions = {
  readonly header: SharedArrayBuffer;
  readonly keys: SharedArrayBuffer;
  readonly diskMax: number;
  readonly clock: IndexClock;
  readonly facts: IndexFacts;
  readonly events: ThreadEvents;
};

/** As index-thread.ts puts it together. */
class ModelThread {
  readonly keeper: IndexKeeper;
  readonly questions: Question[] = [];
  readonly #matcher = new Matcher();
  readonly #clearing: Clearing;
  readonly #writes: WriteQueue;

  constructor(directory: string, { header, keys, diskMax, clock, facts, events }: ThreadOptions) {
    const keeper = new IndexKeeper({
      directory,
      header: new SharedHeader(header),
      keys: new KeyPresence(keys),
      diskMax,
      clock,
      facts,
      events: {
        opened: (index, opening) => {
          events.opened(opening);
          this.#writes.onOpened(index);
        },
        dropped: () => events.dropped(),
        failed: (reason) => {
          throw new Error(`the index cannot be opened: ${reason}`);
        },
      },
    });
    this.keeper = keeper;
    const isClearing = (): boolean => false; // When there is a step is decided by chance.
    this.#writes = new WriteQueue({ keeper, clock, isClearing, onTrouble: () => undefined });
    const ask = (job: MatchJob): Promise<MatchAnswer> => {
      const { promise, resolve } = Promise.withResolvers<MatchAnswer>();
      this.questions.push({ job, answer: undefined, resolve });
      return promise;
    };
    this.#clearing = new Clearing({
      keeper,
      // Clearing calls nothing but `run`.
      matcher: { run: ask } as unknown as MatchProcess,
      verification: new Verification({
        keeper,
        match: ({ incarnation }, { domain, host, selection, isSoft, clearNo }) =>
          ask({
            kind: "older",
            directory,
            incarnation,
            scope: { domain, host },
            selection,
            olderThan: clearNo,
            isSoft,
          }),
        onUnverified: (_, left) => events.unverified(left),
      }),
      patterns,
      clock,
      directory,
      matchBudgetMs: 2_000,
      onWidened: (scope) => events.widened(scope),
    });
  }

  attach(port: FakePort): void {
    this.#writes.attach(port.port);
  }

  ask({ name, asked }: Call): Promise<unknown> {
    if (name === "clear") return this.#clearing.clear(asked).finally(() => this.#writes.schedule());
    if (name === "gone") return this.#clearing.gone(asked.clearId);
    throw new Error(`the model asks nothing of ${name}`);
  }

  read(question: Question): void {
    question.answer ??= this.#matcher.run(question.job);
  }

  answer(question: Question, answer: MatchAnswer): void {
    this.questions.splice(this.questions.indexOf(question), 1);
    question.resolve(answer);
  }

  check(directory: string): MatchAnswer {
    const incarnation = this.keeper.index?.incarnation ?? 0;
    using matcher = new Matcher(); // As the thread does: in a process of its own.
    return matcher.run({ kind: "check", directory, incarnation });
  }

  async end(isClean: boolean): Promise<void> {
    await this.keeper.close(() => Promise.resolve(isClean));
    this.#writes[Symbol.dispose]();
    this.#matcher[Symbol.dispose]();
  }
}

export type ModelWorker = {
  readonly cache: WorkerCache;
  /** Between the worker and main: carries the ports. */
  readonly control: FakePort;
  /** The worker's end of the line to the index thread. */
  line: FakePort;
  /** The index thread's end of it. */
  threadLine: FakePort;
  /** Of the view that was delivered last. */
  incarnation: number;
};

type Pending = {
  readonly call: Call;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
};

/** One process of the agent, from its start to its end. */
export class ModelAgent {
  readonly header: SharedHeader;
  readonly workers: readonly ModelWorker[];
  readonly orders: ClearOrders;
  readonly #buffer = SharedHeader.allocate();
  readonly #keys = KeyPresence.allocate();
  readonly #directory: string;
  readonly #diskMax: number;
  readonly #clock: IndexClock;
  readonly #facts: () => IndexFacts;
  readonly #events: ThreadEvents;
  readonly #pending = new Set<Pending>();
  #thread: ModelThread;

  constructor(options: {
    readonly directory: string;
    readonly diskMax: number;
    readonly clock: IndexClock;
    /** What agent.db says. */
    readonly facts: () => IndexFacts;
    readonly note: (changes: Partial<IndexFacts>) => void;
    readonly events: ThreadEvents;
  }) {
    this.#directory = options.directory;
    this.#diskMax = options.diskMax;
    this.#clock = options.clock;
    this.#facts = options.facts;
    this.#events = options.events;
    mkdirSync(options.directory, { recursive: true });
    this.header = new SharedHeader(this.#buffer);
    this.header.confirmed = true;
    this.#thread = this.#newThread();
    this.workers = Array.from({ length: workerCount }, () => this.#newWorker());
    this.orders = new ClearOrders({
      call: (name, asked) => this.#call(name, asked),
      memory: { read: options.facts, note: options.note },
      metrics: new CacheMetrics(new Registry()),
      log: silentLog(),
    });
  }

  get thread(): ModelThread {
    return this.#thread;
  }

  /** Inboxes that hold something. */
  get inboxes(): readonly FakePort[] {
    return this.workers
      .flatMap(({ line, threadLine }) => [line, threadLine])
      .filter(({ inbox }) => inbox.length > 0);
  }

  async opened(): Promise<void> {
    void this.#thread.keeper.open();
    await reached("the index is open", () => this.#thread.keeper.index !== undefined);
  }

  deliver(port: FakePort): void {
    const message = port.deliver();
    const worker = this.workers.find(({ line }) => line === port);
    if (worker === undefined || typeof message !== "object" || message === null) return;
    // Only the index thread sends to a worker's line.
    if ("view" in message) worker.incarnation = (message.view as View).incarnation;
  }

  /** The thread ends, its process and the workers go on; what it had not answered is asked of the next. */
  async replaceThread(): Promise<void> {
    const before = this.#thread;
    await before.end(false);
    this.header.incarnation = 0;
    this.#thread = this.#newThread();
    for (const worker of this.workers) this.#attach(worker);
    for (const pending of this.#pending) this.#ask(pending);
    await this.opened();
  }

  async end(isClean: boolean): Promise<void> {
    for (const { cache } of this.workers) cache[Symbol.dispose]();
    const thread = this.#thread;
    this.#pending.clear();
    await thread.end(isClean);
    this.header.incarnation = 0;
  }

  #newThread(): ModelThread {
    return new ModelThread(this.#directory, {
      header: this.#buffer,
      keys: this.#keys,
      diskMax: this.#diskMax,
      clock: this.#clock,
      facts: this.#facts(),
      events: this.#events,
    });
  }

  #newWorker(): ModelWorker {
    const control = new FakePort();
    const init = {
      directory: this.#directory,
      header: this.#buffer,
      keys: this.#keys,
      memoryMax: 20_000,
      diskMax: 2 ** 30, // Bodies always find room: what the small one is for is eviction.
      diskShare: DiskRoom.allocateShare(),
    };
    const [line, threadLine] = FakePort.pair();
    const cache = new WorkerCache(init, control.port);
    const worker = { cache, control, line, threadLine, incarnation: 0 };
    this.#attach(worker);
    return worker;
  }

  #attach(worker: ModelWorker): void {
    const [line, threadLine] = FakePort.pair();
    worker.line = line;
    worker.threadLine = threadLine;
    worker.incarnation = 0;
    this.#thread.attach(threadLine);
    worker.control.inbox.push({ kind: "message", message: { kind: "attached", port: line } });
    worker.control.deliver();
  }

  #call<N extends CallName>(name: N, asked: Calls[N]["asked"]): Promise<Calls[N]["answer"]> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    // Name and question belong together by the parameters.
    const pending = { call: { name, asked } as Call, resolve, reject };
    this.#pending.add(pending);
    this.#ask(pending);
    // The thread answers a call with what Calls names for it.
    return promise as Promise<Calls[N]["answer"]>;
  }

  #ask(pending: Pending): void {
    const thread = this.#thread;
    const settle = (end: () => void): void => {
      // Of a thread that ended nothing arrives any more.
      if (this.#thread === thread && this.#pending.delete(pending)) end();
    };
    thread.ask(pending.call).then(
      (answer) => settle(() => pending.resolve(answer)),
      (error: unknown) => settle(() => pending.reject(error)),
    );
  }
}
