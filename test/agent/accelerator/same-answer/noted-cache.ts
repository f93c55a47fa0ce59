// The cache in memory, which says of itself what a worker's cache notes of look-ups and of use, and holds some bodies only where they have to be opened.

import type { HeldEntries } from "../../../../src/agent/cache/worker/hot-lookups.ts";
import type {
  CommitOutcome,
  Entry,
  EntryKey,
  EntryMeta,
  Refreshed,
} from "../../../../src/agent/cache/entry.ts";
import { MemoryCache } from "../memory-cache.ts";
import type { StoredOf } from "./entries.ts";

const key = ({ path, query }: EntryKey): string => `${path}?${query}`;

export class NotedCache extends MemoryCache {
  /** Look-ups, uses and orders, in the order in which they came. */
  readonly notes: string[] = [];
  /** Bodies of these have to be opened. */
  readonly cold = new Set<number>();
  #lastId = 1_000_000;

  put({ host, path, query, meta, body, variants }: StoredOf, domain: string): void {
    const source = { ...meta, sourceNo: this.sourceNo() };
    const common = { domain, host, kind: "generated" as const, path, query, ...source };
    const base: Entry = { ...common, id: ++this.#lastId, size: body.length, form: null, baseId: null }; // prettier-ignore
    this.rows.set(base.id, { entry: base, body });
    for (const form of variants) {
      const made = Buffer.from(`${form}:${body.length}`);
      const id = ++this.#lastId;
      const entry: Entry = { ...common, id, size: made.length, form, baseId: base.id };
      this.rows.set(id, { entry, body: made });
    }
  }

  override find(asked: EntryKey): readonly Entry[] {
    this.notes.push(`look ${key(asked)}`);
    const found = super.find(asked).filter((entry) => this.servable(entry));
    for (const { id, vary } of found) if (vary === null) this.notes.push(`use ${id}`);
    return found;
  }

  override findHeld(asked: EntryKey): HeldEntries | undefined {
    const entries = this.holds ? super.find(asked) : [];
    return entries.length === 0 ? undefined : { entries, place: 0, mark: 0, turn: 0 };
  }

  override isCurrent({ entries }: HeldEntries): boolean {
    const [first] = entries;
    const now = first === undefined || !this.holds ? [] : super.find(first);
    return now.length === entries.length && entries.every((entry, at) => entry === now[at]);
  }

  override held(entry: Entry): Uint8Array | undefined {
    return this.cold.has(entry.id) ? undefined : super.held(entry);
  }

  override noteHit({ entries: [first, ...rest] }: HeldEntries, entry: Entry): void {
    if (first === undefined) throw new TypeError("a hit of nothing");
    this.notes.push(`look ${key(first)}`);
    for (const one of [first, ...rest])
      if (one.vary === null && this.servable(one)) this.notes.push(`use ${one.id}`);
    this.used(entry);
  }

  override used({ id, vary }: Entry): void {
    if (vary !== null) this.notes.push(`use ${id}`);
  }

  /** Is told alone, as what is invalidated below: what the origin says here would soon leave nothing that answers. */
  override async refresh(entry: Entry, refreshed: Refreshed): Promise<CommitOutcome> {
    this.notes.push(`refresh ${entry.id} ${JSON.stringify(refreshed)}`);
    return { kind: "stored", id: entry.id };
  }

  override noteStatic(asked: EntryKey, meta: EntryMeta, size: number): void {
    this.notes.push(`file ${key(asked)} ${meta.mime} ${size}`);
  }

  override async invalidate(asked: EntryKey): Promise<void> {
    this.notes.push(`invalidate ${key(asked)}`);
  }
}
