// What central asks on a channel: answered within its deadline or not at all, only so many at a time.

import { messageOf } from "../../core/faults.ts";
import {
  failedDryRun,
  type AnswerMessage,
  type AskMessage,
  type DryRunQuestion,
  type DryRunResult,
} from "../../wire/ask.ts";

/** A rejection is answered with its reason. */
export type AnswerDryRun = (question: DryRunQuestion, budgetMs: number) => Promise<DryRunResult>;

/** Each takes a process for up to two seconds. */
const askedMax = 3;

export class Questions {
  readonly #answer: AnswerDryRun;
  readonly #running = new Set<Promise<void>>();

  constructor(answer: AnswerDryRun) {
    this.#answer = answer;
  }

  /** `send` may be called until `idle` resolves. */
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
