// The channels that this central holds, as the others are to know of them: written to the store and told, whatever fails meanwhile.

import { setTimeout as sleepFor } from "node:timers/promises";
import type { Log } from "../../base/log.ts";
import { sleep } from "../../base/wait.ts";
import { failureFacts } from "../store/engine/postgres-faults.ts";
import { byKeys } from "../store/centrals/centrals.ts";
import {
  addChannels,
  removeChannels,
  removeChannelsOf,
  type ChannelOf,
} from "../store/centrals/channels.ts";
import type { Store } from "../store/engine/database.ts";
import { parts } from "../store/engine/parts.ts";
import type { CentralBus } from "./bus.ts";

/** Agents that come together are written together. */
const gatherMs = 10;
const failedPauseMs = 1_000;

export type OwnChannel = ChannelOf & {
  /** Of its row; undefined until that is written. */
  id: number | undefined;
};

export type OwnChannelsOptions = {
  readonly store: Store;
  readonly bus: CentralBus;
  readonly log: Log;
  /** Called when the row of a channel is written. */
  readonly onWritten: (channel: OwnChannel & { readonly id: number }) => void;
};

export class OwnChannels implements AsyncDisposable {
  readonly #options: OwnChannelsOptions;
  readonly #open = new Map<string, Set<OwnChannel>>();
  #unwritten = new Set<OwnChannel>();
  #leaving: number[] = [];
  #isToClear = false;
  #isDraining = false;
  #writing: Promise<void> | undefined;
  readonly #ending = new AbortController();

  constructor(options: OwnChannelsOptions) {
    this.#options = options;
  }

  /** Those of one instance of an agent: one, but while it changes from one channel to another. */
  of(siteId: number, instanceId: string): readonly OwnChannel[] {
    return [...(this.#open.get(keyOf(siteId, instanceId)) ?? [])];
  }

  add(channel: ChannelOf): OwnChannel {
    const { siteId, instanceId, bootId } = channel;
    const own: OwnChannel = { siteId, instanceId, bootId, id: undefined };
    const key = keyOf(siteId, instanceId);
    this.#open.set(key, (this.#open.get(key) ?? new Set()).add(own));
    this.#unwritten.add(own);
    this.#begin();
    return own;
  }

  remove(channel: OwnChannel): void {
    const key = keyOf(channel.siteId, channel.instanceId);
    const others = this.#open.get(key);
    others?.delete(channel);
    if (others?.size === 0) this.#open.delete(key);
    this.#unwritten.delete(channel);
    if (channel.id === undefined) return;
    this.#leaving.push(channel.id);
    this.#begin();
  }

  /** Whose channel is gone from now on was told to come to another central. */
  drains(): void {
    this.#isDraining = true;
  }

  /** The others took this central for gone and removed its rows: all are written anew. */
  rewrite(): void {
    this.#isToClear = true;
    this.#leaving = [];
    for (const channels of this.#open.values())
      for (const channel of channels) {
        channel.id = undefined;
        this.#unwritten.add(channel);
      }
    this.#begin();
  }

  /** Writes no more. The rows go with this central's. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#writing;
  }

  #begin(): void {
    if (this.#ending.signal.aborted) return;
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined));
  }

  /** Never rejects. */
  async #writeAll(): Promise<void> {
    const isAny = (): boolean =>
      this.#isToClear || this.#unwritten.size > 0 || this.#leaving.length > 0;
    while (isAny() && !this.#ending.signal.aborted) {
      await sleepFor(gatherMs);
      const [adding, leaving, isToClear] = [[...this.#unwritten], this.#leaving, this.#isToClear];
      [this.#unwritten, this.#leaving, this.#isToClear] = [new Set(), [], false];
      try {
        await this.#write(adding, leaving, isToClear);
      } catch (error) {
        for (const channel of adding) if (this.#isOpen(channel)) this.#unwritten.add(channel);
        this.#leaving.push(...leaving);
        this.#isToClear ||= isToClear;
        this.#options.log.warn(
          { ...failureFacts(error), channels: adding.length + leaving.length },
          "the other centrals could not be told of channels; it is tried again",
        );
        await sleep(failedPauseMs, this.#ending.signal);
      }
    }
  }

  async #write(
    adding: readonly OwnChannel[],
    leaving: readonly number[],
    isToClear: boolean,
  ): Promise<void> {
    const { store, bus, onWritten } = this.#options;
    const ids = await byKeys(store, async (tx) => {
      // What was written after the others removed all is left over.
      if (isToClear) await removeChannelsOf(tx, bus.id);
      await removeChannels(tx, leaving);
      return addChannels(tx, bus.id, adding);
    });
    if (isToClear) bus.tell({ kind: "missed" });
    const returns = this.#isDraining && { returns: true };
    if (leaving.length > 0) bus.tell({ kind: "gone", ids: [...leaving], ...returns });
    const written = adding.flatMap((channel, at) => {
      const id = ids[at];
      if (id === undefined) throw new TypeError("a channel got no id");
      return [Object.assign(channel, { id })];
    });
    for (const part of parts(written))
      bus.tell({
        kind: "here",
        channels: part.map(({ id, siteId, instanceId, bootId }) => {
          return { id, site_id: siteId, instance_id: instanceId, boot_id: bootId };
        }),
      });
    for (const channel of written) {
      // It may have closed meanwhile.
      if (this.#isOpen(channel)) onWritten(channel);
      else this.#leaving.push(channel.id);
    }
  }

  #isOpen(channel: OwnChannel): boolean {
    return this.#open.get(keyOf(channel.siteId, channel.instanceId))?.has(channel) === true;
  }
}

const keyOf = (siteId: number, instanceId: string): string => `${siteId} ${instanceId}`;
