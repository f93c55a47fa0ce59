// Who of all agents is connected, at whichever central: what this one holds is told to the others, and what they tell is known here.
//
// The store has a row for each open channel. A central that starts, or that may have missed a word, reads them all; in between it goes by what is told. Of two channels of one
// instance of an agent the one with the higher id is the newer, and the central that holds the other closes it.

import type { Log } from "../../base/log.ts";
import { every } from "../../base/wait.ts";
import { failureFacts } from "../store/engine/postgres-faults.ts";
import type { BusMessage } from "../../wire/bus-message.ts";
import { heardWithinMs } from "../../wire/channel.ts";
import { byKeys } from "../store/centrals/centrals.ts";
import { channelsOfOthers, type ChannelOf, type ChannelRow } from "../store/centrals/channels.ts";
import type { Store } from "../store/engine/database.ts";
import type { CentralBus } from "./bus.ts";
import type { Membership } from "./membership.ts";
import { OtherChannels } from "./other-channels.ts";
import { OwnChannels, type OwnChannel } from "./own-channels.ts";

const tellSilentMs = 1_000;
const tellPollsMs = 3_000;
/** What was missed without anybody's knowing it is made up for after so long. */
const readAgainMs = 60_000;

export type PresenceOptions = {
  readonly store: Store;
  readonly bus: CentralBus;
  readonly membership: Membership;
  readonly monotonicMs: () => number;
  readonly log: Log;
};

/** What the holder of this central's channels is told, and asked. */
export type PresenceEvents = {
  /** A channel of that instance was opened at another central. */
  readonly appeared: (channel: ChannelOf) => void;
  /** A channel at another central is gone. `returns`: not by its agent's doing, as far as it is known, so that this comes back. */
  readonly left: (channel: ChannelOf, returns: boolean) => void;
  /** Which instances poll here, or did a moment ago. */
  readonly polls: () => readonly { readonly siteId: number; readonly instanceId: string }[];
};

export type PresentChannel = ChannelOf & {
  /** For how long nothing was heard, in milliseconds; undefined for a channel that is closing. */
  readonly silentMs: () => number | undefined;
  /** Called when a newer channel of the instance is open elsewhere. */
  readonly replaced: () => void;
};

export class Presence implements AsyncDisposable {
  readonly #options: PresenceOptions;
  readonly #others = new OtherChannels();
  readonly #own: OwnChannels;
  readonly #channels = new Map<OwnChannel, PresentChannel>();
  readonly #handles = new Map<PresentChannel, OwnChannel>();
  readonly #ending = new AbortController();
  readonly #hearing: readonly Disposable[];
  #events: PresenceEvents | undefined;
  #running: readonly Promise<void>[] = [];
  #reading: Promise<void> | undefined;
  /** What was told while the store is read; undefined while it is not. */
  #told: (() => void)[] | undefined;
  #isToReadAgain = false;

