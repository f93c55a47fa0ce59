// The program's own log: pino JSON on stdout, one line an event, levels as words. Secrets are not logged in
// the first place; redaction is the last line of defence.

import { MessageChannel, type MessagePort } from "node:worker_threads";
import pino from "pino";
import { isJournal, withPriority } from "./journal-priority.ts";

export type Log = pino.Logger;
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof logLevels)[number];

/**
 * Matches secrets in the line as it goes out, so that no depth, list, error or spelling is missed: members by
 * name, credentials by scheme.
 */
const secretMember =
  /"((?:[\w-]*token|secret16|password|(?:proxy-)?authorization|(?:set-)?cookie|private_?key))":(?:"(?:[^"\\]|\\.)*"|\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\])/gi;
const credentials = /\b(Bearer|Basic) [\w.~+/-]{16,}=*/gi;

function withoutSecrets(line: string): string {
  return line.replaceAll(secretMember, '"$1":"[secret]"').replaceAll(credentials, "$1 [secret]");
}

/** Puts the priority of its level before a line. pino writes the level first. */
function forJournal(line: string): string {
  const level = /^\{"level":"(\w+)"/.exec(line)?.[1];
  return withPriority(logLevels.find((one) => one === level) ?? "info", line);
}

/**
 * Logs synchronously: a line is out before the process can be killed by what the line reports. Lines to the systemd journal carry
 * their priority.
 */
export function createLog(program: string, level: LogLevel): Log {
  const streamWrite = isJournal(1, process.env)
    ? (line: string) => forJournal(withoutSecrets(line))
    : withoutSecrets;
  return pino(
    {
      base: { program, pid: process.pid },
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite },
    },
    pino.destination({ fd: 1, sync: true }),
  );
}

export function silentLog(): Log {
  return pino({ level: "silent" });
}

// One log level for all threads of a program: each thread has its own logger, which is told when the level
// changes.

/** The start of one thread's log; the port is transferred to it. */
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

/**
 * Follows the level inside the thread. `log` must be the logger itself: children made of it keep the level
 * that they were made with.
 */
export function followLogLevel(log: Log, port: MessagePort): void {
  // LogLevels is at the other end.
  port.on("message", (level) => (log.level = level as LogLevel));
  port.unref();
}
