// The cache as the data plane knows it, in memory: the servable rule of the guarantees, with clears and faults that tests give.

import { setTimeout as sleep } from "node:timers/promises";
import type {
  ResponseCache,
  StoredStream,
  BodyWriter,
} from "../../../src/agent/accelerator/cached/cache-port.ts";
import type { HeldEntries } from "../../../src/agent/cache/worker/hot-lookups.ts";
import type {
  CommitOutcome,
  Entry,
  EntryKey,
  EntryMeta,
  Fetched,
  Refreshed,
  VariantForm,
} from "../../../src/agent/cache/entry.ts";

type Row = { readonly entry: Entry; readonly body: Uint8Array };

export class MemoryCache implements ResponseCache {
  readonly rows = new Map<number, Row>();
  readonly cleared: {
    no: number;
    matches: (key: EntryKey) => boolean;
    /** When a soft clear was given, ms; undefined: it is none. */
    softMs?: number;
  }[] = [];
  /** What tests turn: gates, and how bodies come. */
  isConfirmed = true;
  streams = false;
  /** Whether what is stored can be had at once, without opening it. */
  holds = true;
  /** Called between open() and its answer: where a clear can slip in. */
  whileOpening: (() => void) | undefined;
  takesChunks = true;
  /** False: it is known at the head that nothing is stored. */
  takesBodies = true;
  aborted = 0;
  refreshed = 0;
  outcomes: CommitOutcome[] = [];
  /** Of each commit. */
  readonly awaited: boolean[] = [];
  readonly fetched: (Fetched | undefined)[] = [];
  readonly usedIds: number[] = [];
  /** By entry id: the newest clear that its confirmation knew. */
  readonly #confirmed = new Map<number, number>();
  readonly #invalidated: EntryKey[] = [];
  #nextId = 1;

  sourceNo(): number {
    return this.cleared.length;
  }

  clearMark(key: EntryKey): number {
    const cleared = this.cleared.filter(({ matches }) => matches(key)).length;
    return cleared + this.invalidationMark(key);
  }

  invalidationMark(key: EntryKey): number {
    return this.#invalidated.filter((other) => sameUrl(other, key)).length;
  }

  confirmed(): boolean {
    return this.isConfirmed;
  }

  find(key: EntryKey): readonly Entry[] {
    return [...this.rows.values()]
      .map(({ entry }) => entry)
      .filter((entry) => sameUrl(entry, key))
      .toReversed();
  }

  findHeld(key: EntryKey): HeldEntries | undefined {
    if (!this.holds) return undefined;
    return { entries: this.find(key), place: 0, mark: 0, turn: 0 };
  }

  isCurrent({ entries }: HeldEntries): boolean {
    const [first] = entries;
    const now = first === undefined ? [] : this.find(first);
    return this.holds && now.length > 0 && entries.every((entry, at) => entry === now[at]);
  }

  held({ id }: Entry): Uint8Array | undefined {
    const isAtOnce = this.holds && !this.streams && this.whileOpening === undefined;
    return isAtOnce ? this.rows.get(id)?.body : undefined;
  }

  noteHit(_held: HeldEntries, entry: Entry): void {
    this.used(entry);
  }

