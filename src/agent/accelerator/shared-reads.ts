// Reads of connections into one memory that all connections of a worker share. Node otherwise allocates 64 KiB for each read, shrinks them to what has come, and leaves
// them to its garbage collector. What is read in large pieces is not copied: then the memory goes with the piece.
//
// Node offers this for sockets that a program opens (`onread`), not for those that a server accepts: theirs get it by the same inner properties. Where this Node has
// none, nothing is shared, and everything comes as data.

import { Socket } from "node:net";

/** As much as Node reads at once. */
const memoryBytes = 64 * 1024;
/** Pieces of this size and more are given away with their memory: to copy them would cost more than other memory. */
const largeBytes = 16 * 1024;
const memory = Buffer.allocUnsafeSlow(memoryBytes);

/** Takes what was read. Whatever is to stay as it is goes through `kept`. */
type Take = (bytes: Buffer) => void;

/** What Node keeps of a socket with `onread`: its memory, what is called with the count of bytes, and what gives the next memory. */
type Inner = Readonly<Record<"memory" | "onRead" | "nextMemory", symbol>>;
type InnerSocket = Socket & {
  readonly _handle?: { readonly useUserBuffer?: (memory: Uint8Array) => void } | null;
};

const inner = findInner();

function findInner(): Inner | undefined {
  const probe = new Socket({ onread: { buffer: memory, callback: () => true } });
  const symbols = Object.getOwnPropertySymbols(probe);
  const named = (name: string): symbol | undefined =>
    symbols.find((symbol) => symbol.description === name);
  const found = [named("kBuffer"), named("kBufferCb"), named("kBufferGen")] as const;
  probe.destroy();
  const [buffer, callback, generate] = found;
  if (buffer === undefined || callback === undefined || generate === undefined) return undefined;
  return { memory: buffer, onRead: callback, nextMemory: generate };
}

export class SharedReads {
  readonly #socket: Socket;
  /** False: nothing more is to be read for now. */
  #take: (bytes: Buffer) => boolean;
  #current: Buffer = memory;
  #next: Buffer = memory;

  /** From now on `take` is told what is read, and nothing comes as data. Undefined where that cannot be: nothing has changed then. */
  static of(socket: Socket, take: Take): SharedReads | undefined {
    const { _handle: handle } = socket as InnerSocket;
    // What was read before comes first, as data.
    if (inner === undefined || socket.readableLength > 0) return undefined;
    if (typeof handle?.useUserBuffer !== "function") return undefined;
    const reads = new SharedReads(socket, take);
    handle.useUserBuffer(memory);
    Object.assign(socket, {
      [inner.memory]: memory,
      [inner.onRead]: (bytes: number) => reads.#onRead(bytes),
      [inner.nextMemory]: () => (reads.#current = reads.#next),
    });
    return reads;
  }

  private constructor(socket: Socket, take: Take) {
    this.#socket = socket;
    this.#take = (bytes) => (take(bytes), true);
  }

  /** From now on what is read comes as data again. */
  leave(): void {
    this.#take = (bytes) => this.#socket.push(kept(bytes));
  }

  #onRead(bytes: number): boolean {
    const isLarge = bytes >= largeBytes;
    const read = this.#current.subarray(0, bytes);
    // What lies in memory of its own is its taker's.
    this.#next = isLarge ? Buffer.allocUnsafeSlow(memoryBytes) : memory;
    return this.#take(read);
  }
}

/** Returns bytes that stay as they are. */
export function kept<Bytes extends Uint8Array>(bytes: Bytes): Bytes | Buffer {
  return bytes.buffer === memory.buffer ? Buffer.from(bytes) : bytes;
}
