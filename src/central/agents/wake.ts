// The wake-up of channels and polls: at this central at once, at the others by the bus, and each second by a look at the store for what nobody said.

import type { Log } from "../../base/log.ts";
import { every } from "../../base/wait.ts";
import { messageOf } from "../../core/faults.ts";
import type { CentralBus } from "../cluster/bus.ts";
import { byKeys } from "../store/centrals/centrals.ts";
import type { Store } from "../store/engine/database.ts";
import { parts } from "../store/engine/parts.ts";
import { siteMarks } from "../store/journal/site-marks.ts";

/** Somebody who follows the journal of a site. */
export type JournalReader = {
  readonly siteId: number;
  /** The number of the last entry that it has; undefined while it takes none. */
  readonly seq: () => number | undefined;
  /** How often the site was shut before it came, and what is called when it is shut again. */
  readonly shut?: { readonly count: number; readonly close: () => void };
};

/** Tells that a site's journal grew. */
export type WakeBus = {
  /** The publisher calls after its commit. Listeners here are called in the same turn. */
  publish(deploymentSiteIds: Iterable<number>): void;
  /** The listener must not throw. */
  subscribe(listener: (deploymentSiteIds: readonly number[]) => void): Disposable;
  /** Has the store looked at for a reader, in case another central that wrote an entry died before it said so. */
  watch(reader: JournalReader): Disposable;
};

const unwatched: Disposable = { [Symbol.dispose]: () => undefined };

/** The wake-up within one process: nobody else writes the journal. */
export function createLocalWakeBus(): WakeBus {
  const listeners = new Set<(deploymentSiteIds: readonly number[]) => void>();
  return {
    publish(deploymentSiteIds) {
      const ids = [...new Set(deploymentSiteIds)];
      if (ids.length > 0) for (const listener of listeners) listener(ids);
    },
    subscribe(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => listeners.delete(listener) };
    },
    watch: () => unwatched,
  };
}

export type SharedWakeOptions = {
  readonly bus: Pick<CentralBus, "tell" | "hear" | "onMissed">;
  readonly store: Store;
  readonly log: Log;
  readonly lookMs?: number;
};

/** The wake-up between the centrals at one store. */
export class SharedWakes implements WakeBus, AsyncDisposable {
  readonly #options: SharedWakeOptions;
  readonly #here = createLocalWakeBus();
  readonly #readers = new Set<JournalReader>();
  readonly #hearing: readonly Disposable[];
  readonly #ending = new AbortController();
  readonly #looking: Promise<void>;

  constructor(options: SharedWakeOptions) {
    this.#options = options;
    const { bus, log, lookMs = 1_000 } = options;
    this.#hearing = [
      bus.hear((message) => {
        if (message.kind === "journal") this.#here.publish(message.site_ids);
      }),
      bus.onMissed(() => this.#here.publish([...this.#readers].map(({ siteId }) => siteId))),
    ];
    this.#looking = every(lookMs, async () => this.look(), {
      stop: this.#ending.signal,
      onError: (error) =>
        log.debug({ reason: messageOf(error) }, "the ends of journals could not be looked at"),
    });
  }

  publish(deploymentSiteIds: Iterable<number>): void {
    const ids = [...new Set(deploymentSiteIds)];
    this.#here.publish(ids);
    for (const part of parts(ids)) this.#options.bus.tell({ kind: "journal", site_ids: [...part] });
  }

  subscribe(listener: (deploymentSiteIds: readonly number[]) => void): Disposable {
    return this.#here.subscribe(listener);
  }

  watch(reader: JournalReader): Disposable {
    this.#readers.add(reader);
    return { [Symbol.dispose]: () => this.#readers.delete(reader) };
  }

  /** Wakes readers whose journal is longer than they know, and shuts out those whose site was shut. */
  async look(): Promise<void> {
    const ids = [...new Set([...this.#readers].map(({ siteId }) => siteId))];
    if (ids.length === 0) return;
    const marks = await byKeys(this.#options.store, async (tx) => siteMarks(tx, ids));
    const behind = new Set<number>();
    for (const { siteId, seq, shut } of this.#readers) {
      const mark = marks.get(siteId);
      if (mark === undefined) continue;
      if ((seq() ?? mark.headSeq) < mark.headSeq) behind.add(siteId);
      if (shut !== undefined && shut.count < mark.shutCount) shut.close();
    }
    this.#here.publish(behind);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    for (const hearing of this.#hearing) hearing[Symbol.dispose]();
    await this.#looking;
  }
}
