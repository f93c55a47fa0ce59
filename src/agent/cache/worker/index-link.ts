// A worker's line to the index thread: what it sends is bounded, what it waits for ends. The line is replaced when the thread is.

import type { MessagePort } from "node:worker_threads";
import { AccelError } from "../../../core/faults.ts";
import type { CommitOutcome, EntryKey, StoredBody } from "../entry.ts";
import { Invalidations } from "./invalidations.ts";
import type { IndexerToWorker, MainToWorker, View, WorkerToIndexer } from "../messages.ts";

/** The most unanswered commits of one worker. Beyond that, a response is not stored. */
const unansweredMax = 256;
/** The index thread answers within milliseconds; only with a disk that hangs does it take so long. */
const answerMs = 10_000;

export type CommitAnswer = {
  readonly outcome: CommitOutcome;
  /** False: it may have been stored all the same, so its object must stay. */
  readonly isCertain: boolean;
};

type Submission = Extract<WorkerToIndexer, { kind: "commit" | "refresh" | "variant" }>;
/** A submission without what the link adds itself. */
export type Submitted = Submission extends infer S ? (S extends S ? Omit<S, "no"> : never) : never;

export class IndexLink implements Disposable {
  readonly #control: MessagePort;
  readonly #onView: () => void;
  /** The commits that wait for their outcome. */
  readonly #waiting = new Map<number, (outcome: CommitOutcome | "unanswered") => void>();
  readonly #invalidations = new Invalidations((order) => this.tell(order), answerMs);
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

  /** Submits. Never rejects. The bytes of a body are transferred. */
  async submit(submitted: Submitted): Promise<CommitAnswer> {
    const failed = (reason: string, isCertain: boolean): CommitAnswer => ({
      outcome: { kind: "failed", reason },
      isCertain,
    });
    if (this.#view === undefined) return failed("there is no index", true);
    if (this.#waiting.size >= unansweredMax)
      return failed("too many responses are being stored", true);
    const outcome = await this.#submit(submitted);
    if (outcome === "unanswered") return failed("the index did not answer", false);
    return { outcome, isCertain: true };
  }

  /** Invalidates all variants of a URL: durable when it resolves; rejects with INDEX_BROKEN. While the index thread is replaced it waits for the next: its index has the entry still. */
  async invalidate(key: EntryKey): Promise<void> {
    const told = await this.#invalidations.ask(key);
    if (told.kind === "durable") return;
    const reason = told.kind === "failed" ? told.reason : "the index did not answer";
    throw new AccelError("INDEX_BROKEN", `not invalidated: ${reason}`);
  }

  /** Sends a note, of which nothing is heard again. It is dropped where there is no index thread. */
  tell(message: Exclude<WorkerToIndexer, Submission>): void {
    this.#port?.postMessage(message);
  }

  [Symbol.dispose](): void {
    this.#control.close();
    this.#leave();
    this.#invalidations[Symbol.dispose]();
  }

  async #submit(submitted: Submitted): Promise<CommitOutcome | "unanswered"> {
    const no = ++this.#sent;
    const { promise, resolve } = Promise.withResolvers<CommitOutcome | "unanswered">();
    this.#waiting.set(no, resolve);
    const timer = setTimeout(() => resolve("unanswered"), answerMs);
    const message: Submission = { ...submitted, no };
    this.#port?.postMessage(message, [...transferOf(submitted)]);
    const outcome = await promise;
    clearTimeout(timer);
    this.#waiting.delete(no);
    return outcome;
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
    this.#invalidations.sendAgain();
  }

  #receive(message: IndexerToWorker): void {
    if (message.kind === "view") {
      this.#view = message.view;
      this.#onView();
    } else if (message.kind === "committed") this.#waiting.get(message.no)?.(message.outcome);
    else this.#invalidations.answered(message.no, message.fault);
    if (this.#view !== undefined && this.#invalidations.takeOverrun())
      this.tell({
        kind: "damaged",
        incarnation: this.#view.incarnation,
        reason: "more invalidations waited for the index than can be remembered",
      });
  }

  #leave(): void {
    this.#port?.close();
    this.#port = undefined;
    this.#view = undefined;
    for (const resolve of this.#waiting.values()) resolve("unanswered");
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
