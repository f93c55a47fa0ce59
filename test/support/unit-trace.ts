// What the programs of a demo asked of the kernel, as `strace -ff` writes it down: one file a thread, which is told apart by the program that began it.

import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

export type Traced = {
  readonly syscalls: ReadonlySet<string>;
  /** Of sockets. */
  readonly families: ReadonlySet<string>;
  /** Last parts of the paths that were executed. */
  readonly commands: ReadonlySet<string>;
  readonly written: ReadonlySet<string>;
  /** Below /proc, /sys and /dev. */
  readonly kernelFiles: ReadonlySet<string>;
};

/** Made very often, and in no doubt: the programs would hardly move while each of them is written down. */
export const untraced: readonly string[] = [
  ..."read write readv writev pread64 pwrite64 close fstat lseek statx poll".split(" "),
  ..."futex epoll_wait epoll_pwait epoll_ctl sched_yield clock_nanosleep".split(" "),
  ..."madvise mprotect munmap rt_sigprocmask getpid fdatasync fsync".split(" "),
];

/** What stands before a command line so that it and all that it starts is written to files that begin with `log`. It keeps its own pid. `denied` fail. */
export function tracingAll(log: string, denied: readonly string[]): readonly string[] {
  const inject = `--inject=${denied.join(",")}:error=EPERM`;
  return [
    ..."strace -D -ff --seccomp-bpf -s 400".split(" "),
    `--trace=!${untraced.join(",")}`,
    ...(denied.length === 0 ? [] : [inject]),
    "-o",
    log,
  ];
}

/** By the words after the program's file: `central serve`, `agent run`. */
export function readTraces(
  log: string,
  programs: Readonly<Record<string, string>>,
): ReadonlyMap<string, Traced> {
  const dir = join(log, "..");
  const files = readdirSync(dir).filter((name) => name.startsWith(`${basename(log)}.`));
  const threads = new Map(
    files.map((name) => {
      const lines = readFileSync(join(dir, name), "latin1").split("\n");
      return [Number(name.slice(name.lastIndexOf(".") + 1)), lines] as const;
    }),
  );
  const parents = new Map<number, number>();
  const began = new Map<number, string>();
  for (const [pid, lines] of threads)
    for (const line of lines) {
      const child = /^(?:clone3?|v?fork)\(.*= (\d+)$/.exec(line)?.[1];
      if (child !== undefined) parents.set(Number(child), pid);
      if (!line.startsWith("execve(")) continue;
      for (const [name, words] of Object.entries(programs))
        if (line.includes(words)) began.set(pid, name);
    }
  const ownerOf = (pid: number | undefined): string | undefined =>
    pid === undefined ? undefined : (began.get(pid) ?? ownerOf(parents.get(pid)));
  const all = Map.groupBy(threads.keys(), ownerOf);
  return new Map(
    Object.keys(programs).map((name) => {
      const lines = all.get(name)?.flatMap((pid) => threads.get(pid) ?? []) ?? [];
      return [name, judge(lines)] as const;
    }),
  );
}

function judge(lines: readonly string[]): Traced {
  const [syscalls, families, commands] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const [written, kernelFiles] = [new Set<string>(), new Set<string>()];
  for (const line of lines) {
    const call = /^(\w+)\(/.exec(line)?.[1];
    if (call === undefined) continue;
    syscalls.add(call);
    const family = /^socket(?:pair)?\((\w+)/.exec(line)?.[1];
    if (family !== undefined) families.add(family);
    const path = /"((?:[^"\\]|\\.)*)"/.exec(line)?.[1] ?? "";
    if (call === "execve") commands.add(basename(path));
    if (isWrite(call, line)) written.add(path);
    // Which file systems are looked at is the host's: those that are mounted.
    else if (call !== "statfs" && /^\/(?:proc|sys|dev)\//.test(path)) kernelFiles.add(path);
  }
  return { syscalls, families, commands, written, kernelFiles };
}

function isWrite(call: string, line: string): boolean {
  if (/^(?:open|openat|openat2)$/.test(call)) return /O_(?:WRONLY|RDWR|CREAT|TRUNC)/.test(line);
  return /^(?:creat|mkdir|rmdir|rename|unlink|symlink|link|truncate|chmod|fchmodat)/.test(call);
}
