// Order where it matters, concurrency where it does not: entries of one lane run one after another, lanes run
// side by side, so that a clear or a mark never waits behind a download.
//
// One order holds across lanes: nothing overtakes an earlier `domains.changed`, since what an entry concerns
// depends on what is linked. Jobs are added in the order of the journal.

import { sleep } from "../../base/wait.ts";
import { domainsLane } from "../../wire/journal.ts";

export type JobSignals = {
  /**
   * Tells the job to leave without a result: the agent stops, or a snapshot takes the place of everything.
   */
  readonly stop: AbortSignal;
  /** Aborts when a later entry of this lane carries the state in place of this one; the reason is its seq. */
  readonly superseded: AbortSignal;
};

export type Job = {
  readonly seq: number;
  readonly kind: string;
  readonly lane: string;
  /** The kinds of which a later job in the lane makes this one needless. */
  readonly endedBy: readonly string[];
  /** Does the work. It must not reject and must end soon after `stop`. */
  readonly run: (signals: JobSignals) => Promise<void>;
};

export type Unfinished = { readonly seq: number; readonly kind: string; readonly since: Date };

/** The kinds whose entries change nothing of what is served. */
const changesNothing = ["viewset.import", "viewset.prepare", "viewset.withdrawn"];

type Pending = {
  readonly job: Job;
  readonly superseded: AbortController;
  readonly since: Date;
};

/** `still-running`: a job did not end in its time. */
export type Abandoned = "ended" | "still-running";

export class Lanes {
  readonly #pending = new Set<Pending>();
  readonly #tails = new Map<string, Promise<void>>();
  readonly #stop = new AbortController();
  readonly #settled: () => void;
  readonly #now: () => Date;
  #domains: Promise<void> = Promise.resolve();

  /** `settled` is called after each job that was not abandoned. */
  constructor(settled: () => void, now: () => Date) {
    this.#settled = settled;
    this.#now = now;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Returns the job that is first in the journal, whether it runs or waits. `since` is when it was added. */
  oldest(): Unfinished | undefined {
    const [oldest] = this.#pending; // Jobs are added in the order of the journal.
    return oldest && { seq: oldest.job.seq, kind: oldest.job.kind, since: oldest.since };
  }

  add(job: Job): void {
    for (const { job: older, superseded } of this.#pending) {
      if (older.lane === job.lane && older.endedBy.includes(job.kind)) superseded.abort(job.seq);
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
   * Whether a job up to `seq` that decides what may be served is still to be done. An import reads the host's files,
   * and what is prepared is not in force: neither decides that. `but`: the numbers of others that do not.
   */
  holdsBack(seq: number, but: ReadonlySet<number> = new Set()): boolean {
    return [...this.#pending].some(
      ({ job }) => job.seq <= seq && !changesNothing.includes(job.kind) && !but.has(job.seq),
    );
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
