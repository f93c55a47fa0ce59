// The program's own log: pino JSON on stdout, one line an event, levels as words. Secrets are kept out by redaction as the last line of defence; the first is not to log them.

import pino from "pino";

export type Log = pino.Logger;
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof logLevels)[number];

const secretKeys = [
  "secret16",
  "token",
  "access_token",
  "authorization",
  "password",
  "private_key",
  "api_token",
];

/** Synchronous: a line that was logged is out before the process can be killed by what it tells of. */
export function createLog(program: string, level: LogLevel): Log {
  return pino(
    {
      base: { program, pid: process.pid },
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretKeys.flatMap((key) => [key, `*.${key}`]), censor: "[secret]" },
    },
    pino.destination({ fd: 1, sync: true }),
  );
}

export function silentLog(): Log {
  return pino({ level: "silent" });
}
