// The thread that writes index.db's WAL back, as the index thread sees it, and what it does.

import { Worker } from "node:worker_threads";
import { openSqlite } from "../../../base/sqlite.ts";
import type { WalLengths } from "./checkpoints.ts";
import { indexPath } from "./index-file.ts";

export type CheckpointerAnswer = WalLengths | undefined;

/** Undefined where SQLite refused. The index must be open elsewhere, and stay so meanwhile: the last to close it does more than this. */
export function checkpoint(directory: string): CheckpointerAnswer {
  try {
    const db = openSqlite(indexPath(directory), { sync: "normal" });
    try {
      const [lengths] = db.pragma("wal_checkpoint(PASSIVE)") as WalLengths[]; // SQLite's own columns.
      return lengths;
    } finally {
      db.close();
    }
  } catch {
    return undefined; // Whoever uses the file next meets the reason.
  }
}

export class Checkpointer implements AsyncDisposable {
  readonly #entry: URL;
  #thread: Worker | undefined;

  constructor(entry: URL) {
    this.#entry = entry;
  }

  /** One at a time. Never rejects; undefined where it failed. */
  run(directory: string): Promise<CheckpointerAnswer> {
    const thread = (this.#thread ??= this.#start());
    const { promise, resolve } = Promise.withResolvers<CheckpointerAnswer>();
    const onExit = (): void => resolve(undefined);
    // Our own thread is at the other end, and says nothing else.
    const onMessage = (answer: CheckpointerAnswer): void => resolve(answer);
    thread.once("message", onMessage).once("exit", onExit);
    thread.postMessage(directory);
    return promise.finally(() => thread.off("message", onMessage).off("exit", onExit));
  }

  #start(): Worker {
    const thread = new Worker(this.#entry, { name: "checkpointer", execArgv: [] });
    thread.on("error", () => undefined); // The run under way is told by the exit that follows.
    thread.once("exit", () => {
      if (this.#thread === thread) this.#thread = undefined;
    });
    return thread;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread?.terminate();
  }
}
