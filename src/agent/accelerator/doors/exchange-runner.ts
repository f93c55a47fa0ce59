// Runs exchanges of every protocol: each is answered once, recorded once, and waited for when draining.

import type { WorkerClock } from "../clock.ts";
import type { QuickPass } from "../lane/quick-answers.ts";
import type { ProblemLog } from "../records/problem-log.ts";
import type { Recorder } from "../records/recorder.ts";
import { sendText } from "./answer.ts";
import type { Carrier } from "./carrier.ts";
import { Exchange, type Connection } from "./exchange.ts";

export type ExchangeRunnerDeps = {
  readonly answer: (exchange: Exchange) => Promise<void>;
  /** Answers one that was let in already, with what was found of it in this step. */
  readonly answerNow: (exchange: Exchange, passed: QuickPass) => Promise<void>;
  readonly recorder: Recorder;
  readonly clock: WorkerClock;
  readonly problems: ProblemLog;
};

export class ExchangeRunner {
  readonly #deps: ExchangeRunnerDeps;
  #working = 0;
  /** For those who wait until nothing is worked on any more. */
  #settled: PromiseWithResolvers<void> | undefined;

  constructor(deps: ExchangeRunnerDeps) {
    this.#deps = deps;
  }

  /** Under way on its connection until it has ended; then `onEnd` is told. */
  open(
    carrier: Carrier,
    connection: Connection,
    awaitsContinue: boolean,
    onEnd: () => void,
  ): Exchange {
    const exchange = new Exchange(carrier, connection, {
      clock: this.#deps.clock,
      awaitsContinue,
      onEnd: (ended, status) => {
        connection.live.delete(ended);
        this.#deps.recorder.exchange(ended, status);
        onEnd();
      },
    });
    connection.live.add(exchange);
    connection.newest = exchange;
    return exchange;
  }

  begin(exchange: Exchange, answer = this.#deps.answer): void {
    this.#working++;
    void this.#run(exchange, answer);
  }

  /** Begins what could not be answered in one step. */
  beginPassed(exchange: Exchange, passed: QuickPass): void {
    const { admission, found } = passed;
    exchange.client = found?.client;
    exchange.hasRecordRoom = admission === "claimed";
    if (admission === "has-to-wait") this.begin(exchange);
    else this.begin(exchange, (admitted) => this.#deps.answerNow(admitted, passed));
  }

  /** Resolves when nothing that has begun is worked on any more. */
  async settled(): Promise<void> {
    if (this.#working === 0) return;
    this.#settled ??= Promise.withResolvers<void>();
    await this.#settled.promise;
  }

  async #run(exchange: Exchange, answer: ExchangeRunnerDeps["answer"]): Promise<void> {
    let failure: unknown;
    try {
      await answer(exchange);
    } catch (error) {
      failure = error;
    }
    try {
      this.#finish(exchange, failure);
    } finally {
      this.#working--;
      if (this.#working === 0) {
        this.#settled?.resolve();
        this.#settled = undefined;
      }
    }
  }

  /** Breaks an answer that has failed, and answers what has got no answer. */
  #finish(exchange: Exchange, failure: unknown): void {
    const { problems } = this.#deps;
    const { headersSent } = exchange.response;
    if (failure !== undefined && headersSent && !exchange.isGone) {
      problems.tell("warn", exchange.domain, "answer cut", failure);
      exchange.cut();
    }
    if (headersSent || exchange.isGone) return;
    if (exchange.stop.aborted) sendText(exchange, 400, "The request is malformed.");
    else {
      const reason = failure ?? new Error("the request got no answer");
      problems.tell("error", exchange.domain, "answer failed", reason);
      sendText(exchange, 500, "The accelerator failed to answer this request.");
    }
  }
}
