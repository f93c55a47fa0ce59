// The table thread: compiles bot sets from agent.db, which it only reads, so that neither main nor a visitor waits for it.

import type { MessagePort } from "node:worker_threads";
import { openSqlite } from "../../../base/sqlite.ts";
import { messageOf } from "../../../core/faults.ts";
import { createPace } from "../sets/pace.ts";
import { TableMaker } from "./table-maker.ts";
import type { FromTabler, TablerInit, ToTabler } from "./table-messages.ts";

/** Runs until main ends the thread. */
export function runTabler(port: MessagePort, { dbPath, arenas }: TablerInit): void {
  const db = openSqlite(dbPath, { sync: "normal", readonly: true });
  const maker = new TableMaker(db, arenas, createPace());
  const say = (message: FromTabler): void => port.postMessage(message);
  port.on("message", (message: ToTabler) => {
    if (message.kind === "delta") {
      maker.note(message.delta);
      return;
    }
    const { id, sets, inForce } = message;
    try {
      say({ kind: "built", id, tables: maker.build(sets, inForce) });
    } catch (error) {
      say({ kind: "failed", id, reason: messageOf(error) });
    }
  });
}
