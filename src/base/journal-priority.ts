// The priorities of the systemd journal. A line that begins with `<3>` is filed as an error (sd-daemon(3)); journald takes the
// prefix off, so the message stays as it was written.
//
// Only the journal takes the prefix off. So it is written where systemd says that the stream is the journal's: JOURNAL_STREAM has the device and the
// inode of it (systemd.exec(5)). A pipe or a file that a process below the unit opened has others.

import { fstatSync } from "node:fs";

/** The severities of syslog(3). The journal has no place for a trace below debug. */
export const priorities = {
  fatal: 2,
  error: 3,
  warn: 4,
  info: 6,
  debug: 7,
  trace: 7,
} as const;

/** Says whether a descriptor of this process is a stream of the journal. */
export function isJournal(fd: number, env: NodeJS.ProcessEnv): boolean {
  const stream = env["JOURNAL_STREAM"];
  if (stream === undefined) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return stream === `${dev}:${ino}`;
  } catch {
    return false; // It is closed.
  }
}

/** Puts the priority before each line of a text: the journal reads line by line. */
export function withPriority(level: keyof typeof priorities, text: string): string {
  return text.replaceAll(/^(?=[^])/gm, `<${priorities[level]}>`);
}
