// Calls to the index thread that have not been answered: numbered, bounded in count and time, and known in full, so that they can be asked again.

import { AccelError } from "../../../core/faults.ts";
import type { Call, CallName, Calls, MainToIndexer } from "../messages.ts";

/** Far above what a call takes (a check: two minutes at most); only a thread that hangs reaches it. Waiting for `gone` ends with the thread. */
const callMs: Readonly<Partial<Record<CallName, number>>> = {
  clear: 60_000,
  search: 10_000,
  why: 5_000,
  epoch: 60_000,
  stats: 5_000,
  check: 150_000,
  close: 20_000,
};
const callsMax = 10_000;

type CallMessage = Extract<MainToIndexer, { kind: "call" }>;
type Pending = {
  readonly message: CallMessage;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: AccelError) => void;
};

export class PendingCalls {
  readonly #pending = new Map<number, Pending>();
  #opened = 0;

  /** The message to send, and the promise of its answer. */
  open<N extends CallName>(
    name: N,
    asked: Calls[N]["asked"],
  ): { message: CallMessage; answer: Promise<Calls[N]["answer"]> } {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const no = ++this.#opened;
    // The two belong together by the parameters of this method.
    const message: CallMessage = { kind: "call", no, call: { name, asked } as Call };
    if (this.#pending.size < callsMax) this.#pending.set(no, { message, resolve, reject });
    else reject(new AccelError("INDEX_BROKEN", "too many calls to the cache index are waiting"));
    const deadlineMs = callMs[name];
    const late = (): void =>
      reject(new AccelError("INDEX_BROKEN", `no answer to ${name} within ${deadlineMs} ms`));
    const timer = deadlineMs === undefined ? undefined : setTimeout(late, deadlineMs);
    const answer = promise.finally(() => {
      clearTimeout(timer);
      this.#pending.delete(no);
    });
    // The index thread answers a call with what Calls names for it.
    return { message, answer: answer as Promise<Calls[N]["answer"]> };
  }

  answer(no: number, answer: unknown): void {
    this.#pending.get(no)?.resolve(answer);
  }

  reject(no: number, error: AccelError): void {
    this.#pending.get(no)?.reject(error);
  }

  /** In the order in which they were opened. */
  unanswered(): CallMessage[] {
    return [...this.#pending.values()].map(({ message }) => message);
  }

  rejectAll(error: AccelError): void {
    for (const { reject } of this.#pending.values()) reject(error);
  }
}
