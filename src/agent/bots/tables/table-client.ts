// Main's end of the table thread: it asks for tables, and starts the thread again when it has died. Meanwhile
// the old tables stay in force.

import { agentHeapMiB } from "../../../base/heap-limits.ts";
import { createMetrics, type Instruments } from "../../../base/metrics.ts";
import { Mutex } from "../../../base/mutex.ts";
import { ThreadClient, threadPeer, type ThreadEntry } from "../../../base/thread-client.ts";
import { sleep } from "../../../base/wait.ts";
import { backoffMs } from "../../../core/backoff.ts";
import { AccelError } from "../../../core/faults.ts";
import { builtTables, openArenas, type BuiltTables } from "./table-maker.ts";
import type {
  Arenas,
  FromTabler,
  PlacedTables,
  SetDelta,
  SetVersion,
  TablerInit,
  ToTabler,
} from "./table-messages.ts";

export type TablesOptions = Instruments & {
  /** The root file of the thread. */
  readonly entry: ThreadEntry;
  readonly dbPath: string;
  /** Returns all of agent.db where the thread cannot open it; undefined where it can. */
  readonly image?: () => Uint8Array | undefined;
  readonly random: () => number;
  readonly stop: AbortSignal;
  readonly buildWaitMs?: number;
};

export const tableMetrics = {
  accel_agent_set_builds_total: {
    kind: "counter",
    help: "How often changed bot sets were compiled.",
    labels: ["outcome"],
  },
  accel_agent_set_build_seconds: {
    kind: "histogram",
    help: "How long compiling changed bot sets took.",
  },
} as const;

/** The time that a build may take; a million elements take three seconds to be read and compiled. */
const buildWaitMsDefault = 120_000;
const triesMax = 3;
/** The time without a build after which it ends, and its memory with it. */
const idleMs = 30_000;
/**
 * The most elements that the thread does not stay for. Read anew they take a tenth of a second; of more, the thread holds what they were compiled to, so that a change is
 * in force as soon.
 */
const idleElementsMax = 20_000;
const wasIdle = "was idle";
const restartBackoff = { firstMs: 200, mostMs: 5_000 };

export class TableClient implements AsyncDisposable {
  readonly #options: TablesOptions;
  readonly #arenas: Arenas = openArenas();
  readonly #metrics;
  readonly #building = new Mutex();
  readonly #ended = new AbortController();
  readonly #thread: ThreadClient<ToTabler, FromTabler, FromTabler>;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: TablesOptions) {
    this.#options = options;
    this.#metrics = createMetrics(tableMetrics, options.registry);
    const { entry, dbPath, log } = options;
    this.#thread = new ThreadClient({
      start: threadPeer(entry, {
        name: "tabler",
        workerData: { dbPath, arenas: this.#arenas } satisfies TablerInit,
        heapMiB: agentHeapMiB.tabler,
      }),
      restart: "when asked",
      onMessage: (answer) => this.#thread.answer(answer.id, answer),
      onGone: ({ reason }) => {
        if (reason !== wasIdle) log.error({ reason }, "the table thread ended");
      },
    });
  }

  get isRunning(): boolean {
    return this.#thread.isRunning;
  }

  /**
   * Tells the thread of a change that was committed, so that the next build applies it instead of reading
   * agent.db. The thread starts with a build: before that, nothing has been read.
   */
  note(delta: SetDelta): void {
    this.#thread.tell({ kind: "delta", delta });
  }

  /**
   * Builds the tables of these sets, each at the stated version or newer. They lie in the arena that is not
   * in force, which nobody may be reading, or in the one in force if nothing has to be written. Throws
   * SETS_NOT_COMPILED after some tries.
   */
  async build(sets: readonly SetVersion[], inForce: 0 | 1): Promise<BuiltTables> {
    return this.#building.run(async () => {
      // A host without sets has no thread for them.
      if (sets.length === 0 && !this.#thread.isRunning)
        return this.#built({ arena: inForce, sets: [] });
      clearTimeout(this.#idle);
      for (let failures = 0; ; failures++) {
        const placed = await this.#try(sets, inForce);
        if (typeof placed !== "string") {
          this.#endWhenIdle(placed);
          return this.#built(placed);
        }
        this.#tellFailure(placed);
        const stop = AbortSignal.any([this.#options.stop, this.#ended.signal]);
        const waitMs = backoffMs(failures, this.#options.random(), restartBackoff);
        if (failures + 1 >= triesMax || !(await sleep(waitMs, stop)))
          throw new AccelError("SETS_NOT_COMPILED", placed);
      }
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    clearTimeout(this.#idle);
    await this.#thread.close();
  }

  #endWhenIdle({ sets }: PlacedTables): void {
    const elements = sets.reduce((sum, { count }) => sum + count, 0);
    if (elements > idleElementsMax) return;
    const end = (): void => void this.#thread.end(wasIdle);
    this.#idle = setTimeout(end, idleMs).unref();
  }

  /** Returns the tables, or as text why there are none. */
  async #try(sets: readonly SetVersion[], inForce: 0 | 1): Promise<PlacedTables | string> {
    const began = performance.now();
    const deadlineMs = this.#options.buildWaitMs ?? buildWaitMsDefault;
    const image = this.#options.image?.();
    const asked = await this.#thread.ask((id) => ({ kind: "build", id, sets, inForce, image }), {
      deadlineMs,
    });
    if (asked.kind === "late") await this.#thread.end("did not answer in time");
    this.#metrics.accel_agent_set_build_seconds.observe((performance.now() - began) / 1_000);
    if (asked.kind === "late") return "the table thread did not answer in time";
    if (asked.kind === "gone") return `the table thread ${asked.reason}`;
    return asked.answer.kind === "failed" ? asked.answer.reason : asked.answer.tables;
  }

  #built(placed: PlacedTables): BuiltTables {
    this.#metrics.accel_agent_set_builds_total.inc({ outcome: "built" });
    this.#options.health.settle("sets_not_compiled");
    return builtTables(placed, this.#arenas);
  }

  #tellFailure(reason: string): void {
    const { log, health } = this.#options;
    this.#metrics.accel_agent_set_builds_total.inc({ outcome: "failed" });
    if (this.#ended.signal.aborted) return;
    log.error({ reason }, "bot sets could not be compiled; the previous ones stay in force");
    health.raise(
      "sets_not_compiled",
      "error",
      `changed bot sets are not in force: ${reason}`,
      "See the agent's log, and check memory and disk of the host.",
    );
  }
}
