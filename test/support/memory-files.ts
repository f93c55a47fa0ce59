// A disk in memory for the spool: knows what a power loss leaves, fails where it is told to, and counts.
//
// After `kill` everything written is there. After `powerLoss` only what was synced: contents by datasync, names by syncDirectory; of contents that
// were not synced, a part may have come through.

import { dirname } from "node:path";
import type { SpoolFiles } from "../../src/agent/requests/spool/spool-files.ts";

export type FileOperation = keyof SpoolFiles;
type Inode = { bytes: Buffer; synced: Buffer; modifiedMs: number };

export function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: made by a test`), { code });
}

/** What was written since the last sync came through as far as `kept` says; behind it is what was there before, if anything was. */
function tornOf({ bytes, synced }: Inode, kept: number): Buffer {
  const written = bytes.findIndex((byte, at) => byte !== synced[at]);
  if (written < 0) return Buffer.from(bytes.byteLength < synced.byteLength ? synced : bytes);
  const through = written + Math.floor((bytes.byteLength - written) * kept);
  return Buffer.concat([bytes.subarray(0, through), synced.subarray(through)]);
}

/** Its size came through, its bytes did not. */
function grownOf({ bytes, synced }: Inode): Buffer {
  return Buffer.concat([synced, Buffer.alloc(Math.max(0, bytes.byteLength - synced.byteLength))]);
}

export class MemoryFiles implements SpoolFiles {
  /** Asked before each operation; what it returns is thrown. */
  fault: (operation: FileOperation, path: string) => Error | undefined = () => undefined;
  /** Bytes that all files together may have. */
  bytesMax = Number.MAX_SAFE_INTEGER;
  readonly operations: Partial<Record<FileOperation, number>> = {};
  #names = new Map<string, Inode>();
  #syncedNames = new Map<string, Inode>();
  readonly #open = new Map<number, { path: string; inode: Inode }>();
  #no = 0;
  #clockMs = 0;

  ensureDirectory(path: string): void {
    this.#do("ensureDirectory", path);
  }

  list(path: string): readonly string[] {
    this.#do("list", path);
    return [...this.#names.keys()]
      .filter((name) => dirname(name) === path)
      .map((name) => name.slice(path.length + 1));
  }

  stat(path: string): { bytes: number; modifiedMs: number; names: number } {
    this.#do("stat", path);
    const inode = this.#find(path);
    const names = [...this.#names.values()].filter((each) => each === inode).length;
    return { bytes: inode.bytes.byteLength, modifiedMs: inode.modifiedMs, names };
  }

  freeBytes(path: string): number {
    this.#do("freeBytes", path);
    return this.bytesMax - this.usedBytes;
  }

  create(path: string): number {
    this.#do("create", path);
    if (this.#names.has(path)) throw systemError("EEXIST");
    const inode = {
      bytes: Buffer.alloc(0),
      synced: Buffer.alloc(0),
      modifiedMs: ++this.#clockMs,
    };
    this.#names.set(path, inode);
    return this.#handle(path, inode);
  }

  open(path: string): number {
    this.#do("open", path);
    return this.#handle(path, this.#find(path));
  }

  write(file: number, bytes: Uint8Array, at: number): number {
    const { path, inode } = this.#handleOf(file);
    this.#do("write", path);
    const room = this.bytesMax - this.usedBytes + Math.max(0, inode.bytes.byteLength - at);
    const taken = bytes.subarray(0, Math.max(0, room));
    if (taken.byteLength === 0 && bytes.byteLength > 0) throw systemError("ENOSPC");
    const length = Math.max(inode.bytes.byteLength, at + taken.byteLength);
    const grown = Buffer.alloc(length);
    inode.bytes.copy(grown);
    grown.set(taken, at);
    inode.bytes = grown;
    inode.modifiedMs = ++this.#clockMs;
    return taken.byteLength;
  }

  truncate(file: number, bytes: number): void {
    const { path, inode } = this.#handleOf(file);
    this.#do("truncate", path);
    inode.bytes = inode.bytes.subarray(0, bytes);
  }

  datasync(file: number): void {
    const { path, inode } = this.#handleOf(file);
    this.#do("datasync", path);
    inode.synced = Buffer.from(inode.bytes);
  }

  close(file: number): void {
    this.#do("close", this.#handleOf(file).path);
    this.#open.delete(file);
  }

  read(path: string, from: number, to?: number): Uint8Array<ArrayBuffer> {
    this.#do("read", path);
    return Uint8Array.from(this.#find(path).bytes.subarray(from, to));
  }

  rename(from: string, to: string): void {
    this.#do("rename", from);
    this.#names.set(to, this.#find(from));
    this.#names.delete(from);
  }

  link(path: string, to: string): void {
    this.#do("link", path);
    if (this.#names.has(to)) throw systemError("EEXIST");
    this.#names.set(to, this.#find(path));
  }

  unlink(path: string): void {
    this.#do("unlink", path);
    this.#find(path);
    this.#names.delete(path);
  }

  widenDirectory(path: string): void {
    this.#do("widenDirectory", path);
  }

  syncDirectory(path: string): void {
    this.#do("syncDirectory", path);
    const inside = ([name]: readonly [string, Inode]): boolean => dirname(name) === path;
    this.#syncedNames = new Map([
      ...[...this.#syncedNames].filter((entry) => !inside(entry)),
      ...[...this.#names].filter(inside),
    ]);
  }

  /** The process is gone; the machine is not. */
  kill(): void {
    this.#open.clear();
  }

  /**
   * `kept`: how much of what was not synced came through, 0 to 1. `names`: of directories what was synced, or everything, as a journal may have written
   * it. `zeros`: the size of what was not synced came through, its bytes did not.
   */
  powerLoss(
    kept: number,
    { names = "synced", zeros = false }: { names?: "synced" | "all"; zeros?: boolean } = {},
  ): void {
    this.#open.clear();
    if (names === "synced") this.#names = new Map(this.#syncedNames);
    for (const inode of new Set(this.#names.values())) {
      inode.bytes = zeros ? grownOf(inode) : tornOf(inode, kept);
      inode.synced = Buffer.from(inode.bytes);
    }
  }

  get usedBytes(): number {
    return [...new Set(this.#names.values())].reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
  }

  get openFiles(): number {
    return this.#open.size;
  }

  paths(): readonly string[] {
    return [...this.#names.keys()];
  }

  /** The content itself: what is changed in it is changed on the disk. */
  content(path: string): Buffer {
    return this.#find(path).bytes;
  }

  replace(path: string, bytes: Uint8Array): void {
    const inode = this.#find(path);
    inode.bytes = Buffer.from(bytes);
    inode.synced = Buffer.from(bytes);
  }

  #do(operation: FileOperation, path: string): void {
    this.operations[operation] = (this.operations[operation] ?? 0) + 1;
    const error = this.fault(operation, path);
    if (error !== undefined) throw error;
  }

  #find(path: string): Inode {
    const inode = this.#names.get(path);
    if (inode === undefined) throw systemError("ENOENT");
    return inode;
  }

  #handle(path: string, inode: Inode): number {
    this.#open.set(++this.#no, { path, inode });
    return this.#no;
  }

  #handleOf(file: number): { path: string; inode: Inode } {
    const handle = this.#open.get(file);
    if (handle === undefined) throw systemError("EBADF");
    return handle;
  }
}
