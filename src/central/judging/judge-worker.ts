// One judging thread as the main thread sees it: started when it is asked, one question at a time, ended when
// it has been idle for a while.
//
// A question has a deadline from the moment it is its turn. A thread that dies (out of memory, a defect) is
// started again once, because the question it died of may have been innocent. The second time, the question
// is answered as one that cannot be judged.

import { Ending } from "../../base/ending.ts";
import type { Log } from "../../base/log.ts";
import { Mutex } from "../../base/mutex.ts";
import { ThreadClient, threadPeer } from "../../base/thread-client.ts";
import { messageOf } from "../../core/faults.ts";
import type { Question, Verdicts } from "./judge-messages.ts";

export type JudgeWorkerOptions = {
  readonly entry: URL;
  /** What the thread judges, for the log. */
  readonly what: string;
  /** The limit of the old part of its heap. */
  readonly heapMiB: number;
  readonly deadlineMs: number;
  readonly idleMs: number;
  /** The most questions that may wait behind the one that is being judged. */
  readonly waitingMax: number;
  readonly log: Log;
  /** Ends what is being judged, at once. */
  readonly stop: AbortSignal;
};

/** `isLasting` means that asking again would lead to the same. */
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
  readonly #stopping = new Ending<"stopping">();
  readonly #thread: ThreadClient<Question, Verdicts[Question["op"]], Verdicts[Question["op"]]>;
  #idle: NodeJS.Timeout | undefined;
  #waiting = 0;

  constructor(options: JudgeWorkerOptions) {
    this.#options = options;
    const { entry, heapMiB, stop } = options;
    this.#thread = new ThreadClient({
      start: threadPeer(entry, { name: "judge", heapMiB, isUnref: true }),
      restart: "when asked",
      onMessage: (verdict) => this.#thread.answerOnly(verdict),
    });
    if (stop.aborted) this.#stopping.end("stopping");
    else stop.addEventListener("abort", () => this.#stopping.end("stopping"), { once: true });
  }

  /**
   * Judges a question. `ask` makes the question, and makes it anew for a second try, because bytes that were
   * handed over are gone. Throws what `ask` throws.
   */
  async judge<Op extends Question["op"]>(
    ask: () => Promise<Extract<Question, { readonly op: Op }>>,
  ): Promise<{ readonly kind: "judged"; readonly verdict: Verdicts[Op] } | Unjudged> {
    if (this.#waiting > this.#options.waitingMax)
      return { kind: "unjudged", reason: "too much is waiting to be judged", isLasting: false };
    this.#waiting++;
    try {
      return await this.#turns.run(async () => this.#judge<Op>(ask));
    } finally {
      this.#waiting--;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.end("stopping");
    clearTimeout(this.#idle);
    await this.#thread.close();
  }

  async #judge<Op extends Question["op"]>(
    ask: () => Promise<Extract<Question, { readonly op: Op }>>,
  ): Promise<{ readonly kind: "judged"; readonly verdict: Verdicts[Op] } | Unjudged> {
    const { what, log } = this.#options;
    clearTimeout(this.#idle);
    try {
      for (let tries = 1; ; tries++) {
        if (this.#stopping.isOver) return stopping;
        const outcome = await this.#once<Verdicts[Op]>(await ask());
        if (outcome.kind === "judged") return outcome;
        if (outcome.kind === "stopping") return stopping;
        const { kind, reason } = outcome;
        log.error({ what, reason, tries }, "a judging thread ended");
        if (kind === "late" || tries === 2) return { kind: "unjudged", reason, isLasting: true };
      }
    } finally {
      this.#idle = setTimeout(() => void this.#thread.end("was idle"), this.#options.idleMs);
      this.#idle.unref();
    }
  }

  async #once<V>(question: Question): Promise<Outcome<V>> {
    const { what, deadlineMs } = this.#options;
    const transfer = "bytes" in question ? [bufferOf(question.bytes)] : [];
    const asked = await this.#stopping.or(
      this.#thread.ask(() => question, { deadlineMs, transfer }),
    );
    // The thread answers each question with its own verdict.
    if (asked !== "stopping" && asked.kind === "answered")
      return { kind: "judged", verdict: asked.answer as V };
    // A JavaScript thread can be ended wherever it is.
    await this.#thread.end("was not waited for");
    if (asked === "stopping") return { kind: "stopping" };
    if (asked.kind === "late")
      return { kind: "late", reason: `judging ${what} took longer than ${deadlineMs / 1_000} s` };
    const why = asked.cause === undefined ? "its thread ended" : messageOf(asked.cause);
    return { kind: "died", reason: `${what} could not be judged: ${why}` };
  }
}

/** Returns the buffer of the bytes, which is handed over, not copied. */
function bufferOf({ buffer, byteLength }: Uint8Array): ArrayBuffer {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) return buffer;
  throw new TypeError("the bytes of a question have a buffer of their own");
}
