// Order where it matters, concurrency where it does not: entries of one lane run one after another, lanes run side by side, so that a clear or a mark never waits behind a download.
//
// The one order across lanes: nothing overtakes an earlier `domains.changed`, since what an entry concerns depends on what is linked. Jobs are added in the order of the journal.

import { sleep } from "../../base/wait.ts";
import { domainsLane } from "../../wire/journal.ts";

export type JobSignals = {
  /** Leave without a result: stopped, or a snapshot takes the place of everything. */
  readonly stop: AbortSignal;
  /** A later entry of this lane carries the state in place of this one; its seq is the reason. */
  readonly superseded: AbortSignal;
};

export type Job = {
  readonly seq: number;
  readonly kind: string;
  readonly lane: string;
  /** A later job of the same kind in the lane makes this one needless. */
  readonly isState: boolean;
  /** Must not reject and must end soon after `stop`. */
  readonly run: (signals: JobSignals) => Promise<void>;
};

export type Unfinished = { readonly seq: number; readonly kind: string; readonly since: Date };

type Pending = {
  readonly job: Job;
  readonly superseded: AbortController;
  readonly since: Date;
};

/** `still-running`: something did not end in the time that it had. */
export type Abandoned = "ended" | "still-running";

export class Lanes {
  readonly #pending = new Set<Pending>();
  readonly #tails = new Map<string, Promise<void>>();
  readonly #stop = new AbortController();
  readonly #settled: () => void;
  readonly #now: () => Date;
  #domains: Promise<void> = Promise.resolve();

  /** `settled` is told after each job that was not abandoned. */
  constructor(settled: () => void, now: () => Date) {
    this.#settled = settled;
    this.#now = now;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** The first in the journal, whether it runs or waits. `since`: when it was added. */
  oldest(): Unfinished | undefined {
    const [oldest] = this.#pending; // They are added in the order of the journal.
    return oldest && { seq: oldest.job.seq, kind: oldest.job.kind, since: oldest.since };
  }

  add(job: Job): void {
    for (const { job: older, superseded } of this.#pending) {
      if (older.lane === job.lane && older.kind === job.kind && older.isState)
        superseded.abort(job.seq);
    }
    const pending: Pending = {
      job,
      superseded: new AbortController(),
      since: this.#now(),
    };
    this.#pending.add(pending);
    const before = this.#tails.get(job.lane) ?? Promise.resolve();
    const ended = this.#run(pending, job.lane === domainsLane ? [before] : [before, this.#domains]);
    this.#tails.set(job.lane, ended);
    if (job.lane === domainsLane) this.#domains = ended;
  }

  async #run(pending: Pending, before: readonly Promise<void>[]): Promise<void> {
    await Promise.all(before);
    const { job, superseded } = pending;
    const stop = this.#stop.signal;
    if (!stop.aborted) await job.run({ stop, superseded: superseded.signal });
    this.#pending.delete(pending);
    if (![...this.#pending].some(({ job: { lane } }) => lane === job.lane))
      this.#tails.delete(job.lane);
    if (!stop.aborted) this.#settled();
  }

  /**
   * Whether something up to `seq` is still to be done that decides what may be served. An import is not: it reads the host's files and changes nothing here.
   */
  holdsBack(seq: number): boolean {
    return [...this.#pending].some(({ job }) => job.seq <= seq && job.kind !== "viewset.import");
  }

  /** Begins nothing new and tells what runs to stop. */
  async abandon(waitMs: number): Promise<Abandoned> {
    this.#stop.abort();
    const deadline = new AbortController();
    const ended = Promise.all(this.#tails.values()).then((): Abandoned => "ended");
    const late = sleep(waitMs, deadline.signal).then((): Abandoned => "still-running");
    const abandoned = await Promise.race([ended, late]);
    deadline.abort();
    return abandoned;
  }
}
