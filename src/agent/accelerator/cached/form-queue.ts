// A short queue of forms to be made in the background, one at a time in the whole process: while a job waits it holds no bytes, and a job that is offered again
// is not taken twice.

import type { SharedTurn } from "../pool/shared-words.ts";

export type FormQueueOptions<Job> = {
  readonly turn: SharedTurn;
  /** The worker's number. */
  readonly no: number;
  /** Does a job when its turn has come. Must not reject. */
  readonly run: (job: Job, name: string) => Promise<void>;
};

/** The most jobs that wait. Beyond that, a later visitor asks for the form again. */
const waitingMax = 64;
/** The other workers' turn is looked at again even if nobody says that it ended, ms. */
const turnWaitMs = 250;

/** Disposing drops what waits and resolves when nothing is being made. */
export class FormQueue<Job> implements AsyncDisposable {
  readonly #options: FormQueueOptions<Job>;
  readonly #waiting = new Map<string, Job>();
  #making = "";
  #running: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: FormQueueOptions<Job>) {
    this.#options = options;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Returns whether the job waits, or is being done. */
  has(name: string): boolean {
    return this.#waiting.has(name) || this.#making === name;
  }

  get isFull(): boolean {
    return this.#waiting.size >= waitingMax;
  }

  /** To be called where it is neither stopped nor full. Never throws, never blocks. */
  add(name: string, job: Job): void {
    this.#waiting.set(name, job);
    this.#running ??= this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#waiting.clear();
    await this.#running;
  }

  /** Runs the jobs. Never rejects. */
  async #run(): Promise<void> {
    await Promise.resolve(); // So that `#running` is set before it may be unset.
    for (;;) {
      const next = this.#waiting.entries().next();
      if (next.done === true) break;
      const [name, job] = next.value;
      this.#waiting.delete(name);
      this.#making = name;
      await this.#takeTurn(name, job);
      this.#making = "";
    }
    this.#running = undefined;
  }

  async #takeTurn(name: string, job: Job): Promise<void> {
    const { turn, no, run } = this.#options;
    while (!turn.start(no)) {
      if (this.#isStopped) return;
      await turn.ended(turnWaitMs);
    }
    try {
      await run(job, name);
    } finally {
      turn.end(no);
    }
  }
}
