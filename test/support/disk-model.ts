// A disk as a power loss finds it: of each file what was written and what was synced, of each directory which names it has and which of them were synced.
//
// A file's bytes survive when the file was synced after they were written, its name when the directory was synced after it got the name. What was not
// synced may survive all the same, wholly or in part: the endings are the ways in which that happens.

import { mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Bytes at a place, or another length. */
type Write = { readonly at: number; readonly bytes: Buffer } | { readonly length: number };
type FileNode = {
  readonly kind: "file";
  bytes: Buffer;
  synced: Buffer;
  /** Since then. */
  unsynced: readonly Write[];
  /** The latest sync that has ended. */
  lastSync: number;
};
type DirectoryNode = {
  readonly kind: "directory";
  names: Map<string, Node>;
  synced: Map<string, Node>;
  lastSync: number;
};
type Node = FileNode | DirectoryNode;

export type DiskOperation =
  | {
      readonly kind: "open";
      readonly fd: number;
      readonly path: string;
      readonly creates: boolean;
      readonly truncates: boolean;
      readonly appends: boolean;
    }
  | {
      readonly kind: "write";
      readonly fd: number;
      readonly bytes: Buffer;
      /** Undefined: where the last one ended. */
      readonly at: number | undefined;
    }
  | { readonly kind: "truncate"; readonly fd: number; readonly length: number }
  /** What is there when a sync begins is durable when it has ended. */
  | { readonly kind: "syncing"; readonly fd: number; readonly sync: number }
  | { readonly kind: "synced"; readonly sync: number }
  | { readonly kind: "rename"; readonly from: string; readonly to: string }
  /** A second name. */
  | { readonly kind: "link"; readonly from: string; readonly to: string }
  | { readonly kind: "unlink"; readonly path: string }
  | { readonly kind: "mkdir"; readonly path: string };

/** Path below the root → content; null: a directory. */
export type Tree = ReadonlyMap<string, Buffer | null>;

type Handle = { readonly node: Node; readonly appends: boolean; at: number };

/** How much of a file comes through, and whether all names of a directory do; `no` counts files and directories on the way. */
type Ending = {
  readonly names: (no: number) => boolean;
  readonly bytes: (file: FileState, no: number) => Buffer;
};
type FileState = Pick<FileNode, "bytes" | "synced" | "unsynced">;

/** Sizes came through, half of the bytes did. */
function torn({ bytes, synced }: FileState): Buffer {
  const result = Buffer.alloc(bytes.length);
  synced.copy(result);
  const half = Math.floor(bytes.length / 2);
  bytes.copy(result, 0, 0, half);
  return result;
}

/** The disk wrote in an order of its own. */
function shuffled({ synced, unsynced }: FileState): Buffer {
  return unsynced.filter((_, no) => no % 2 === 1).reduce(written, synced);
}

export const endings = {
  "everything came through": { names: () => true, bytes: ({ bytes }) => bytes },
  "what was not synced is gone": { names: () => false, bytes: ({ synced }) => synced },
  "names came through, bytes did not": { names: () => true, bytes: ({ synced }) => synced },
  "names and sizes came through, half of the bytes": { names: () => true, bytes: torn },
  "names came through, and every other write": { names: () => true, bytes: shuffled },
  "every other file and directory came through": {
    names: (no) => no % 2 === 0,
    bytes: ({ bytes, synced }, no) => (no % 2 === 0 ? bytes : synced),
  },
  "the others came through": {
    names: (no) => no % 2 === 1,
    bytes: ({ bytes, synced }, no) => (no % 2 === 1 ? bytes : synced),
  },
} as const satisfies Readonly<Record<string, Ending>>;
export type EndingName = keyof typeof endings;

const directory = (): DirectoryNode => ({
  kind: "directory",
  names: new Map(),
  synced: new Map(),
  lastSync: 0,
});
const file = (): FileNode => ({
  kind: "file",
  bytes: Buffer.alloc(0),
  synced: Buffer.alloc(0),
  unsynced: [],
  lastSync: 0,
});

/** A copy: what was synced, or is being, is the content of that moment. */
function written(before: Buffer, write: Write): Buffer {
  const isWrite = "bytes" in write;
  const end = isWrite ? write.at + write.bytes.length : write.length;
  const after = Buffer.alloc(isWrite ? Math.max(before.length, end) : end);
  before.copy(after);
  if (isWrite) write.bytes.copy(after, write.at);
  return after;
}

function change(node: FileNode, write: Write): void {
  node.bytes = written(node.bytes, write);
  node.unsynced = [...node.unsynced, write];
}

export class DiskModel {
  readonly #root = directory();
  readonly #handles = new Map<number, Handle>();
  readonly #syncs = new Map<number, () => void>();

  apply(operation: DiskOperation): void {
    switch (operation.kind) {
      case "open":
        return this.#open(operation);
      case "write":
        return this.#write(operation);
      case "truncate":
        return change(fileOf(this.#handle(operation.fd).node), { length: operation.length });
      case "syncing": {
        const { fd, sync } = operation;
        this.#syncs.set(sync, beginSync(this.#handle(fd).node, sync));
        return undefined;
      }
      case "synced":
        return this.#syncs.get(operation.sync)?.();
      case "link": {
        const node = this.#parent(operation.from).names.get(basename(operation.from));
        if (node === undefined) throw new Error(`${operation.from} is linked and is not there`);
        this.#parent(operation.to).names.set(basename(operation.to), node);
        return undefined;
      }
      case "rename": {
        const node = this.#parent(operation.from).names.get(basename(operation.from));
        if (node === undefined) throw new Error(`${operation.from} is renamed and is not there`);
        this.#parent(operation.from).names.delete(basename(operation.from));
        this.#parent(operation.to).names.set(basename(operation.to), node);
        return undefined;
      }
      case "unlink":
        if (!this.#parent(operation.path).names.delete(basename(operation.path)))
          throw new Error(`${operation.path} is unlinked and is not there`);
        return undefined;
      case "mkdir":
        this.#parent(operation.path).names.set(basename(operation.path), directory());
        return undefined;
    }
  }

  /** What another start finds. */
  after(name: EndingName): Tree {
    const tree = new Map<string, Buffer | null>();
    let no = 0;
    const ending: Ending = endings[name];
    const walk = (at: string, { names, synced }: DirectoryNode): void => {
      const kept = ending.names(no++) ? names : synced;
      for (const [own, node] of [...kept].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
        const path = at === "" ? own : `${at}/${own}`;
        if (node.kind === "file") tree.set(path, ending.bytes(node, no++));
        else {
          tree.set(path, null);
          walk(path, node);
        }
      }
    };
    walk("", this.#root);
    return tree;
  }

  #open({ fd, path, creates, truncates, appends }: DiskOperation & { kind: "open" }): void {
    const parent = path === "" ? undefined : this.#parent(path);
    let node = parent === undefined ? this.#root : parent.names.get(basename(path));
    if (node === undefined) {
      if (!creates) throw new Error(`${path} is opened and is not there`);
      node = file();
      parent?.names.set(basename(path), node);
    }
    if (truncates) change(fileOf(node), { length: 0 });
    this.#handles.set(fd, { node, appends, at: 0 });
  }

  #write({ fd, bytes, at }: DiskOperation & { kind: "write" }): void {
    const handle = this.#handle(fd);
    const node = fileOf(handle.node);
    const from = at ?? (handle.appends ? node.bytes.length : handle.at);
    change(node, { at: from, bytes });
    if (at === undefined) handle.at = from + bytes.length;
  }

  #handle(fd: number): Handle {
    const handle = this.#handles.get(fd);
    if (handle === undefined) throw new Error(`file ${fd} is not open`);
    return handle;
  }

  #parent(path: string): DirectoryNode {
    let at: Node = this.#root;
    for (const name of dirname(path).split("/")) {
      if (name === ".") continue;
      const next: Node | undefined = at.names.get(name);
      if (next?.kind !== "directory") throw new Error(`${path}: ${name} is no directory`);
      at = next;
    }
    return at;
  }
}

function fileOf(node: Node): FileNode {
  if (node.kind !== "file") throw new Error("a directory is written to");
  return node;
}

/** What is to be done when it has ended. Of two that overlap, the one that began later counts. */
function beginSync(node: Node, sync: number): () => void {
  if (node.kind === "file") {
    const { bytes, unsynced } = node;
    const begun = new Set(unsynced);
    return () => {
      if (sync < node.lastSync) return;
      node.synced = bytes;
      node.unsynced = node.unsynced.filter((write) => !begun.has(write));
      node.lastSync = sync;
    };
  }
  const names = new Map(node.names);
  return () => {
    if (sync < node.lastSync) return;
    node.synced = names;
    node.lastSync = sync;
  };
}

export function writeTree(root: string, tree: Tree): void {
  mkdirSync(root, { recursive: true, mode: 0o700 });
  for (const [path, content] of tree) {
    if (content === null) mkdirSync(join(root, path), { mode: 0o700 });
    else writeFileSync(join(root, path), content, { mode: 0o600 });
  }
}
