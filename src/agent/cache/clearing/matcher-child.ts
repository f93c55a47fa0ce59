// The matcher as the index thread sees it: a child process that answers within the budget or is killed. An FTS5 query can be neither interrupted nor
// ended inside a thread, a process can.

import { processPeer, ThreadClient } from "../../../base/thread-client.ts";
import type { MatchAnswer, MatchJob } from "./match-job.ts";

export class MatchProcess implements Disposable {
  readonly #child: ThreadClient<MatchJob, MatchAnswer, MatchAnswer>;

  readonly #starting: NodeJS.Timeout;

  /**
   * Starts the process, so that the first clear does not wait for it. `startsInMs`: so much later, or with the first job that comes before. `niceness`: of one that
   * nobody waits for.
   */
  constructor(
    entry: URL,
    {
      niceness,
      startsInMs = 0,
    }: { readonly niceness?: number | undefined; readonly startsInMs?: number } = {},
  ) {
    this.#child = new ThreadClient({
      start: processPeer(entry, niceness === undefined ? {} : { niceness }),
      restart: "when asked",
      onMessage: (answer) => this.#child.answerOnly(answer),
    });
    this.#starting = setTimeout(() => this.#child.start(), startsInMs);
  }

  /** Runs a job, one at a time. Never rejects: over budget, crashed or not startable is an answer, `failed`. */
  async run(job: MatchJob, budgetMs: number): Promise<MatchAnswer> {
    const asked = await this.#child.ask(() => job, { deadlineMs: budgetMs });
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
      await this.#child.end("failed");
      this.#child.start(); // For the next clear.
    }
    return answer;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#starting);
    void this.#child.close();
  }
}
