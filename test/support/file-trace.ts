// The file operations of a real process below one directory, as strace(1) writes them down: each with its bytes, in the order in which they ended.
//
// Syncs are delayed a little, so that what shows too early is seen by somebody before it is durable.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { DiskOperation } from "./disk-model.ts";

const syscalls = [
  ..."openat,open,creat,write,pwrite64,pwritev,pwritev2,writev,fsync,fdatasync,sync_file_range".split(
    ",",
  ),
  ..."rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,ftruncate,truncate".split(","),
  ..."link,linkat,symlink,symlinkat,copy_file_range,sendfile,fallocate".split(","),
];
/** Longer than any file of a recording. */
const textMax = 4 * 2 ** 20;

export const straceMissing = ((): string | undefined => {
  try {
    execFileSync("strace", ["-f", "-o", "/dev/null", "true"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "strace(1) is not installed or may not trace";
  }
})();

/** What stands before a command line so that its operations are written to `log`. The process keeps its own pid. */
export function tracing(log: string, syncDelayMs: number): readonly string[] {
  return [
    "strace",
    ..."-D -f --seccomp-bpf -ttt -T -y -xx -s".split(" "),
    String(textMax),
    `--inject=fsync,fdatasync:delay_enter=${syncDelayMs * 1_000}`,
    `--trace=${syscalls.join(",")}`,
    "-o",
    log,
  ];
}

/** Asynchronous file operations must be syscalls of their own. */
export const tracingEnv = { UV_USE_IO_URING: "0" };

export type TracedOperation = {
  readonly operation: DiskOperation;
  /** Wall clock; when it had ended. */
  readonly endedMs: number;
};

/** Whether the process that was traced has ended and all of it is written. */
export const hasEnded = (log: string, pid: number): boolean =>
  new RegExp(`^${pid} .*\\+\\+\\+ `, "m").test(readFileSync(log, "latin1"));

/** Paths are below `root`; those that `isOf` does not name are left out. Throws on a call that is not understood. */
export function readTrace(
  log: string,
  root: string,
  isOf: (path: string) => boolean,
): readonly TracedOperation[] {
  const reader = new TraceReader(root, isOf);
  for (const line of readFileSync(log, "latin1").split("\n")) reader.read(line);
  return reader.operations;
}

type Begun = { readonly text: string; readonly sync: number | undefined };

class TraceReader {
  readonly operations: TracedOperation[] = [];
  readonly #root: string;
  readonly #isOf: (path: string) => boolean;
  /** Thread → the call that it is in. */
  readonly #begun = new Map<string, Begun>();
  #syncs = 0;

  constructor(root: string, isOf: (path: string) => boolean) {
    this.#root = root;
    this.#isOf = isOf;
  }

  read(line: string): void {
    const [, thread = "", at = "", text = ""] = /^(\d+) +(\d+\.\d+) (.*)$/.exec(line) ?? [];
    if (!/^[a-z<]/.test(text)) return;
    const atMs = Number(at) * 1_000;
    const halved = / <unfinished \.\.\.>$/.exec(text);
    if (halved !== null) {
      const first = text.slice(0, halved.index);
      const sync = this.#beginSync(first, atMs);
      this.#begun.set(thread, { text: first, sync });
      return;
    }
    const resumed = /^<\.\.\. \w+ resumed>/.exec(text);
    const begun = resumed === null ? undefined : this.#begun.get(thread);
    if (resumed !== null && begun === undefined) return;
    this.#begun.delete(thread);
    const whole = begun === undefined ? text : begun.text + text.slice(resumed?.[0].length);
    const [, call = "", ret = "", tookS = "0"] =
      /^(.*)\)\s+= (-?\d+)(?:<[^>]*>(?:\(deleted\))?)?[^<]*(?:<([\d.]+)>)?$/.exec(whole) ?? [];
    if (ret === "" || ret.startsWith("-")) return; // What failed changed nothing.
    const endedMs = begun === undefined ? atMs + Number(tookS) * 1_000 : atMs;
    if (/^f(?:data)?sync\(/.test(call)) {
      const sync = begun === undefined ? this.#beginSync(call, atMs) : begun.sync;
      if (sync !== undefined) this.#add({ kind: "synced", sync }, endedMs);
      return;
    }
    const operation = this.#operation(call, Number(ret));
    if (operation !== undefined) this.#add(operation, endedMs);
  }

  #add(operation: DiskOperation, endedMs: number): void {
    this.operations.push({ operation, endedMs });
  }

  #beginSync(call: string, atMs: number): number | undefined {
    if (!/^f(?:data)?sync\(/.test(call)) return undefined;
    const fd = this.#file(call);
    if (fd === undefined) return undefined;
    this.#add({ kind: "syncing", fd, sync: ++this.#syncs }, atMs);
    return this.#syncs;
  }

  #operation(call: string, ret: number): DiskOperation | undefined {
    const name = call.slice(0, call.indexOf("("));
    const texts = [...call.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex = ""]) =>
      bytesOf(hex),
    );
    const paths = texts.map((bytes) => this.#below(bytes.toString()));
    const [path, to] = paths;
    switch (name) {
      case "openat":
        return path === undefined ? undefined : opened(call, path, ret);
      case "mkdir":
      case "unlink":
        return path === undefined ? undefined : { kind: name, path };
      case "rmdir":
        return path === undefined ? undefined : { kind: "unlink", path };
      case "rename":
      case "link":
        if (path !== undefined && to !== undefined) return { kind: name, from: path, to };
        if (path === undefined && to === undefined) return undefined;
        break;
      case "write":
      case "pwrite64": {
        const fd = this.#file(call);
        if (fd === undefined) return undefined;
        const bytes = (texts[0] ?? Buffer.alloc(0)).subarray(0, ret);
        const at = name === "write" ? undefined : Number(/, (\d+)$/.exec(call)?.[1]);
        return { kind: "write", fd, bytes, at };
      }
      case "ftruncate": {
        const fd = this.#file(call);
        const length = Number(/, (\d+)$/.exec(call)?.[1]);
        return fd === undefined ? undefined : { kind: "truncate", fd, length };
      }
    }
    const isElsewhere = paths.every((one) => one === undefined) && this.#file(call) === undefined;
    if (isElsewhere) return undefined;
    throw new Error(`a file operation that is not understood: ${call.slice(0, 200)}`);
  }

  /** The first argument, when it is a file of ours. */
  #file(call: string): number | undefined {
    const [, fd = "", hex = ""] = /\((\d+)<((?:\\x[0-9a-f]{2})*)>/.exec(call) ?? [];
    if (fd === "" || this.#below(bytesOf(hex).toString()) === undefined) return undefined;
    return Number(fd);
  }

  #below(path: string): string | undefined {
    if (path === this.#root) return "";
    if (!path.startsWith(`${this.#root}/`)) return undefined;
    const below = path.slice(this.#root.length + 1);
    return this.#isOf(below) ? below : undefined;
  }
}

function opened(call: string, path: string, fd: number): DiskOperation {
  return {
    kind: "open",
    fd,
    path,
    creates: call.includes("O_CREAT"),
    truncates: call.includes("O_TRUNC"),
    appends: call.includes("O_APPEND"),
  };
}

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll("\\x", ""), "hex");