  servable({ id, baseId }: Pick<Entry, "id" | "baseId">): boolean {
    const row = this.rows.get(id);
    if (row === undefined || this.#isCleared(row.entry, row.entry.sourceNo, false)) return false;
    return baseId === null || this.servable({ id: baseId, baseId: null });
  }

  softened(entry: Pick<Entry, "id" | "baseId">): boolean {
    return this.softenedSinceMs(entry) !== undefined;
  }

  softenedSinceMs({ id, baseId }: Pick<Entry, "id" | "baseId">): number | undefined {
    const base = this.rows.get(baseId ?? id)?.entry;
    if (base === undefined) return undefined;
    const knownNo = Math.max(base.sourceNo, this.#confirmed.get(base.id) ?? 0);
    return this.cleared.find(({ no, matches }) => no > knownNo && matches(base))?.softMs;
  }

  used({ id }: Entry): void {
    this.usedIds.push(id);
  }

  async open(entry: Entry): Promise<Uint8Array | StoredStream | undefined> {
    await Promise.resolve();
    this.whileOpening?.();
    const body = this.rows.get(entry.id)?.body;
    if (body === undefined || !this.streams) return body;
    return {
      async *[Symbol.asyncIterator]() {
        for (let at = 0; at < body.length; at += 7) yield body.subarray(at, at + 7);
      },
      async [Symbol.asyncDispose]() {},
    };
  }

  begin(key: EntryKey, invalidationMark: number): BodyWriter {
    const chunks: Uint8Array[] = [];
    return {
      write: async (chunk) => {
        chunks.push(chunk.slice());
        return this.takesChunks ? "storing" : "given-up";
      },
      mayStore: () => this.takesBodies,
      commit: async (meta, fetched) => {
        this.awaited.push(fetched?.isAwaited === true);
        this.fetched.push(fetched);
        await sleep(5); // As long as an index takes.
        if (this.invalidationMark(key) === invalidationMark)
          return this.#store(key, meta, Buffer.concat(chunks));
        this.outcomes.push({ kind: "blocked" });
        return { kind: "blocked" };
      },
      abort: () => void this.aborted++,
    };
  }

  async refresh(entry: Entry, refreshed: Refreshed): Promise<CommitOutcome> {
    await sleep(5);
    const row = this.rows.get(entry.id);
    if (row === undefined || !this.servable(entry)) return { kind: "blocked" };
    const { confirmedNo } = refreshed;
    const isLate = this.cleared.some(({ no, matches }) => no > confirmedNo && matches(entry));
    if (isLate) return { kind: "blocked" };
    this.#confirmed.set(entry.id, confirmedNo);
    this.rows.set(entry.id, { ...row, entry: { ...row.entry, ...refreshed } });
    this.refreshed++;
    return { kind: "stored", id: entry.id };
  }

  async storeVariant(base: Entry, form: VariantForm, body: Uint8Array): Promise<CommitOutcome> {
    await sleep(5);
    if (!this.servable(base)) return { kind: "blocked" };
    return this.#store(base, base, body, body.length, { form, baseId: base.id });
  }

  noteStatic(key: EntryKey, meta: EntryMeta, size: number): void {
    this.#store(key, meta, Buffer.alloc(0), size);
  }

  /** As the cache does it: a number only where there is something to remove. */
  async invalidate(key: EntryKey): Promise<void> {
    this.#invalidated.push(key);
    if (this.find(key).length > 0) this.clear((other) => sameUrl(other, key));
  }

  /** A clear: from now on nothing that matches and was read before is servable. */
  clear(matches: (key: EntryKey) => boolean): void {
    this.cleared.push({ no: this.cleared.length + 1, matches });
  }

  /** A soft clear: what matches and was read before is stale from then on. */
  clearSoftly(matches: (key: EntryKey) => boolean, softMs: number): void {
    this.cleared.push({ no: this.cleared.length + 1, matches, softMs });
  }

  /** Servable entries. */
  get entries(): readonly Entry[] {
    return [...this.rows.values()]
      .map(({ entry }) => entry)
      .filter((entry) => this.servable(entry));
  }

  #store(
    key: EntryKey,
    meta: EntryMeta,
    body: Uint8Array,
    size = body.length,
    made: Pick<Entry, "form" | "baseId"> = { form: null, baseId: null },
  ): CommitOutcome {
    const id = this.#nextId++;
    const outcome: CommitOutcome = this.#isCleared(key, meta.sourceNo, made.form === null)
      ? { kind: "blocked" }
      : { kind: "stored", id };
    if (outcome.kind === "stored")
      this.rows.set(id, { entry: { ...key, ...meta, ...made, id, size }, body });
    this.outcomes.push(outcome);
    return outcome;
  }

  /** `softly`: soft clears count as well. */
  #isCleared(key: EntryKey, sourceNo: number, softly: boolean): boolean {
    return this.cleared.some(
      ({ no, matches, softMs }) =>
        no > sourceNo && (softly || softMs === undefined) && matches(key),
    );
  }
}

function sameUrl(a: EntryKey, b: EntryKey): boolean {
  return (
    a.domain === b.domain &&
    a.host === b.host &&
    a.kind === b.kind &&
    a.path === b.path &&
    a.query === b.query
  );
}
