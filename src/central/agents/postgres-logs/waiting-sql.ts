// SQL for a thread that waits for each answer, as it waits for a disk: another thread asks the server, and this one sleeps
// until it has answered. So what walks, searches and folds request logs is the same for files and for a database.

import {
  MessageChannel,
  receiveMessageOnPort,
  Worker,
  type MessagePort,
} from "node:worker_threads";
import { AccelError } from "../../../core/faults.ts";
import { logLimits, logPlaceText, signals, type LogDatabase } from "./log-database.ts";
import type { SqlAnswer, SqlQuestion, SqlThreadInit } from "./sql-thread.ts";

export type WaitingSqlOptions = {
  readonly database: LogDatabase;
  /** The file of the thread that asks the server. */
  readonly entry: string;
};

/** The longest wait: for a connection that is made ready, and for a statement. Then the thread is begun anew. */
const waitMs = 2 * (logLimits.statementMs + 10_000);

type Line = {
  readonly worker: Worker;
  readonly port: MessagePort;
  readonly answered: Int32Array<SharedArrayBuffer>;
};

type Asked =
  | { readonly op: "query"; readonly text: string; readonly values: readonly unknown[] }
  | { readonly op: "copy"; readonly text: string; readonly bytes: Uint8Array };

export class WaitingSql implements Disposable {
  readonly #options: WaitingSqlOptions;
  #line: Line | undefined;
  #no = 0;
  /** The connection of the transaction that is under way. */
  #on: number | undefined;
  #connection = 0;
  #begun = 0;

  constructor(options: WaitingSqlOptions) {
    this.#options = options;
  }

  /** Names the connection that answered last. Another one may lead to a server that has less than the one before. */
  get connection(): string {
    return `${this.#begun}/${this.#connection}`;
  }

  /** Returns the rows; their columns are named as the fields of `Row`. Throws LOGS_UNAVAILABLE. */
  // oxlint-disable-next-line no-unnecessary-type-parameters -- As of a prepared statement of SQLite: the text says it, and no parameter.
  query<Row>(text: string, values: readonly unknown[] = []): readonly Row[] {
    // The statement is ours, and so are the names of its columns.
    return this.#ask({ op: "query", text, values }) as readonly Row[];
  }

  /** Sends the bytes behind a `COPY … FROM STDIN`. */
  copy(text: string, bytes: Uint8Array): void {
    this.#ask({ op: "copy", text, bytes });
  }

  /**
   * Runs the action in a transaction. Nothing of it holds when the action throws. When the answer to its end is lost, this
   * throws as well, and it may hold.
   */
  transact<T>(action: () => T): T {
    this.query("BEGIN");
    this.#on = this.#connection;
    try {
      const result = action();
      this.query("COMMIT");
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    } finally {
      this.#on = undefined;
    }
  }

  [Symbol.dispose](): void {
    this.#end();
  }

  /** A connection that is gone has taken its transaction with it. */
  #rollBack(): void {
    try {
      this.query("ROLLBACK");
    } catch {
      this.#end();
    }
  }

  #ask(asked: Asked): readonly unknown[] {
    const line = (this.#line ??= this.#begin());
    const no = ++this.#no;
    const question: SqlQuestion = { no, on: this.#on, ...asked };
    line.port.postMessage(question);
    const answer = this.#wait(line, no);
    if (!answer.ok) throw new AccelError("LOGS_UNAVAILABLE", answer.message);
    this.#connection = answer.connection;
    return answer.rows;
  }

  #wait({ port, answered }: Line, no: number): SqlAnswer {
    const endMs = performance.now() + waitMs;
    for (;;) {
      const seen = Atomics.load(answered, signals.count);
      // The thread at the other end posts nothing else.
      const got: { message: SqlAnswer } | undefined = receiveMessageOnPort(port);
      if (got?.message.no === no) return got.message;
      if (got !== undefined) continue;
      if (Atomics.load(answered, signals.ended) === 1) throw this.#lost("lost its thread");
      const leftMs = Math.max(0, endMs - performance.now());
      if (Atomics.wait(answered, signals.count, seen, leftMs) === "timed-out")
        throw this.#lost(`did not answer for ${waitMs / 1_000} s`);
    }
  }

  /** Whoever asks next has a new thread. */
  #lost(how: string): AccelError {
    this.#end();
    const where = logPlaceText(this.#options.database);
    return new AccelError("LOGS_UNAVAILABLE", `the database of request logs ${where} ${how}`);
  }

  #begin(): Line {
    const { database, entry } = this.#options;
    this.#begun++;
    const { port1: port, port2 } = new MessageChannel();
    const answered = new Int32Array(new SharedArrayBuffer(8));
    const workerData: SqlThreadInit = { database, port: port2, answered };
    const worker = new Worker(new URL(entry), {
      name: "logs-sql",
      workerData,
      transferList: [port2],
      execArgv: [],
    });
    worker.on("error", () => undefined); // Whoever waits for it is told by the end of the wait.
    worker.on("exit", () => {
      if (this.#line?.worker === worker) this.#end();
    });
    worker.unref();
    port.unref();
    return { worker, port, answered };
  }

  #end(): void {
    this.#line?.port.close();
    void this.#line?.worker.terminate();
    this.#line = undefined;
  }
}
