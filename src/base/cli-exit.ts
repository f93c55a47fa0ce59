// How a command ends: 0 done, 1 failed, 2 bad usage or settings, 3 taken and not proved everywhere yet, or a backup that lacks something; the error on stderr with what to do.

import { AccelError, codeOf, messageOf, type FaultCode } from "../core/faults.ts";

const usageCodes: ReadonlySet<FaultCode> = new Set([
  "USAGE",
  "SETTINGS_INVALID",
  "SECRET_UNREADABLE",
  "FILE_UNUSABLE",
]);

export function exitCodeOf(error: unknown): 1 | 2 | 3 {
  const code = codeOf(error);
  if (code === "PROOF_INCOMPLETE" || code === "BACKUP_NOT_WHOLE") return 3;
  return usageCodes.has(code) ? 2 : 1;
}

/** One or two lines: what failed, what to do. Defects show their stack, since nobody can act on the hint alone. */
export function describeFailure(program: string, error: unknown): string {
  if (error instanceof AccelError) return `${program}: ${error.message}\n  ${error.hint}\n`;
  return `${program}: ${error instanceof Error ? (error.stack ?? messageOf(error)) : messageOf(error)}\n`;
}
