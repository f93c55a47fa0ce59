// One judging thread seen from the main thread: started when it is asked, one question at a time, ended when it has been idle for a while.
//
// A question has a deadline from the moment it is its turn. A thread that dies (out of memory, a defect) is started again once, for the question it died of
// may have been innocent; the second time the question is answered as one that cannot be judged.

import { Worker } from "node:worker_threads";
import { heapLimits } from "../../base/heap-limits.ts";
import type { Log } from "../../base/log.ts";
import { Mutex } from "../../base/mutex.ts";
import { messageOf } from "../../core/faults.ts";
import type { Question, Verdicts } from "./judge-messages.ts";

export type JudgeWorkerOptions = {
  readonly entry: URL;
  /** What it judges, for the log. */
  readonly what: string;
  /** Of the old part of its heap. */
  readonly heapMiB: number;
  readonly deadlineMs: number;
  readonly idleMs: number;
  /** Questions that may wait behind the one that is judged. */
  readonly waitingMax: number;
  readonly log: Log;
  /** Ends what is judged, at once. */
  readonly stop: AbortSignal;
};

/** `isLasting`: asked again it would come to the same. */
export type Unjudged = {
  readonly kind: "unjudged";
  readonly reason: string;
  readonly isLasting: boolean;
};

type Outcome<V> =
  | { readonly kind: "judged"; readonly verdict: V }
  | { readonly kind: "died" | "late"; readonly reason: string }
  | { readonly kind: "stopping" };

const stopping = {
  kind: "unjudged",
  reason: "central is stopping",
  isLasting: false,
} as const satisfies Unjudged;

export class JudgeWorker implements AsyncDisposable {
  readonly #options: JudgeWorkerOptions;
  readonly #turns = new Mutex();
  readonly #own = new AbortController();
  readonly #ending: AbortSignal;
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #waiting = 0;

  constructor(options: JudgeWorkerOptions) {
    this.#options = options;
    this.#ending = AbortSignal.any([options.stop, this.#own.signal]);
  }

  /**
   * `ask` makes the question, anew for a second try: bytes that were handed over are gone. Throws what it throws.
   */
  async judge<Op extends Question["op"]>(
    ask: () => Promise<Extract<Question, { readonly op: Op }>>,
  ): Promise<{ readonly kind: "judged"; readonly verdict: Verdicts[Op] } | Unjudged> {
    if (this.#waiting > this.#options.waitingMax)
      return { kind: "unjudged", reason: "too much waits to be judged", isLasting: false };
    this.#waiting++;
    try {
      return await this.#turns.run(async () => this.#judge<Op>(ask));
    } finally {
      this.#waiting--;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#own.abort();
    await this.#end();
  }

  async #judge<Op extends Question["op"]>(
    ask: () => Promise<Extract<Question, { readonly op: Op }>>,
  ): Promise<{ readonly kind: "judged"; readonly verdict: Verdicts[Op] } | Unjudged> {
    const { what, log } = this.#options;
    clearTimeout(this.#idle);
    try {
      for (let tries = 1; ; tries++) {
        if (this.#ending.aborted) return stopping;
        const outcome = await this.#once<Verdicts[Op]>(await ask());
        if (outcome.kind === "judged") return outcome;
        if (outcome.kind === "stopping") return stopping;
        const { kind, reason } = outcome;
        log.error({ what, reason, tries }, "a judging thread ended");
        if (kind === "late" || tries === 2) return { kind: "unjudged", reason, isLasting: true };
      }
    } finally {
      this.#idle = setTimeout(() => void this.#end(), this.#options.idleMs);
      this.#idle.unref();
    }
  }

  async #once<V>(question: Question): Promise<Outcome<V>> {
    const { what, deadlineMs } = this.#options;
    const worker = (this.#worker ??= this.#start());
    const { promise, resolve } = Promise.withResolvers<Outcome<V>>();
    let failure: unknown;
    const answered = (verdict: V): void => resolve({ kind: "judged", verdict });
    const failed = (error: unknown): void => void (failure = error);
    const ended = (): void => {
      const why = failure === undefined ? "its thread ended" : messageOf(failure);
      resolve({ kind: "died", reason: `${what} could not be judged: ${why}` });
    };
    const stopped = (): void => resolve({ kind: "stopping" });
    const late = setTimeout(() => {
      const reason = `judging ${what} took longer than ${deadlineMs / 1_000} s`;
      resolve({ kind: "late", reason });
    }, deadlineMs);
    worker.on("message", answered).on("error", failed).on("exit", ended);
    this.#ending.addEventListener("abort", stopped);
    try {
      worker.postMessage(question, "bytes" in question ? [bufferOf(question.bytes)] : []);
      const outcome = await promise;
      if (outcome.kind !== "judged") await this.#end();
      return outcome;
    } finally {
      clearTimeout(late);
      this.#ending.removeEventListener("abort", stopped);
      worker.off("message", answered).off("error", failed).off("exit", ended);
    }
  }

  #start(): Worker {
    const worker = new Worker(this.#options.entry, {
      resourceLimits: heapLimits(this.#options.heapMiB),
    });
    // While nobody asks, a thread that fails is only gone.
    worker.on("error", () => undefined);
    worker.once("exit", () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    worker.unref();
    return worker;
  }

  /** A JavaScript thread is ended wherever it is. */
  async #end(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }
}

/** Handed over, not copied. */
function bufferOf({ buffer, byteLength }: Uint8Array): ArrayBuffer {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) return buffer;
  throw new TypeError("the bytes of a question have a buffer of their own");
}
