// What a program with all its threads and children took of the processor and of memory, as the kernel counts (proc(5)).

import { readdirSync, readFileSync } from "node:fs";

/** The process and everything that it started. */
export function treeOf(pid: number): readonly number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      // Behind the name, which may hold anything in its brackets: state, parent.
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
    } catch {
      // It has ended.
    }
  }
  const tree = [pid];
  for (const one of tree) for (const [id, parent] of parents) if (parent === one) tree.push(id);
  return tree;
}

/** Microseconds on a processor, by thread: a thread that ended meanwhile must not lessen the sum. */
export function cpuOf(pid: number): ReadonlyMap<string, number> {
  const us = new Map<string, number>();
  for (const one of treeOf(pid)) {
    for (const thread of namesIn(`/proc/${one}/task`)) {
      try {
        const [ns] = readFileSync(`/proc/${one}/task/${thread}/schedstat`, "latin1").split(" ");
        us.set(`${one}/${thread}`, Number(ns) / 1_000);
      } catch {
        // It has ended.
      }
    }
  }
  return us;
}

/** The microseconds that were taken since. */
export function cpuSince(before: ReadonlyMap<string, number>, pid: number): number {
  let us = 0;
  for (const [thread, now] of cpuOf(pid)) us += now - (before.get(thread) ?? 0);
  return us;
}

/** The same by the kernel's name of the thread, the most expensive first. */
export function cpuByName(
  before: ReadonlyMap<string, number>,
  pid: number,
): readonly (readonly [name: string, us: number])[] {
  const sums = new Map<string, number>();
  for (const [thread, now] of cpuOf(pid)) {
    const name = `${nameOf(thread)} ${thread.split("/")[1]}`;
    sums.set(name, (sums.get(name) ?? 0) + now - (before.get(thread) ?? 0));
  }
  return [...sums].toSorted(([, one], [, other]) => other - one);
}

function nameOf(thread: string): string {
  const [process, id] = thread.split("/");
  try {
    return readFileSync(`/proc/${process}/task/${id}/comm`, "latin1").trim();
  } catch {
    return "ended";
  }
}

export function residentMiB(pid: number): number {
  let kib = 0;
  for (const one of treeOf(pid)) {
    try {
      const status = readFileSync(`/proc/${one}/status`, "latin1");
      kib += Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
    } catch {
      // It has ended.
    }
  }
  return kib / 1_024;
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
