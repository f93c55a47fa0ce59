// The table thread: it compiles bot sets from agent.db, which it only reads, so that neither main nor a
// visitor waits for that.

import type { MessagePort } from "node:worker_threads";
import { openImage, openSqlite, type Sqlite } from "../../../base/sqlite.ts";
import { messageOf } from "../../../core/faults.ts";
import { rest } from "../../../base/rest.ts";
import { TableMaker } from "./table-maker.ts";
import type { FromTabler, PlacedTables, TablerInit, ToTabler } from "./table-messages.ts";

type Build = Extract<ToTabler, { readonly kind: "build" }>;

/** Runs until main ends the thread. */
export function runTabler(port: MessagePort, { dbPath, arenas }: TablerInit): void {
  const pace = createPace();
  let ofFile: TableMaker | undefined;
  const build = ({ sets, inForce, image }: Build): PlacedTables => {
    if (image === undefined) {
      ofFile ??= new TableMaker(openToRead(dbPath), arenas, pace);
      return ofFile.build(sets, inForce);
    }
    const db = openImage(image);
    try {
      return new TableMaker(db, arenas, pace).build(sets, inForce);
    } finally {
      db.close();
    }
  };
  const say = (message: FromTabler): void => port.postMessage(message);
  port.on("message", (message: ToTabler) => {
    if (message.kind === "delta") {
      ofFile?.note(message.delta); // An image that comes later has it.
      return;
    }
    const { id } = message;
    try {
      say({ kind: "built", id, tables: build(message) });
    } catch (error) {
      say({ kind: "failed", id, reason: messageOf(error) });
    }
  });
}

const openToRead = (path: string): Sqlite => openSqlite(path, { sync: "normal", readonly: true });

// The thread works in short pieces. A thread that computes for long keeps its core for the slice that the
// scheduler gives it, some 3 ms on Linux whatever its priority, and a worker that wakes just then waits that
// long for its visitor. A thread that sleeps often delays nobody for longer than a piece.

const pieceMs = 0.4;
/**
 * The rest after a piece. With the timer's slack it is as long as a piece, so the thread takes about half a
 * core. With rests of 0.1 ms workers were late more than twice as often.
 */
const restMs = 0.3;

type PaceClock = { readonly nowMs: () => number; readonly rest: (ms: number) => void };

/**
 * Creates a pace: a function that is called often and sleeps when a piece of work is done. It is only for
 * threads that nobody waits for, since their event loop stands still meanwhile.
 */
export function createPace({ nowMs, rest }: PaceClock = threadClock()): () => void {
  let beganMs = nowMs();
  return () => {
    // After a time without work this ends the first piece at once, which costs one rest.
    if (nowMs() - beganMs < pieceMs) return;
    rest(restMs);
    beganMs = nowMs();
  };
}

function threadClock(): PaceClock {
  return { nowMs: () => performance.now(), rest };
}
