// Entries of keys that were looked up lately, in memory, one cache per worker: a hit asks SQLite neither for its row nor to parse its head.
//
// A list is what SQLite said while the mark of its key stood where it stands: every commit that stores, changes or codes an entry of the key moves the mark
// (shared-header.ts), whichever worker asked for it. What was cleared or evicted since is known by its bit. Lists without entries are not kept: a
// visitor can ask for as many keys as he likes.

import type { Entry, EntryKey } from "../entry.ts";
import { HotMemory } from "./hot-memory.ts";
import { keyPlace, type SharedHeader } from "../index/shared-header.ts";

/** What SQLite said of a key, and the mark under which it did. */
export type HeldEntries = {
  readonly entries: readonly Entry[];
  readonly place: number;
  readonly mark: number;
  /** Of the memory that it was held in. */
  readonly turn: number;
};

/** The bytes of one list and of one entry with its objects, and below of one header with its pair. */
const listBytes = 400;
const entryBytes = 500;
const headerBytes = 80;

export class HotLookups {
  readonly #lists: HotMemory<string, HeldEntries>;
  readonly #header: SharedHeader;
  /** Raised when everything is forgotten. */
  #turn = 0;

  constructor(bytesMax: number, header: SharedHeader) {
    this.#lists = new HotMemory(bytesMax);
    this.#header = header;
  }

  /** Finds what SQLite would answer, servable or not, if memory has it. */
  held(key: EntryKey): HeldEntries | undefined {
    const held = this.#lists.get(nameOf(key));
    return held !== undefined && this.isCurrent(held) ? held : undefined;
  }

  /** Whether SQLite would still answer so. */
  isCurrent({ place, mark, turn }: HeldEntries): boolean {
    return turn === this.#turn && this.#header.keyMark(place) === mark;
  }

  /** Finds what SQLite would answer, servable or not, newest first; calls `ask` where it must ask SQLite. */
  find(key: EntryKey, ask: () => readonly Entry[]): readonly Entry[] {
    const name = nameOf(key);
    const held = this.#lists.get(name);
    if (held !== undefined && this.isCurrent(held)) return held.entries;
    const place = held?.place ?? keyPlace(key);
    const mark = this.#header.keyMark(place); // Before SQLite is asked: a commit in between moves it.
    const entries = ask();
    if (entries.length === 0) this.#lists.drop(name);
    else this.#lists.put(name, { place, mark, entries, turn: this.#turn }, bytesOf(name, entries));
    return entries;
  }

  drop(key: EntryKey): void {
    this.#lists.drop(nameOf(key));
  }

  clear(): void {
    this.#turn++;
    this.#lists.clear();
  }
}

/** Hosts and kinds have no line breaks; a path with one cannot pass for a path and a query, for a query has none either. */
function nameOf({ domain, host, kind, path, query }: EntryKey): string {
  return `${domain}\n${host}\n${kind}\n${query}\n${path}`;
}

/** Two bytes a character: an upper bound. */
function bytesOf(name: string, entries: readonly Entry[]): number {
  let bytes = listBytes + 2 * name.length;
  for (const { headers, vary } of entries) {
    bytes += entryBytes;
    for (const [field, value] of headers) bytes += headerBytes + 2 * (field.length + value.length);
    if (vary !== null)
      for (const [field, value] of Object.entries(vary))
        bytes += headerBytes + 2 * (field.length + value.length);
  }
  return bytes;
}
