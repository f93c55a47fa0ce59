// Compiles the bot sets into one of two arenas. Unchanged sets are copied from the arena in force, small
// changes are applied to the set that is held, and only the rest is read from agent.db. Equal sets of several
// hosts are stored once.

import { AccelError } from "../../../core/faults.ts";
import type { AddressTablePlan, AddressTableRef } from "../../../core/addresses/address-table.ts";
import type { CompiledSet } from "../../../core/serving/compose-state.ts";
import {
  copyColumn,
  isPauseDue,
  noPause,
  type Pause,
} from "../../../core/addresses/range-pause.ts";
import {
  changeRangeSet,
  planTable,
  RangeSetBuilder,
  type RangeSet,
} from "../../../core/addresses/range-set.ts";
import { elementKey, emptySetDigest, type SetElement } from "../../../core/addresses/set-digest.ts";
import type { Sqlite, Statement } from "../../../base/sqlite.ts";
import type { Arenas, PlacedTables, SetDelta, SetVersion } from "./table-messages.ts";

/**
 * The address space of each arena; only what the tables take is resident. It has room for 80 million IPv4
 * ranges or 25 million IPv6 ranges.
 */
export const arenaBytesMax = 2 ** 30;
const growBytes = 2 ** 20;
/** Reading a row counts as this many steps of other loops. */
const slowSteps = 32;
/** The most elements of all remembered changes together; beyond that, reading anew is as fast. */
const deltaElementsMax = 20_000;

type Place = { readonly at: number; readonly bytes: number };
/** The places of sets by their digest. */
type Layout = ReadonlyMap<string, Place>;

/** The compiled sets by `kind/host`, all in one arena. */
export type BuiltTables = {
  readonly arena: 0 | 1;
  readonly sets: ReadonlyMap<string, CompiledSet>;
};

export function builtTables({ arena, sets }: PlacedTables, arenas: Arenas): BuiltTables {
  const buffer = arenas[arena];
  const compiled = sets.flatMap(({ host, kind, version, at }) =>
    at === null ? [] : [[`${kind}/${host}`, { version, table: { buffer, at } }] as const],
  );
  return { arena, sets: new Map(compiled) };
}

export function openArenas(bytesMax = arenaBytesMax): Arenas {
  const open = (): SharedArrayBuffer => new SharedArrayBuffer(0, { maxByteLength: bytesMax });
  return [open(), open()];
}

export class TableMaker {
  readonly #arenas: Arenas;
  readonly #layouts: [Layout, Layout] = [new Map(), new Map()];
  readonly #find: Statement<[host: string, kind: string], SetVersion>;
  readonly #elements: Statement<[host: string, kind: string], [bot: string, range: string]>;
  readonly #readOne: (set: SetVersion) => SetVersion | undefined;
  /** The changes by the digest that they lead to. */
  readonly #deltas = new Map<string, SetDelta>();
  #deltaElements = 0;
  /** The sets of the last build, by digest. */
  #held = new Map<string, RangeSet>();
  readonly #empty = new RangeSetBuilder().build();
  readonly #pause: Pause;

