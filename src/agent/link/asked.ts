// Questions that central asks on a channel. Only a few run at a time; the others are refused at once. Each
// answer gets the deadline of its question as its budget.

import { messageOf } from "../../core/faults.ts";
import {
  failedDryRun,
  type AnswerMessage,
  type AskMessage,
  type DryRunQuestion,
  type DryRunResult,
} from "../../wire/ask.ts";

/** Answers what a clear would hit. If it rejects, central is sent the reason. */
export type AnswerDryRun = (question: DryRunQuestion, budgetMs: number) => Promise<DryRunResult>;

/** The most questions at a time: each occupies a process for up to two seconds. */
const askedMax = 3;

export class Questions {
  readonly #answer: AnswerDryRun;
  readonly #running = new Set<Promise<void>>();

  constructor(answer: AnswerDryRun) {
    this.#answer = answer;
  }

  /** Takes a question. `send` may be called until `idle` resolves. */
  receive(message: AskMessage, send: (answer: AnswerMessage) => void): void {
    const { id } = message;
    if (this.#running.size >= askedMax)
      return send({ type: "answer", id, ...failedDryRun("too many questions at a time") });
    const running = this.#run(message, send).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Resolves when everything asked is answered. Never rejects. */
  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #run(
    { id, dry_run: question, deadline_ms: budgetMs }: AskMessage,
    send: (answer: AnswerMessage) => void,
  ): Promise<void> {
    const result = await this.#answer(question, budgetMs).catch((error: unknown) =>
      failedDryRun(messageOf(error)),
    );
    send({ type: "answer", id, ...result });
  }
}
