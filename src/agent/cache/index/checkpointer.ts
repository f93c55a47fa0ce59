// The thread that writes index.db's WAL back, as the index thread sees it, and what it does.

import { openSqlite } from "../../../base/sqlite.ts";
import { ThreadClient, threadPeer } from "../../../base/thread-client.ts";
import type { WalLengths } from "./checkpoints.ts";
import { indexPath } from "./index-file.ts";

export type CheckpointerAnswer = WalLengths | undefined;

/** Writes the WAL back. Undefined where SQLite refused. The index must be open elsewhere, and stay so meanwhile: the last to close it does more than this. */
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
  readonly #thread: ThreadClient<string, CheckpointerAnswer, CheckpointerAnswer>;

  constructor(entry: URL) {
    this.#thread = new ThreadClient({
      start: threadPeer(entry, { name: "checkpointer" }),
      restart: "when asked",
      onMessage: (answer) => this.#thread.answerOnly(answer),
    });
  }

  /** Runs a checkpoint, one at a time. Never rejects; undefined where it failed. */
  async run(directory: string): Promise<CheckpointerAnswer> {
    const asked = await this.#thread.ask(() => directory);
    return asked.kind === "answered" ? asked.answer : undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread.close();
  }
}
