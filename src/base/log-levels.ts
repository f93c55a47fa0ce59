// One level of the log for all threads of a program: each has a logger of its own, which hears when the level changes.

import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { Log, LogLevel } from "./log.ts";

/** For one thread's start; the port is to be transferred to it. */
export type LogLevelInit = { readonly level: LogLevel; readonly port: MessagePort };

export class LogLevels {
  readonly #log: Log;
  readonly #ports = new Set<MessagePort>();
  #level: LogLevel;

  constructor(log: Log, level: LogLevel) {
    this.#log = log;
    this.#level = level;
  }

  openThread(): LogLevelInit {
    const { port1, port2 } = new MessageChannel();
    this.#ports.add(port1);
    port1.once("close", () => this.#ports.delete(port1));
    port1.unref();
    return { level: this.#level, port: port2 };
  }

  set(level: LogLevel): void {
    this.#level = this.#log.level = level;
    for (const port of this.#ports) port.postMessage(level);
  }
}

/** In the thread. `log` is the logger itself: children made of it keep the level that they were made with. */
export function followLogLevel(log: Log, port: MessagePort): void {
  // The other end is LogLevels.
  port.on("message", (level) => (log.level = level as LogLevel));
  port.unref();
}
