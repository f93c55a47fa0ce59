// A worker's line to the index thread: what it sends is bounded, what it waits for ends. The line is replaced when the thread is.

import type { MessagePort } from "node:worker_threads";
import { AccelError } from "../../core/faults.ts";
import type { CommitOutcome, EntryKey, StoredBody } from "./entry.ts";
import type { IndexerToWorker, MainToWorker, View, WorkerToIndexer } from "./messages.ts";

/** Unanswered commits and invalidations of one worker: beyond, a response is not stored. */
const unansweredMax = 256;
/** The index thread answers within milliseconds; only a disk that hangs reaches it. */
const answerMs = 10_000;

type Answer = CommitOutcome | { readonly kind: "invalidated"; readonly fault: string | undefined };
export type CommitAnswer = {
  readonly outcome: CommitOutcome;
  /** False: it may have been stored all the same, so its object must stay. */
  readonly isCertain: boolean;
};

type Submission = Extract<WorkerToIndexer, { kind: "commit" | "refresh" | "variant" }>;
/** What the link adds itself is left out. */
export type Submitted = Submission extends infer S ? (S extends S ? Omit<S, "no"> : never) : never;

type Waiting = {
  readonly message: WorkerToIndexer;
  /** Undefined: the answer will not come. */
  readonly resolve: (answer: Answer | undefined) => void;
};

export class IndexLink implements Disposable {
  readonly #control: MessagePort;
  readonly #onView: () => void;
  readonly #waiting = new Map<number, Waiting>();
  #port: MessagePort | undefined;
  #view: View | undefined;
  #sent = 0;

  /** `onView`: told whenever another index is to be looked at, or none. */
  constructor(control: MessagePort, onView: () => void) {
    this.#control = control;
    this.#onView = onView;
    // Main sends nothing else.
    control.on("message", ({ port }: MainToWorker) => this.#use(port));
    control.unref();
  }

  get view(): View | undefined {
    return this.#view;
  }

  get isFull(): boolean {
    return this.#waiting.size >= unansweredMax;
  }

  /** Never rejects. Bytes of a body are transferred. */
  async submit(submitted: Submitted): Promise<CommitAnswer> {
    const failed = (reason: string, isCertain: boolean): CommitAnswer => ({
      outcome: { kind: "failed", reason },
      isCertain,
    });
    if (this.#view === undefined) return failed("there is no index", true);
    if (this.isFull) return failed("too many responses are being stored", true);
    const answer = await this.#ask((no) => ({ ...submitted, no }), transferOf(submitted));
    if (answer === undefined || answer.kind === "invalidated")
      return failed("the index did not answer", false);
    return { outcome: answer, isCertain: true };
  }

  /** Durable when it resolves; rejects with INDEX_BROKEN. While the index thread is replaced it waits for the next: its index has the entry still. */
  async invalidate(key: EntryKey): Promise<void> {
    if (this.isFull)
      throw new AccelError("INDEX_BROKEN", "not invalidated: too much is waiting for the index");
    const answer = await this.#ask((no) => ({ kind: "invalidate", no, key }));
    if (answer?.kind === "invalidated" && answer.fault === undefined) return;
    const reason = answer?.kind === "invalidated" ? answer.fault : undefined;
    throw new AccelError(
      "INDEX_BROKEN",
      `not invalidated: ${reason ?? "the index did not answer"}`,
    );
  }

  /** Unanswered; dropped where there is no index. */
  tell(message: Exclude<WorkerToIndexer, { readonly no: number }>): void {
    this.#port?.postMessage(message);
  }

  [Symbol.dispose](): void {
    this.#control.close();
    this.#leave();
    for (const { resolve } of this.#waiting.values()) resolve(undefined);
  }

  async #ask(
    message: (no: number) => WorkerToIndexer,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<Answer | undefined> {
    const no = ++this.#sent;
    const { promise, resolve } = Promise.withResolvers<Answer | undefined>();
    const waiting = { message: message(no), resolve };
    this.#waiting.set(no, waiting);
    const timer = setTimeout(() => resolve(undefined), answerMs);
    // Without a view there is no index that could take it: what can wait is sent when there is one.
    if (this.#view !== undefined) this.#port?.postMessage(waiting.message, [...transfer]);
    const answer = await promise;
    clearTimeout(timer);
    this.#waiting.delete(no);
    return answer;
  }

  #use(port: MessagePort): void {
    this.#leave();
    this.#port = port;
    // The index thread sends nothing else.
    port.on("message", (message: IndexerToWorker) => this.#receive(message));
    port.once("close", () => {
      if (this.#port === port) this.#leave();
    });
    port.unref(); // The cache alone keeps no worker alive.
  }

  #receive(message: IndexerToWorker): void {
    if (message.kind === "view") {
      this.#view = message.view;
      for (const { message: owed } of this.#waiting.values())
        if (owed.kind === "invalidate") this.#port?.postMessage(owed); // Twice is harmless.
      this.#onView();
    } else
      this.#waiting
        .get(message.no)
        ?.resolve(message.kind === "committed" ? message.outcome : message);
  }

  #leave(): void {
    this.#port?.close();
    this.#port = undefined;
    this.#view = undefined;
    for (const { message, resolve } of this.#waiting.values())
      if (message.kind !== "invalidate") resolve(undefined);
    this.#onView();
  }
}

function transferOf(submitted: Submitted): readonly ArrayBuffer[] {
  if (submitted.kind === "refresh") return [];
  const body: StoredBody | null =
    submitted.kind === "commit" ? submitted.candidate.body : submitted.body;
  return body?.kind === "inline" && body.bytes.buffer instanceof ArrayBuffer
    ? [body.bytes.buffer]
    : [];
}