  private constructor(options: PresenceOptions) {
    const { bus, membership } = options;
    this.#options = options;
    this.#own = new OwnChannels({ ...options, onWritten: (own) => this.#written(own) });
    this.#hearing = [
      bus.hear((message, from) => this.#heard(message, from)),
      bus.onMissed(() => this.#readAgain()),
    ];
    membership.onGone((central) => this.#left(this.#others.removeOf(central), true));
    membership.onRejoined(() => this.#own.rewrite());
  }

  /** Reads who is there. Throws what the store throws. */
  static async open(options: PresenceOptions): Promise<Presence> {
    const presence = new Presence(options);
    await presence.#read();
    const { log } = options;
    const repeated = async (ms: number, action: () => void): Promise<void> =>
      every(ms, action, {
        stop: presence.#ending.signal,
        onError: (error) => log.error({ err: error }, "the other centrals are not told of agents"),
      });
    presence.#running = [
      repeated(tellSilentMs, () => presence.#tellSilent()),
      repeated(tellPollsMs, () => presence.#tellPolls()),
      repeated(readAgainMs, () => presence.#readAgain()),
    ];
    return presence;
  }

  /** Begins to tell; called once, by the holder of this central's channels. */
  follow(events: PresenceEvents): void {
    this.#events = events;
  }

  opened(channel: PresentChannel): void {
    const own = this.#own.add(channel);
    this.#channels.set(own, channel);
    this.#handles.set(channel, own);
  }

  closed(channel: PresentChannel): void {
    const own = this.#handles.get(channel);
    if (own === undefined) return;
    this.#handles.delete(channel);
    this.#channels.delete(own);
    this.#own.remove(own);
  }

  /** This central stops: it tells its agents to come to another one. */
  drains(): void {
    this.#own.drains();
  }

  /** What `OtherChannels.silences` says. */
  silences(siteId: number, instanceId?: string): readonly number[] {
    return this.#others.silences(siteId, instanceId, this.#options.monotonicMs());
  }

  isPolling(siteId: number, instanceId: string): boolean {
    return this.#others.isPolling(siteId, instanceId, this.#options.monotonicMs());
  }

  /** The channels of the site's agents at other centrals. */
  elsewhere(siteId: number): readonly ChannelRow[] {
    return this.#others.of(siteId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    for (const hearing of this.#hearing) hearing[Symbol.dispose]();
    await Promise.all([...this.#running, this.#reading]);
    await this.#own[Symbol.asyncDispose]();
  }

  #written(own: OwnChannel & { readonly id: number }): void {
    const newest = this.#others.newest(own.siteId, own.instanceId);
    if (newest !== undefined && newest.id > own.id) this.#channels.get(own)?.replaced();
    else this.#others.supersede(own.siteId, own.instanceId, own.id);
  }

  #heard(message: BusMessage, from: string): void {
    const { monotonicMs } = this.#options;
    switch (message.kind) {
      case "here":
        return this.#note(() =>
          this.#appeared(
            message.channels.map((one) => ({
              id: one.id,
              siteId: one.site_id,
              instanceId: one.instance_id,
              bootId: one.boot_id,
              central: from,
            })),
          ),
        );
      case "gone":
        return this.#note(() =>
          this.#left(this.#others.remove(message.ids), message.returns === true),
        );
      case "silent":
        for (const { id, ms } of message.channels) this.#others.silent(id, ms, monotonicMs());
        return undefined;
      case "polls":
        for (const { site_id: siteId, instance_id: instanceId } of message.polls)
          this.#others.polled(siteId, instanceId, monotonicMs());
        return undefined;
      default:
        return undefined; // Others listen to the rest.
    }
  }

  /** Does it now, and once more behind what is being read: that may be from before. */
  #note(change: () => void): void {
    change();
    this.#told?.push(change);
  }

  #appeared(rows: readonly ChannelRow[]): void {
    for (const row of this.#others.add(rows)) {
      const own = this.#own.of(row.siteId, row.instanceId);
      const newest = Math.max(...own.map(({ id }) => id ?? 0), 0);
      if (newest > row.id) {
        this.#others.remove([row.id]);
        continue;
      }
      for (const one of own) if (one.id !== undefined) this.#channels.get(one)?.replaced();
      this.#events?.appeared(row);
    }
  }

  #left(rows: readonly ChannelRow[], returns: boolean): void {
    for (const row of rows) this.#events?.left(row, returns);
  }

  #readAgain(): void {
    if (this.#ending.signal.aborted) return;
    this.#isToReadAgain = true;
    this.#reading ??= this.#readAll().finally(() => (this.#reading = undefined));
  }

  /** Never rejects: what fails is read after a minute, or when the way to the others is there again. */
  async #readAll(): Promise<void> {
    while (this.#isToReadAgain) {
      this.#isToReadAgain = false;
      try {
        await this.#read();
      } catch (error) {
        this.#options.log.warn(
          failureFacts(error),
          "the channels of other centrals could not be read",
        );
      }
    }
  }

  async #read(): Promise<void> {
    const { store, bus } = this.#options;
    const told: (() => void)[] = [];
    this.#told = told;
    try {
      const rows = await byKeys(store, async (tx) => channelsOfOthers(tx, bus.id));
      const { appeared, left } = this.#others.compare(rows);
      this.#left(left, true);
      this.#appeared(appeared);
      for (const change of told) change();
    } finally {
      this.#told = undefined;
    }
  }

  #tellSilent(): void {
    const silent: { id: number; ms: number }[] = [];
    for (const [{ id }, channel] of this.#channels) {
      const ms = channel.silentMs();
      if (id !== undefined && ms !== undefined && ms > heardWithinMs)
        silent.push({ id, ms: Math.round(ms) });
    }
    if (silent.length > 0) this.#options.bus.tell({ kind: "silent", channels: silent });
  }

  #tellPolls(): void {
    const polls = this.#events?.polls() ?? [];
    if (polls.length === 0) return;
    this.#options.bus.tell({
      kind: "polls",
      polls: polls.map(({ siteId, instanceId }) => ({ site_id: siteId, instance_id: instanceId })),
    });
  }
}
