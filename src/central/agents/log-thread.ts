// The log thread's inside: requests from the main thread, one after the other, on the log store.

import type { MessagePort } from "node:worker_threads";
import { messageOf } from "../../core/faults.ts";
import type { LogAnswer, LogRequest, LogResults, LogThreadInit } from "./log-messages.ts";
import { LogStore } from "./log-store.ts";

/** Ends when the main thread asks for it. */
export function serveLogStore({ directory }: LogThreadInit, port: MessagePort): void {
  const say = (answer: LogAnswer): void => port.postMessage(answer);
  const store = new LogStore(directory, (path, error) =>
    say({ no: 0, broken: path, message: messageOf(error) }),
  );
  port.on("message", (request: LogRequest) => {
    try {
      say({ no: request.no, ok: true, result: perform(store, request) });
    } catch (error) {
      say({ no: request.no, ok: false, message: messageOf(error) });
    }
    if (request.op === "close") port.close();
  });
}

function perform(store: LogStore, request: LogRequest): LogResults[keyof LogResults] {
  switch (request.op) {
    case "append":
      return store.append(request.request);
    case "read":
      return store.read(request.request);
    case "retain":
      return store.retain(request.retention, request.nowMs);
    case "stats":
      return store.stats();
    case "close":
      store[Symbol.dispose]();
      return null;
    default:
      return request satisfies never;
  }
}
