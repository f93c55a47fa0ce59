// Another hold of the sockets on which a process listens, as systemd's store of descriptors has it: taken out of the process by pidfd_getfd(2), and open until it is
// given up, whatever becomes of that process.

import { closeSync, readdirSync, readlinkSync } from "node:fs";
import { SocketCalls } from "../../src/base/socket-calls.ts";

const pidfdOpen = 434;
const pidfdGetfd = 438;

export class HeldSockets implements Disposable {
  readonly fds: readonly number[];

  private constructor(fds: readonly number[]) {
    this.fds = fds;
  }

  /** Holds what a process has of this port. Throws where that is nothing. */
  static of(pid: number, port: number): HeldSockets {
    const ffi = process.getBuiltinModule("node:ffi");
    const numbers = ["int64", "int64", "int64", "int64"] as const;
    const { syscall } = ffi.dlopen(null, {
      syscall: { arguments: numbers, return: "int64" },
    }).functions;
    const calls = new SocketCalls();
    const handle = Number(syscall(BigInt(pidfdOpen), BigInt(pid), 0n, 0n));
    const held: number[] = [];
    for (const name of socketsOf(pid)) {
      const fd = Number(syscall(BigInt(pidfdGetfd), BigInt(handle), BigInt(name), 0n));
      if (fd < 0) continue; // Closed meanwhile.
      if (held.length === 0 && calls.addressOf(fd)?.port === port) held.push(fd);
      else closeSync(fd);
    }
    closeSync(handle);
    if (held.length === 0) throw new Error(`process ${pid} has no socket at port ${port}`);
    return new HeldSockets(held);
  }

  /** Whoever waits there is reset. */
  [Symbol.dispose](): void {
    for (const fd of this.fds) closeSync(fd);
  }
}

function socketsOf(pid: number): readonly number[] {
  const names = readdirSync(`/proc/${pid}/fd`).map(Number);
  return names.filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith("socket:");
    } catch {
      return false; // Closed meanwhile.
    }
  });
}
