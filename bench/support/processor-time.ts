// The processor time of programs: what they took, however busy the machine is with others.

import { readdirSync, readFileSync } from "node:fs";

/** User and system time of all threads of a process, in milliseconds; 0 for one that is gone. */
export function cpuMsOf(pid: number): number {
  const fields = statOf(String(pid));
  return fields === undefined ? 0 : (Number(fields[11]) + Number(fields[12])) * tickMs;
}

/** Of a process, its children that live, and those of them that have ended and been waited for. */
export function cpuMsOfTree(pid: number): number {
  const own = statOf(String(pid));
  if (own === undefined) return 0;
  const ended = (Number(own[13]) + Number(own[14])) * tickMs;
  const living = readdirSync("/proc").reduce((sum, name) => {
    const fields = /^\d+$/.test(name) ? statOf(name) : undefined;
    return Number(fields?.[1]) === pid ? sum + cpuMsOf(Number(name)) : sum;
  }, 0);
  return cpuMsOf(pid) + ended + living;
}

const tickMs = 10;

/** The fields behind the name, which may hold anything. */
function statOf(name: string): readonly string[] | undefined {
  try {
    return readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1)?.split(" ");
  } catch {
    return undefined; // It has ended meanwhile.
  }
}
