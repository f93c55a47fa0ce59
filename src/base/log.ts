// The program's own log: pino JSON on stdout, one line an event, levels as words. Secrets are kept out by redaction as the last line of defence; the first is not to log them.

import pino from "pino";

export type Log = pino.Logger;
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof logLevels)[number];

/** In the line as it goes out, so that no depth, list, error or spelling is missed: members by name, credentials by scheme. */
const secretMember =
  /"((?:[\w-]*token|secret16|password|(?:proxy-)?authorization|(?:set-)?cookie|private_?key))":(?:"(?:[^"\\]|\\.)*"|\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\])/gi;
const credentials = /\b(Bearer|Basic) [\w.~+/-]{16,}=*/gi;

function withoutSecrets(line: string): string {
  return line.replaceAll(secretMember, '"$1":"[secret]"').replaceAll(credentials, "$1 [secret]");
}

/** Synchronous: a line that was logged is out before the process can be killed by what it tells of. */
export function createLog(program: string, level: LogLevel): Log {
  return pino(
    {
      base: { program, pid: process.pid },
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: withoutSecrets },
    },
    pino.destination({ fd: 1, sync: true }),
  );
}

export function silentLog(): Log {
  return pino({ level: "silent" });
}
