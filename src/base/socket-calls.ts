// The system calls about sockets that Node does not offer, made through node:ffi: another descriptor of a socket, the address that a descriptor is bound to, the end of
// handshakes and of listening for whoever holds the socket, and a datagram that carries descriptors. The layouts are those of 64-bit Linux, whichever C library: socket(2), socket(7), unix(7), ip(7), ipv6(7),
// cmsg(3), shutdown(2).

import type { DynamicLibraryResult } from "node:ffi";
import { getSystemErrorName } from "node:util";
import { addressText } from "../core/addresses/address-text.ts";
import { AccelError } from "../core/faults.ts";
import type { ListenAddress } from "./settings-fields.ts";

const functions = {
  fcntl: { arguments: ["int32", "int32", "int32"], return: "int32" },
  getsockname: { arguments: ["int32", "buffer", "buffer"], return: "int32" },
  socket: { arguments: ["int32", "int32", "int32"], return: "int32" },
  accept4: { arguments: ["int32", "pointer", "pointer", "int32"], return: "int32" },
  shutdown: { arguments: ["int32", "int32"], return: "int32" },
  setsockopt: { arguments: ["int32", "int32", "int32", "buffer", "uint32"], return: "int32" },
  sendmsg: { arguments: ["int32", "buffer", "int32"], return: "int64" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

const setDescriptorFlags = 2; // F_SETFD
const duplicateCloseOnExec = 1_030; // F_DUPFD_CLOEXEC
const closeOnExec = 1; // FD_CLOEXEC
const getStatusFlags = 3; // F_GETFL
const setStatusFlags = 4; // F_SETFL
const doNotBlock = 0x800; // O_NONBLOCK
const acceptedFlags = 0x8_0000 | doNotBlock; // SOCK_CLOEXEC | SOCK_NONBLOCK
const receiving = 0; // SHUT_RD
const attachFilter = 26; // SO_ATTACH_FILTER
const detachFilter = 27; // SO_DETACH_FILTER
/** A `struct sock_filter` each: code, jt, jf, k. What begins a handshake (SYN without ACK) is dropped, and all else is taken. */
const noHandshakes = [
  [0x30, 0, 0, 13], // The flags of the TCP header.
  [0x54, 0, 0, 0x12], // SYN and ACK of them.
  [0x15, 0, 1, 0x02],
  [0x06, 0, 0, 0],
  [0x06, 0, 0, 0xffff_ffff],
] as const;
/** The most that wait at a socket: net.core.somaxconn as Linux has it. */
const waitingMax = 4_096;
/** A duplicate never becomes stdin, stdout or stderr, not even where one of them is closed. */
const firstDescriptor = 3;

const families = { unix: 1, four: 2, six: 10 };
const datagramCloseOnExec = 2 | 0x8_0000; // SOCK_DGRAM | SOCK_CLOEXEC
const doNotWaitOrSignal = 0x40 | 0x4000; // MSG_DONTWAIT | MSG_NOSIGNAL
const socketLevel = 1; // SOL_SOCKET
const rights = 1; // SCM_RIGHTS

/** sizeof(struct sockaddr_in6), the longest that is asked for. */
const addressBytes = 28;
const sunPathBytes = 108;

/** "full": the reader is behind. "failed": nobody reads there, or it cannot be reached. */
export type SendOutcome = "sent" | "full" | "failed";

export class SocketCalls {
  readonly #ffi: typeof import("node:ffi");
  /** Kept open: where no descriptor is left, the watchdog is to be fed all the same. */
  #datagrams: number | undefined;
  readonly #functions: DynamicLibraryResult<typeof functions>["functions"];

  /** Throws SYSTEM_UNSUPPORTED where Node has no node:ffi, or the C library lacks a function. */
  constructor() {
    this.#ffi = loadFfi();
    this.#functions = this.#ffi.dlopen(null, functions).functions;
  }

  /** Returns another descriptor of the same socket. Programs that are started do not inherit it. Throws DESCRIPTORS_USED_UP. */
  duplicate(fd: number): number {
    const made = this.#functions.fcntl(fd, duplicateCloseOnExec, firstDescriptor);
    if (made < 0)
      throw new AccelError(
        "DESCRIPTORS_USED_UP",
        `descriptor ${fd} cannot be duplicated: ${this.#errorName()}`,
      );
    return made;
  }

  /** Keeps programs that are started from inheriting a descriptor. */
  closeOnExec(fd: number): void {
    this.#functions.fcntl(fd, setDescriptorFlags, closeOnExec);
  }

  /**
   * Takes no new connection on a socket, whichever processes hold it, until `endListening` or `beginHandshakes`: who comes is not answered, and asks again after a second. Handshakes under way are
   * completed and can be accepted.
   */
  endHandshakes(fd: number): void {
    const filter = Buffer.alloc(8 * noHandshakes.length);
    for (const [at, [code, ifTrue, ifFalse, k]] of noHandshakes.entries()) {
      filter.writeUInt16LE(code, 8 * at);
      filter.writeUInt8(ifTrue, 8 * at + 2);
      filter.writeUInt8(ifFalse, 8 * at + 3);
      filter.writeUInt32LE(k, 8 * at + 4);
    }
    const program = Buffer.alloc(16); // struct sock_fprog
    program.writeUInt16LE(noHandshakes.length, 0);
    program.writeBigUInt64LE(this.#ffi.getRawPointer(filter), 8);
    this.#functions.setsockopt(fd, socketLevel, attachFilter, program, program.length);
  }

  /** Takes new connections again. A process that was killed may have left a socket without. */
  beginHandshakes(fd: number): void {
    this.#functions.setsockopt(fd, socketLevel, detachFilter, Buffer.alloc(4), 4);
  }

  /**
   * Ends listening on a socket, whichever processes hold it: whoever comes from now on is refused. Returns the connections that were waiting, which the caller closes.
   * Between the last one that is returned and the end of listening are two system calls: who comes there is reset, unless handshakes were ended before. A socket that was bound to a port by its number can be
   * listened on again.
   */
  endListening(fd: number): readonly number[] {
    const { accept4, fcntl, shutdown } = this.#functions;
    fcntl(fd, setStatusFlags, fcntl(fd, getStatusFlags, 0) | doNotBlock);
    const waiting: number[] = [];
    while (waiting.length < waitingMax) {
      const accepted = accept4(fd, null, null, acceptedFlags);
      if (accepted < 0) break;
      waiting.push(accepted);
    }
    shutdown(fd, receiving);
    this.beginHandshakes(fd);
    return waiting;
  }

  /** Returns the IP address and port that the socket is bound to; undefined for what is no IP socket. */
  addressOf(fd: number): ListenAddress | undefined {
    const address = Buffer.alloc(addressBytes);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(addressBytes);
    if (this.#functions.getsockname(fd, address, length) < 0) return undefined;
    const family = address.readUInt16LE(0);
    const port = address.readUInt16BE(2);
    if (family === families.four)
      return { host: addressText(4, Uint32Array.of(address.readUInt32BE(4))), port };
    if (family !== families.six) return undefined;
    const words = [8, 12, 16, 20].map((at) => address.readUInt32BE(at));
    return { host: addressText(6, Uint32Array.from(words)), port };
  }

  /**
   * Sends a datagram, with copies of descriptors, to a unix socket; `@` begins the name of an abstract one. Never waits and never throws.
   */
  send(path: string, text: string, descriptors: readonly number[] = []): SendOutcome {
    this.#datagrams ??= this.#openDatagrams();
    if (this.#datagrams === undefined) return "failed";
    const pointerTo = (bytes: Buffer): bigint => this.#ffi.getRawPointer(bytes);
    const message = layMessage({ path, text, descriptors, pointerTo });
    if (message === undefined) return "failed";
    if (this.#functions.sendmsg(this.#datagrams, message, doNotWaitOrSignal) >= 0n) return "sent";
    return ["EAGAIN", "ENOBUFS"].includes(this.#errorName()) ? "full" : "failed";
  }

  #openDatagrams(): number | undefined {
    const fd = this.#functions.socket(families.unix, datagramCloseOnExec, 0);
    return fd < 0 ? undefined : fd;
  }

  /** Of the call just made. */
  #errorName(): string {
    const errno = this.#ffi.getInt32(this.#functions.__errno_location());
    return errno > 0 ? getSystemErrorName(-errno) : "for an unknown reason";
  }
}

/** Node tells of node:ffi's experimental state on stderr when it is loaded. Operators are not to read it in the journal of each start. */
function loadFfi(): typeof import("node:ffi") {
  if (process.platform !== "linux" || !["x64", "arm64"].includes(process.arch))
    throw new AccelError(
      "SYSTEM_UNSUPPORTED",
      `this is ${process.platform} on ${process.arch}: sockets are handed on by Linux on x64 and arm64 only`,
    );
  const told = Object.getOwnPropertyDescriptor(process, "emitWarning");
  process.emitWarning = () => {};
  try {
    const ffi = process.getBuiltinModule("node:ffi");
    if (ffi !== undefined) return ffi;
  } finally {
    if (told !== undefined) Object.defineProperty(process, "emitWarning", told);
  }
  throw new AccelError("SYSTEM_UNSUPPORTED", `Node ${process.version} has no node:ffi`);
}

type Message = {
  readonly path: string;
  readonly text: string;
  readonly descriptors: readonly number[];
  readonly pointerTo: (bytes: Buffer) => bigint;
};

/**
 * Lays out a `struct msghdr` (56 bytes) and all that it points at, in one block of memory: the address, one `struct iovec`, the control message with the
 * descriptors, the text.
 */
function layMessage({ path, text, descriptors, pointerTo }: Message): Buffer | undefined {
  const name = Buffer.from(path);
  if (name.length >= sunPathBytes) return undefined; // No socket has such a name.
  if (name[0] === "@".charCodeAt(0)) name[0] = 0;
  const body = Buffer.from(text);
  const controlBytes = 16 + 4 * descriptors.length;
  const at = {
    address: 56,
    vector: 168,
    control: 184,
    body: 184 + Math.ceil(controlBytes / 8) * 8,
  };
  const message = Buffer.alloc(at.body + body.length);
  const base = pointerTo(message);
  message.writeUInt16LE(families.unix, at.address);
  name.copy(message, at.address + 2);
  body.copy(message, at.body);
  message.writeBigUInt64LE(base + BigInt(at.address), 0);
  // The name of an abstract socket has no byte behind it.
  message.writeUInt32LE(2 + name.length + (name[0] === 0 ? 0 : 1), 8);
  message.writeBigUInt64LE(base + BigInt(at.vector), 16);
  message.writeBigUInt64LE(1n, 24);
  message.writeBigUInt64LE(base + BigInt(at.body), at.vector);
  message.writeBigUInt64LE(BigInt(body.length), at.vector + 8);
  if (descriptors.length === 0) return message;
  message.writeBigUInt64LE(base + BigInt(at.control), 32);
  message.writeBigUInt64LE(BigInt(Math.ceil(controlBytes / 8) * 8), 40);
  message.writeBigUInt64LE(BigInt(controlBytes), at.control);
  message.writeInt32LE(socketLevel, at.control + 8);
  message.writeInt32LE(rights, at.control + 12);
  for (const [i, fd] of descriptors.entries()) message.writeInt32LE(fd, at.control + 16 + 4 * i);
  return message;
}
