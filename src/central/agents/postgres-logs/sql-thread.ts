// The inside of the thread that talks to the database of request logs for another thread, which waits meanwhile
// (waiting-sql.ts): one connection, one question at a time.

import type { MessagePort } from "node:worker_threads";
import { messageOf } from "../../../core/faults.ts";
import { PostgresLine } from "../../store/engine/postgres-line.ts";
import {
  judgeLogServer,
  logConnectionSettings,
  logFault,
  logLimits,
  logPlaceText,
  logPlaceOf,
  signals,
  type LogDatabase,
} from "./log-database.ts";
import { prepareLogTables } from "./log-schema.ts";

export type SqlThreadInit = {
  readonly database: LogDatabase;
  readonly port: MessagePort;
  /** Whoever waits is woken by the first of its two numbers; log-database.ts names them. */
  readonly answered: Int32Array<SharedArrayBuffer>;
};

/** `on` is the number of the connection on which a transaction began; undefined outside of one. */
export type SqlQuestion = { readonly no: number; readonly on: number | undefined } & (
  | { readonly op: "query"; readonly text: string; readonly values: readonly unknown[] }
  | { readonly op: "copy"; readonly text: string; readonly bytes: Uint8Array }
);

export type SqlAnswer =
  | {
      readonly no: number;
      readonly ok: true;
      readonly rows: readonly unknown[];
      /** The number of the connection that answered. */
      readonly connection: number;
    }
  | { readonly no: number; readonly ok: false; readonly message: string };

/** Serves until the thread is ended. `judge` throws for a server that cannot hold request logs. */
export function serveSql(
  { database, port, answered }: SqlThreadInit,
  judge: typeof judgeLogServer = judgeLogServer,
): void {
  const where = logPlaceText(database);
  let isKnown = false;
  const line = new PostgresLine({
    place: logPlaceOf(database),
    limits: logLimits,
    name: "accel-central logs",
    settings: logConnectionSettings,
    prepare: async (ask) => {
      await judge(ask, where);
      await prepareLogTables(ask, where, isKnown);
      isKnown = true;
    },
    nowMs: () => performance.now(),
  });
  const answer = async (question: SqlQuestion): Promise<SqlAnswer> => {
    const { no, on, op, text } = question;
    try {
      const rows =
        op === "query"
          ? await line.query(text, question.values, on)
          : await line.copy(text, question.bytes, on).then(() => []);
      return { no, ok: true, rows, connection: line.connections };
    } catch (error) {
      return { no, ok: false, message: messageOf(logFault(error, where)) };
    }
  };
  // waiting-sql.ts asks, and asks nothing before it was answered.
  port.on("message", (question: SqlQuestion) => {
    const serve = async (): Promise<void> => {
      port.postMessage(await answer(question));
      wake(answered);
    };
    void serve();
  });
}

/** Tells whoever waits that nobody answers any more; to be called when the thread ends, however it does. */
export function tellEnded({ answered }: SqlThreadInit): void {
  Atomics.store(answered, signals.ended, 1);
  wake(answered);
}

function wake(answered: Int32Array): void {
  Atomics.add(answered, signals.count, 1);
  Atomics.notify(answered, signals.count);
}
