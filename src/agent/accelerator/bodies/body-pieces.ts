// The body of a request as its visitor sends it, piece by piece and as fast as it is wanted. Only the time in which we wait for the visitor counts against him:
// who sends nothing for too long, or too little in all, is given up. The request itself is never touched, for its answer has to go out on the same connection.

import type { Readable } from "node:stream";
import type { WorkerClock } from "../clock.ts";
import type { Exchange } from "../doors/exchange.ts";

/** `late`: it comes too slowly. `no-room`: it cannot be kept. `gone`: the visitor has left, or the request is malformed. */
export type BodyFaultKind = "too-large" | "late" | "no-room" | "gone";

export class BodyFault extends Error {
  readonly kind: BodyFaultKind;

  constructor(kind: BodyFaultKind, reason: string) {
    super(reason);
    this.kind = kind;
  }
}

export type BodyPace = {
  /** Nothing may come for so long; the rate counts after as long. */
  readonly idleMs: number;
  /** The least bytes a second. */
  readonly rateMin: number;
};

export type BodyPiecesOptions = {
  readonly bytesMax: number;
  readonly pace: BodyPace;
  readonly clock: WorkerClock;
};

/** What is asked of an exchange while its body is read. */
export type Bodied = Pick<Exchange, "stop" | "isReceived" | "promised">;

export class BodyPieces implements Disposable {
  received = 0;
  readonly #exchange: Bodied;
  readonly #body: Readable;
  readonly #options: BodyPiecesOptions;
  #fault: BodyFault | undefined;
  /** The time that we have waited for the visitor, but for the wait that is under way. */
  #waitedMs = 0;
  #waitsSinceMs = 0;
  #waiting: { readonly go: () => void; readonly fail: (fault: BodyFault) => void } | undefined;
  readonly #onMore = (): void => this.#waiting?.go();
  readonly #onGone = (): void => this.fail("gone", "the visitor left, or the body broke");

  constructor(exchange: Bodied, body: Readable, options: BodyPiecesOptions) {
    this.#exchange = exchange;
    this.#body = body;
    this.#options = options;
    if (exchange.stop.aborted) this.#onGone();
    exchange.stop.addEventListener("abort", this.#onGone);
    exchange.promised?.follow((bytes) => this.#judge(bytes));
  }

  /** The next piece, at once if it is there; undefined at the end. Throws a BodyFault. */
  next(): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    const piece = this.#read();
    return piece !== undefined || this.#isOver ? piece : this.#wait();
  }

  /** Looks whether the visitor is too slow. */
  look(): void {
    if (this.#waiting === undefined) return;
    const { idleMs, rateMin } = this.#options.pace;
    const waitsMs = this.#options.clock.steadyMs() - this.#waitsSinceMs;
    const waitedMs = this.#waitedMs + waitsMs;
    if (waitsMs >= idleMs) this.fail("late", `nothing came for ${Math.round(waitsMs)} ms`);
    else if (waitedMs >= idleMs + (this.received / rateMin) * 1_000)
      this.fail("late", `${this.received} bytes came in ${Math.round(waitedMs)} ms`);
  }

  /** Ends whoever waits for the next piece, and who asks for one from now on. */
  fail(kind: BodyFaultKind, reason: string): void {
    this.#fault ??= new BodyFault(kind, reason);
    this.#waiting?.fail(this.#fault);
  }

  [Symbol.dispose](): void {
    this.#exchange.stop.removeEventListener("abort", this.#onGone);
    this.#exchange.promised?.follow(undefined);
    this.#body.off("readable", this.#onMore).off("end", this.#onMore);
  }

  /** The whole body was read. A stream that has ended tells it a turn later than the parser. */
  get #isOver(): boolean {
    const { readableLength, readableEnded } = this.#body;
    return readableLength === 0 && (readableEnded || this.#exchange.isReceived);
  }

  #read(): Uint8Array | undefined {
    if (this.#fault !== undefined) throw this.#fault;
    // A byte stream gives buffers; its type says any.
    const piece = this.#body.read() as Uint8Array | null;
    if (piece === null) return undefined;
    this.received += piece.length;
    this.#judge(this.received);
    if (this.#fault !== undefined) throw this.#fault;
    return piece;
  }

  async #wait(): Promise<Uint8Array | undefined> {
    const { clock } = this.#options;
    if (this.#body.listenerCount("readable") === 0)
      this.#body.on("readable", this.#onMore).on("end", this.#onMore);
    for (;;) {
      const { promise, resolve: go, reject: fail } = Promise.withResolvers<void>();
      this.#waiting = { go, fail };
      this.#waitsSinceMs = clock.steadyMs();
      try {
        await promise;
      } finally {
        this.#waiting = undefined;
        this.#waitedMs += clock.steadyMs() - this.#waitsSinceMs;
      }
      const piece = this.#read();
      if (piece !== undefined || this.#isOver) return piece;
    }
  }

  /** `bytes`: so many have come, or were promised. */
  #judge(bytes: number): void {
    const { bytesMax } = this.#options;
    if (bytes > bytesMax)
      this.fail(
        "too-large",
        `The body of a request to this site may have ${bytesMax} bytes at most.`,
      );
  }
}
