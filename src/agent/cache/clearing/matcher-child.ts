// The matcher as the index thread sees it: a child process that answers within the budget or is killed. An FTS5 query can be neither interrupted nor
// ended inside a thread, a process can.

import { fork, type ChildProcess } from "node:child_process";
import { setPriority } from "node:os";
import type { MatchAnswer, MatchJob } from "./match-job.ts";

export class MatchProcess implements Disposable {
  readonly #entry: URL;
  readonly #niceness: number | undefined;
  #child: ChildProcess | undefined;
  #disposed = false;

  /** Starts the process, so that the first clear does not wait for it. `niceness`: of one that nobody waits for. */
  constructor(entry: URL, niceness?: number) {
    this.#entry = entry;
    this.#niceness = niceness;
    this.#child = this.#start();
  }

  /** One at a time. Never rejects: over budget, crashed or not startable is an answer, `failed`. */
  async run(job: MatchJob, budgetMs: number): Promise<MatchAnswer> {
    const child = (this.#child ??= this.#start());
    const { promise, resolve } = Promise.withResolvers<MatchAnswer>();
    const fail = (reason: string, overBudget = false): void =>
      resolve({ kind: "failed", reason, damaged: false, overBudget });
    const onExit = (code: number | null, signal: string | null): void =>
      fail(`the matcher ended: ${signal ?? code}`);
    const onError = (error: Error): void => fail(`the matcher cannot run: ${error.message}`);
    // Our own matcher is at the other end, and says nothing else.
    const onMessage = (message: unknown): void => resolve(message as MatchAnswer);
    const timer = setTimeout(() => fail(`over the budget of ${budgetMs} ms`, true), budgetMs);
    child.on("message", onMessage).on("exit", onExit).on("error", onError);
    if (child.exitCode !== null || child.signalCode !== null) fail("the matcher ended");
    else
      child.send(job, (error) => {
        if (error !== null) fail(`the matcher cannot be reached: ${error.message}`);
      });
    const answer = await promise;
    clearTimeout(timer);
    child.off("message", onMessage).off("exit", onExit).off("error", onError);
    if (answer.kind === "failed") {
      child.kill("SIGKILL");
      this.#child = this.#disposed ? undefined : this.#start();
    }
    return answer;
  }

  #start(): ChildProcess {
    const child = fork(this.#entry, [], {
      execArgv: [],
      env: {},
      serialization: "advanced", // Ids travel as bytes.
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    if (this.#niceness !== undefined && child.pid !== undefined) yieldTo(child.pid, this.#niceness);
    // Without a listener a failed start would end the thread; whoever asks next is told by the send that fails.
    child.on("error", () => undefined);
    child.once("exit", () => {
      if (this.#child === child) this.#child = undefined;
    });
    return child;
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#child?.kill("SIGKILL");
  }
}

function yieldTo(pid: number, niceness: number): void {
  try {
    setPriority(pid, niceness);
  } catch {
    // It has ended already, which whoever asks is told.
  }
}