  /** `pause` is called many times in each build. */
  constructor(db: Sqlite, arenas: Arenas, pause: Pause = noPause) {
    this.#arenas = arenas;
    this.#pause = pause;
    this.#find = db.prepare(
      "SELECT host, kind, version, count, digest FROM bot_set WHERE host = ? AND kind = ?",
    );
    // The order is that of the key, so names come ascending.
    this.#elements = db
      .prepare<[host: string, kind: string], [bot: string, range: string]>(
        "SELECT bot, range FROM bot_element WHERE host = ? AND kind = ? ORDER BY bot",
      )
      .raw();
    // One transaction reads version and elements as of the same moment.
    this.#readOne = db.transaction((set: SetVersion) => this.#read(set));
  }

  /**
   * Remembers a change that was committed. The memory is bounded; a set whose change was forgotten is read
   * anew.
   */
  note(delta: SetDelta): void {
    this.#forget(delta.after);
    this.#deltas.set(delta.after, delta);
    this.#deltaElements += delta.added.length + delta.removed.length;
    for (const oldest of this.#deltas.keys()) {
      if (this.#deltaElements <= deltaElementsMax) return;
      this.#forget(oldest);
    }
  }

  #forget(digest: string): void {
    const delta = this.#deltas.get(digest);
    if (delta === undefined) return;
    this.#deltas.delete(digest);
    this.#deltaElements -= delta.added.length + delta.removed.length;
  }

  /**
   * Compiles these sets, each at the stated version or newer, into the arena that is not in force. If all of
   * them lie in the arena in force already, nothing is written. Throws SETS_NOT_COMPILED if they do not fit.
   */
  build(sets: readonly SetVersion[], inForce: 0 | 1): PlacedTables {
    const known = this.#layouts[inForce];
    const found: SetVersion[] = [];
    const held = new Map<string, RangeSet>();
    for (const set of sets) {
      const now = held.has(set.digest) ? set : this.#load(set, held);
      if (now !== undefined) found.push(now);
    }
    this.#held = held;
    const digests = new Set(found.filter(({ count }) => count > 0).map(({ digest }) => digest));
    const isKnown = [...digests].every((digest) => known.has(digest));
    const arena = isKnown ? inForce : inForce === 0 ? 1 : 0;
    if (!isKnown) this.#write(arena, [...digests]);
    const layout = this.#layouts[arena];
    const placed = found.map((set) => ({ ...set, at: layout.get(set.digest)?.at ?? null }));
    return { arena, sets: placed };
  }

  /** Returns the set as it is now, with its ranges in `held`; undefined if it no longer exists. */
  #load(set: SetVersion, held: Map<string, RangeSet>): SetVersion | undefined {
    const ranges = this.#held.get(set.digest) ?? this.#follow(set.digest);
    if (ranges !== undefined) {
      held.set(set.digest, ranges);
      return set;
    }
    const now = this.#readOne(set);
    const read = now === undefined ? undefined : this.#held.get(now.digest);
    if (now !== undefined && read !== undefined) held.set(now.digest, read);
    return now;
  }

  /** Follows the changes back to a set that is held, and applies all of them to it in one step. */
  #follow(digest: string): RangeSet | undefined {
    const chain: SetDelta[] = [];
    let at = digest;
    while (at !== emptySetDigest && !this.#held.has(at)) {
      const delta = this.#deltas.get(at);
      if (delta === undefined || chain.length > this.#deltas.size) return undefined;
      chain.push(delta);
      at = delta.before;
    }
    const start = this.#held.get(at) ?? this.#empty;
    const added = new Map<string, SetElement>();
    const removed = new Map<string, SetElement>();
    for (const delta of chain.toReversed()) {
      for (const element of delta.removed)
        if (!added.delete(elementKey(element))) removed.set(elementKey(element), element);
      for (const element of delta.added)
        if (!removed.delete(elementKey(element))) added.set(elementKey(element), element);
    }
    return changeRangeSet(start, [...added.values()], [...removed.values()], this.#pause);
  }

  #read({ host, kind }: SetVersion): SetVersion | undefined {
    const now = this.#find.get(host, kind);
    if (now === undefined || now.count === 0 || this.#held.has(now.digest)) return now;
    const builder = new RangeSetBuilder(this.#pause);
    let read = 0;
    for (const [bot, range] of this.#elements.iterate(host, kind)) {
      if (isPauseDue(read++ * slowSteps)) this.#pause();
      builder.add(bot, range);
    }
    this.#held.set(now.digest, builder.build());
    return now;
  }

  #write(arena: 0 | 1, digests: readonly string[]): void {
    const from = arena === 0 ? 1 : 0;
    const copied = this.#layouts[from];
    const buffer = this.#arenas[arena];
    const layout = new Map<string, Place>();
    const plans = new Map<string, AddressTablePlan>();
    let end = 0;
    for (const digest of digests) {
      const set = this.#held.get(digest);
      const old = copied.get(digest);
      if (old === undefined && set !== undefined) plans.set(digest, planTable(set, this.#pause));
      const bytes = old?.bytes ?? plans.get(digest)?.bytes ?? 0;
      layout.set(digest, { at: end, bytes });
      end += bytes;
    }
    this.#layouts[arena] = new Map(); // Nothing in the arena counts until all is written.
    makeRoom(buffer, end);
    for (const [digest, { at }] of layout) {
      const old = copied.get(digest);
      if (old === undefined) plans.get(digest)?.write({ buffer, at });
      else this.#copy(from, old, { buffer, at });
    }
    this.#layouts[arena] = layout;
  }

  #copy(from: 0 | 1, { at, bytes }: Place, to: AddressTableRef): void {
    const words = bytes / 4;
    const source = new Uint32Array(this.#arenas[from], at, words);
    copyColumn(source, new Uint32Array(to.buffer, to.at, words), 0, this.#pause);
  }
}

function makeRoom(buffer: SharedArrayBuffer, bytes: number): void {
  if (bytes <= buffer.byteLength) return;
  const wanted = Math.ceil(bytes / growBytes) * growBytes;
  if (bytes > buffer.maxByteLength)
    throw new AccelError(
      "SETS_NOT_COMPILED",
      `the bot sets take ${bytes} bytes, the arena has ${buffer.maxByteLength}`,
    );
  buffer.grow(Math.min(wanted, buffer.maxByteLength));
}
