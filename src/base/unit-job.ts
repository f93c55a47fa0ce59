// What systemd is doing with the unit of this process. A process that is told to stop is not told whether systemd starts the unit again afterwards: the type of the unit's
// job says that, and any user may ask for it (`systemctl list-jobs`, over D-Bus).

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { messageOf } from "../core/faults.ts";

/** "stop": nothing is started afterwards. "other": a restart, or no job at all, as behind a signal that an operator sent. */
export type UnitJob =
  | { readonly kind: "stop" }
  | { readonly kind: "other" }
  | { readonly kind: "unknown"; readonly reason: string };

/** Visitors are served meanwhile. */
const answerWithinMs = 2_000;

/** Resolves with the job that systemd has for the unit of this process. `unitByPlace`: its name where the control group does not tell. Never throws. */
export async function unitJob(unitByPlace: string): Promise<UnitJob> {
  try {
    const unit = unitOfCgroup(await readFile("/proc/self/cgroup", "utf8")) ?? unitByPlace;
    const asked = ["list-jobs", "--plain", "--full", "--no-legend", unit];
    const { stdout } = await promisify(execFile)("systemctl", asked, { timeout: answerWithinMs });
    return { kind: isStop(stdout, unit) ? "stop" : "other" };
  } catch (error) {
    return { kind: "unknown", reason: messageOf(error) };
  }
}

/** Returns the service that a process belongs to, by its /proc/PID/cgroup; undefined: none is told, as in a control group namespace. */
export function unitOfCgroup(text: string): string | undefined {
  const paths = text.split("\n").map((line) => line.split(":").slice(2).join(":"));
  const parts = paths.flatMap((path) => path.split("/"));
  return parts.findLast((part) => part.endsWith(".service"));
}

/** Whether the rows of `systemctl list-jobs` (number, unit, type, state) have a stop of the unit. */
export function isStop(rows: string, unit: string): boolean {
  return rows.split("\n").some((row) => {
    const [, of, type] = row.trim().split(/\s+/);
    return of === unit && type === "stop";
  });
}
