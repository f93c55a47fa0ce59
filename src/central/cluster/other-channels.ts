// The channels and polls of agents that other centrals hold, as this one knows of them: read from the store, and kept by what the others tell.

import { heardWithinMs } from "../../wire/channel.ts";
import type { ChannelRow } from "../store/centrals/channels.ts";

/** Told again every second; what is not told again was heard. */
const silentForMs = 3_000;
/** Told again every 3 s while it goes on, and for 10 s after a poll ended. */
const polledForMs = 7_000;

type Silent = { readonly ms: number; readonly toldMs: number };

export class OtherChannels {
  readonly #bySite = new Map<number, Map<number, ChannelRow>>();
  readonly #byId = new Map<number, ChannelRow>();
  readonly #silent = new Map<number, Silent>();
  readonly #polls = new Map<string, number>();

  /** Forgets what the store does not know any more. Returns the channels that are not known here yet, which the caller adds, and those that are gone. */
  compare(rows: readonly ChannelRow[]): {
    readonly appeared: readonly ChannelRow[];
    readonly left: readonly ChannelRow[];
  } {
    const ids = new Set(rows.map(({ id }) => id));
    const left = [...this.#byId.values()].filter(({ id }) => !ids.has(id));
    this.remove(left.map(({ id }) => id));
    return { appeared: rows.filter(({ id }) => !this.#byId.has(id)), left };
  }

  /** Of an instance the newest channel is kept: the others are being closed, or belong to a central that died. Returns those that were kept. */
  add(rows: readonly ChannelRow[]): readonly ChannelRow[] {
    return rows.filter((row) => {
      const known = this.newest(row.siteId, row.instanceId);
      if (known !== undefined && known.id > row.id) return false;
      this.supersede(row.siteId, row.instanceId, row.id);
      this.#byId.set(row.id, row);
      const ofSite = this.#bySite.get(row.siteId) ?? new Map<number, ChannelRow>();
      this.#bySite.set(row.siteId, ofSite.set(row.id, row));
      return true;
    });
  }

  /** Forgets channels of an instance that are older than this one, which may be another central's. */
  supersede(siteId: number, instanceId: string, id: number): void {
    const older = this.of(siteId).filter((row) => row.instanceId === instanceId && row.id < id);
    this.remove(older.map((row) => row.id));
  }

  /** Returns those that were known. */
  remove(ids: readonly number[]): readonly ChannelRow[] {
    const removed: ChannelRow[] = [];
    for (const id of ids) {
      const row = this.#byId.get(id);
      if (row === undefined) continue;
      removed.push(row);
      this.#byId.delete(id);
      this.#silent.delete(id);
      const ofSite = this.#bySite.get(row.siteId);
      ofSite?.delete(id);
      if (ofSite?.size === 0) this.#bySite.delete(row.siteId);
    }
    return removed;
  }

  removeOf(central: string): readonly ChannelRow[] {
    const rows = [...this.#byId.values()].filter((row) => row.central === central);
    return this.remove(rows.map(({ id }) => id));
  }

  silent(id: number, ms: number, nowMs: number): void {
    if (this.#byId.has(id)) this.#silent.set(id, { ms, toldMs: nowMs });
  }

  polled(siteId: number, instanceId: string, nowMs: number): void {
    const key = `${siteId} ${instanceId}`;
    this.#polls.delete(key);
    this.#polls.set(key, nowMs);
    for (const [oldest, toldMs] of this.#polls) {
      if (nowMs - toldMs < polledForMs) break;
      this.#polls.delete(oldest);
    }
  }

  isPolling(siteId: number, instanceId: string, nowMs: number): boolean {
    const toldMs = this.#polls.get(`${siteId} ${instanceId}`);
    return toldMs !== undefined && nowMs - toldMs < polledForMs;
  }

  of(siteId: number): readonly ChannelRow[] {
    return [...(this.#bySite.get(siteId)?.values() ?? [])];
  }

  /** The newest channel of that instance of an agent. */
  newest(siteId: number, instanceId: string): ChannelRow | undefined {
    return this.of(siteId)
      .filter((row) => row.instanceId === instanceId)
      .toSorted((one, other) => other.id - one.id)[0];
  }

  /**
   * For how long nothing was heard on each channel of the site, or of that instance, in milliseconds. Of one that was heard within `heardWithinMs` it is not known when: it
   * counts as just heard.
   */
  silences(siteId: number, instanceId: string | undefined, nowMs: number): readonly number[] {
    return this.of(siteId)
      .filter((row) => instanceId === undefined || row.instanceId === instanceId)
      .map(({ id }) => {
        const told = this.#silent.get(id);
        if (told === undefined || nowMs - told.toldMs > silentForMs) return 0;
        return Math.max(heardWithinMs + 1, told.ms + nowMs - told.toldMs);
      });
  }
}
