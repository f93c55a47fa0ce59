// The matcher as the index thread sees it: a child process that answers within the budget or is killed. An FTS5 query can be neither interrupted nor
// ended inside a thread, a process can.

import { processPeer, ThreadClient } from "../../../base/thread-client.ts";
import type { MatchAnswer, MatchJob } from "./match-job.ts";

export class MatchProcess implements Disposable {
  readonly #process: ThreadClient<MatchJob, MatchAnswer, MatchAnswer>;

  /** Starts the process, so that the first clear does not wait for it. `niceness`: of one that nobody waits for. */
  constructor(entry: URL, niceness?: number) {
    this.#process = new ThreadClient({
      start: processPeer(entry, niceness),
      restart: "when asked",
      onMessage: (answer) => this.#process.answerOnly(answer),
    });
    this.#process.start();
  }

  /** One at a time. Never rejects: over budget, crashed or not startable is an answer, `failed`. */
  async run(job: MatchJob, budgetMs: number): Promise<MatchAnswer> {
    const asked = await this.#process.ask(() => job, { deadlineMs: budgetMs });
    const isLate = asked.kind === "late";
    const answer: MatchAnswer =
      asked.kind === "answered"
        ? asked.answer
        : {
            kind: "failed",
            reason: isLate ? `over the budget of ${budgetMs} ms` : `the matcher ${asked.reason}`,
            damaged: false,
            overBudget: isLate,
          };
    if (answer.kind === "failed") {
      await this.#process.end("failed");
      this.#process.start(); // For the next clear.
    }
    return answer;
  }

  [Symbol.dispose](): void {
    void this.#process.close();
  }
}
