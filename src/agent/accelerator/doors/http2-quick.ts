// A stream of HTTP/2 that was answered in the step in which it was told: its whole answer is handed to the session at once. Without an exchange, and without a timer
// of its own unless the visitor takes long.

import { constants, type ServerHttp2Stream } from "node:http2";
import type { QuickAnswer } from "../lane/quick-answer.ts";
import type { QuickOutcome } from "../records/recorder.ts";
import { visitorGone } from "./exchange.ts";
import { headAlone } from "./http2-head.ts";

/** Its close tells enough. */
const ignore = (): void => {};

export class QuickStream {
  /** Undefined when the stream has ended. V8 keeps what a stream refers to until it marks the whole heap: nothing of the request hangs on it. */
  #answer: QuickAnswer | undefined;
  readonly #stream: ServerHttp2Stream;
  readonly #onEnd: (ended: QuickStream, answer: QuickAnswer) => void;
  #isWatched = false;

  /** Writes the answer. `onEnd` is called once. Throws for a head that HTTP/2 cannot carry: then nothing was written. */
  constructor(
    stream: ServerHttp2Stream,
    answer: QuickAnswer,
    onEnd: (ended: QuickStream, answer: QuickAnswer) => void,
  ) {
    const { body, http2 } = answer;
    this.#stream = stream;
    this.#answer = answer;
    this.#onEnd = onEnd;
    stream.respond(http2.list, body.length === 0 ? headAlone : undefined);
    stream.on("error", ignore);
    stream.on("close", () => this.end());
    if (typeof body !== "string") stream.end(body);
    else if (body !== "") stream.end(body, "latin1");
  }

  /** To be called from time to time: who takes nothing of it for `takeMs` is cut off. */
  look(takeMs: number): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#stream.setTimeout(takeMs, () => this.cut());
  }

  cut(): void {
    this.#stream.destroy(new Error("the answer broke"));
  }

  /** The stream has ended, or its connection has. */
  end(): void {
    const answer = this.#answer;
    if (answer === undefined) return;
    this.#answer = undefined;
    this.#onEnd(this, answer);
  }

  /** To be asked when it has ended. */
  outcomeOf({ status, cache, http2, body }: QuickAnswer): QuickOutcome {
    const stream = this.#stream;
    const isComplete = stream.writableFinished && stream.rstCode === constants.NGHTTP2_NO_ERROR;
    const bytesSent = http2.bytes + Math.max(0, body.length - stream.writableLength);
    return { status: isComplete ? status : visitorGone, cache, bytesSent };
  }
}
