// All channels of this process: who is live, waking them, what the customer API asks them, and closing them. With other centrals at the store it also knows of theirs, asks
// through them, and is told what they are told.
//
// Every agent pings each 15 s, so one that is silent for two of these is gone, whatever TCP says. At shutdown
// each agent is told to come back later: where there are other centrals and many agents, one after the other (drain.ts).

import type { WebSocket } from "ws";
import type { Log } from "../../base/log.ts";
import { every } from "../../base/wait.ts";
import { heardWithinMs, pingIntervalMs, pingMissesMax } from "../../wire/channel.ts";
import type { DryRunQuestion } from "../../wire/ask.ts";
import type { Receipt } from "../../wire/receipt.ts";
import type { BusMessage } from "../../wire/bus-message.ts";
import type { CentralBus } from "../cluster/bus.ts";
import type { LoneWatch } from "../cluster/lone-watch.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Presence, PresentChannel } from "../cluster/presence.ts";
import { Asks, type InstanceAnswer } from "./asks.ts";
import { Channel, type ChannelEvents, type ChannelPeer } from "./channel.ts";
import { ChannelSocket } from "./channel-socket.ts";
import type { ChangeBus } from "./changes.ts";
import { drainForStop, sendOff, type drainSpreadMs } from "./drain.ts";
import { Duplicates } from "./duplicates.ts";
import { Expected } from "./expected.ts";
import { FarAsks } from "./far-asks.ts";
import type { AgentMetrics } from "./metrics.ts";
import { ImportProgresses, type ImportProgressTold } from "./import-progress.ts";
import { Polling } from "./polling.ts";
import { isStoreAway } from "../store/engine/postgres-faults.ts";
import { StoreReturn } from "./store-return.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";
import type { InstanceKey } from "../store/journal/instances-seen.ts";
import type { WakeBus } from "./wake.ts";

export type HubDeps = {
  readonly store: AgentStore;
  readonly bus: WakeBus;
  /** Told of links that open and close, and of what agents prove. */
  readonly changes?: Pick<ChangeBus, "publish">;
  readonly metrics: AgentMetrics;
  readonly log: Log;
  readonly monotonicMs: () => number;
  /** How long a silent or stuck peer is kept. */
  readonly silenceMaxMs?: number;
  readonly sweepIntervalMs?: number;
  /** Between two looks for a store that is away. */
  readonly storeLookMs?: number;
  /** The other centrals at the store; undefined where this is the only one. */
  readonly others?:
    | {
        readonly bus: Pick<CentralBus, "tell" | "tellOne" | "hear" | "onMissed">;
        readonly presence: Presence;
        readonly membership: Pick<Membership, "count">;
        readonly lone?: Pick<LoneWatch, "onSendOff">;
      }
    | undefined;
  /** In [0, 1): who is told first that central stops. */
  readonly random?: () => number;
  /** Over which time they are told. */
  readonly spreadMs?: typeof drainSpreadMs;
};

const channelsOfSiteMax = 16;
/** The longest time that a peer may take nothing of what it is being sent. */
const stuckMaxMs = 60_000;
const closeGraceMs = 2_000;
/** Who waits for receipts looks again after so long, where another central may die before it says that it stored one. */
const lookAgainMs = 1_000;
const closeCodes = { replaced: 4000, revoked: 4001 } as const;

export class Hub implements AsyncDisposable {
  readonly #deps: HubDeps;
  readonly #channels = new Map<number, Set<Channel>>();
  readonly #watches = new Map<Channel, Disposable>();
  readonly #present = new Map<Channel, PresentChannel>();
  readonly #progress = new ImportProgresses();
  readonly #duplicates = new Duplicates();
  readonly #asks = new Asks();
  readonly #polling: Polling;
  readonly #finishing = new Set<Promise<void>>();
  readonly #subscriptions: readonly Disposable[];
  readonly #farAsks: FarAsks | undefined;
  readonly #ending = new AbortController();
  readonly #sweeping: Promise<void>;
  readonly #storeReturn: StoreReturn;
  readonly #expected: Expected;
  #receiptStored = Promise.withResolvers<void>();

  constructor(deps: HubDeps) {
    this.#deps = deps;
    this.#polling = new Polling(deps.monotonicMs);
    this.#expected = new Expected(deps.monotonicMs);
    this.#storeReturn = new StoreReturn({
      ask: async () => deps.store.answers(),
      ...(deps.storeLookMs !== undefined && { intervalMs: deps.storeLookMs }),
    });
    this.#subscriptions = [
      deps.bus.subscribe((ids) => {
        for (const id of ids) for (const channel of this.#of(id)) channel.wake();
      }),
      ...this.#follow(),
    ];
    this.#farAsks =
      deps.others &&
      new FarAsks(deps.others, async (siteId, question, deadlineMs, signal) =>
        this.#askHere(siteId, question, deadlineMs, signal),
      );
    deps.others?.lone?.onSendOff(
      (stop) => void sendOff(deps, this.#all(), AbortSignal.any([stop, this.#ending.signal])),
    );
    this.#sweeping = every(deps.sweepIntervalMs ?? 5_000, async () => this.#sweep(), {
      stop: this.#ending.signal,
      onError: (error) => deps.log.error({ err: error }, "sweep of channels failed"),
    });
  }

  /** Expects instances that another life of this central heard a moment ago: they are on their way here, or to another one. */
  expect(instances: readonly InstanceKey[]): void {
    for (const { deploymentSiteId, instanceId } of instances)
      this.#expected.left(deploymentSiteId, instanceId, true);
  }

  /** Returns whether there is room for one more channel of the site. Each central has room of its own, for agents of one that died come at once. */
  hasRoom(deploymentSiteId: number): boolean {
    return !this.#ending.signal.aborted && this.#of(deploymentSiteId).size < channelsOfSiteMax;
  }

  accept(webSocket: WebSocket, peer: ChannelPeer): void {
    const { deploymentSiteId } = peer;
    const { store, log, monotonicMs } = this.#deps;
    const channel = new Channel(
      peer,
      { store, storeReturn: this.#storeReturn },
      this.#channelEvents(),
      log,
    );
    channel.attach(
      new ChannelSocket(webSocket, monotonicMs, {
        received: async (messages) => channel.receive(messages),
        failed: (error) => {
          if (isStoreAway(error)) return; // It is told of itself.
          log.error({ err: error, deployment_site_id: deploymentSiteId }, "channel failed");
        },
        isHeld: () => peer.takesHeld && this.#storeReturn.isAwaited,
        closed: () => this.#remove(channel),
      }),
    );
    const channels = this.#of(deploymentSiteId);
    channels.add(channel);
    this.#channels.set(deploymentSiteId, channels);
    const watch = this.#deps.bus.watch({
      siteId: deploymentSiteId,
      seq: () => channel.seq,
      shut: { count: peer.shutCount, close: () => this.#shut(channel) },
    });
    this.#watches.set(channel, watch);
    this.#deps.metrics.accel_central_channels.inc();
  }

  /**
   * Returns whether an agent of the site, or that instance of it, is connected: it has said hello, its channel is open, and it was
   * heard within `heardWithinMs`. A host that is frozen or cut off leaves its channel open for longer.
   */
  isLive(deploymentSiteId: number, instance?: string): boolean {
    return this.#silences(deploymentSiteId, instance).some((ms) => ms <= heardWithinMs);
  }

  /** Returns for how long nothing was heard on the open channel of an instance, in milliseconds; undefined without one. */
  silentMs(deploymentSiteId: number, instance: string): number | undefined {
    const silences = this.#silences(deploymentSiteId, instance);
    if (silences.length === 0) return undefined;
    const leastMs = Math.min(...silences);
    // Other centrals do not know when between two pings it was, and all answer the same.
    return this.#deps.others !== undefined && leastMs <= heardWithinMs ? 0 : leastMs;
  }

  #silences(deploymentSiteId: number, instance: string | undefined): readonly number[] {
    const here = [...this.#of(deploymentSiteId)].flatMap(({ instanceId, socket }) => {
      const isIt = instanceId !== undefined && (instance === undefined || instanceId === instance);
      return isIt && socket.isOpen ? [socket.silentMs] : [];
    });
    const { others } = this.#deps;
    return others === undefined
      ? here
      : [...here, ...others.presence.silences(deploymentSiteId, instance)];
  }

  /** Returns whether that instance is connected, or polls because it can have no channel. */
  isInTouch(deploymentSiteId: number, instance: string): boolean {
    return (
      this.isLive(deploymentSiteId, instance) ||
      this.#polling.has(deploymentSiteId, instance) ||
      this.#deps.others?.presence.isPolling(deploymentSiteId, instance) === true
    );
  }

  /**
   * Returns whether an agent of the site, or that instance of it, lost its channel a moment ago through no doing of its own, and is expected back: its central stopped, or the
   * store was away.
   */
  isExpected(deploymentSiteId: number, instance?: string): boolean {
    return this.#expected.has(deploymentSiteId, instance);
  }

  /** Notes that an instance waits for news without a channel, until it is disposed of. */
  pollBegins(deploymentSiteId: number, instance: string): Disposable {
    if (!this.isInTouch(deploymentSiteId, instance)) this.#linkChanged(deploymentSiteId);
    return this.#polling.begin(deploymentSiteId, instance);
  }

  /** Returns whether another agent uses the id of this instance too. */
  isDuplicate(deploymentSiteId: number, instance: string): boolean {
    return this.#duplicates.has(keyOf(deploymentSiteId, instance));
  }

  /**
   * Asks each connected instance what a clear would hit; `answer` is undefined if none came in time. Never
   * rejects.
   */
  async ask(
    deploymentSiteId: number,
    question: DryRunQuestion,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<readonly InstanceAnswer[]> {
    const here = this.#askHere(deploymentSiteId, question, deadlineMs, signal);
    if (this.#farAsks === undefined) return here;
    const far = this.#farAsks.ask(deploymentSiteId, question, deadlineMs, signal);
    // In one order, whoever is asked.
    return [...(await here), ...(await far)].toSorted((one, other) =>
      one.instanceId < other.instanceId ? -1 : 1,
    );
  }

  async #askHere(
    deploymentSiteId: number,
    question: DryRunQuestion,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<readonly InstanceAnswer[]> {
    const channels = [...this.#of(deploymentSiteId)].filter(
      ({ instanceId, socket }) => instanceId !== undefined && socket.isOpen,
    );
    return this.#asks.ask(channels, question, deadlineMs, signal);
  }

  /**
   * Returns the progress of an import as its agent told it last. It is lost with this process, unlike the
   * import's outcome.
   */
  importProgress(importId: string): ImportProgressTold | undefined {
    return this.#progress.of(importId);
  }

  /**
   * Closes every channel of a site whose credentials were revoked, after what the journal still holds is
   * sent.
   */
  closeSite(deploymentSiteId: number): void {
    for (const channel of this.#of(deploymentSiteId)) this.#shut(channel);
    this.#deps.others?.bus.tell({ kind: "shut", site_id: deploymentSiteId });
  }

  #shut(channel: Channel): void {
    this.#watches.get(channel)?.[Symbol.dispose]();
    const finished = channel
      .finish(closeCodes.revoked, "the credentials were revoked")
      .finally(() => this.#finishing.delete(finished));
    this.#finishing.add(finished);
  }

  /** Resolves when a receipt was stored after the call, or may have been, or when the signal aborts. Never rejects. */
  async next(asked: AbortSignal): Promise<void> {
    const signal =
      this.#deps.others === undefined
        ? asked
        : AbortSignal.any([asked, AbortSignal.timeout(lookAgainMs)]);
    const aborted = Promise.withResolvers<void>();
    const abort = (): void => aborted.resolve();
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    await Promise.race([this.#receiptStored.promise, aborted.promise]);
    signal.removeEventListener("abort", abort);
  }

  /** Called after receipts of a site's agents were stored, or when waiting for them is over otherwise. */
  receiptsStored(receipts: readonly Receipt[], deploymentSiteId?: number): void {
    for (const { phase } of receipts)
      this.#deps.metrics.accel_central_receipts_total.inc({ phase });
    const seqs = receipts.map(({ seq }) => seq);
    const importIds = receipts.flatMap(({ detail }) =>
      typeof detail["import_id"] === "string" ? [detail["import_id"]] : [],
    );
    this.#proved(importIds);
    this.#deps.others?.bus.tell({
      kind: "proved",
      ...(deploymentSiteId !== undefined && { site_id: deploymentSiteId }),
      seqs,
      import_ids: importIds,
    });
    if (deploymentSiteId === undefined) return;
    this.#deps.changes?.publish({ kind: "proved", siteId: deploymentSiteId, seqs });
  }

  /** Lets those look who wait for receipts. */
  #proved(importIds: readonly string[]): void {
    this.#progress.over(importIds);
    const { resolve } = this.#receiptStored;
    this.#receiptStored = Promise.withResolvers<void>();
    resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    const channels = this.#all();
    // Those whose turn has not come have all that they are sent.
    const closing = await drainForStop(this.#deps, channels);
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]();
    this.#farAsks?.[Symbol.dispose]();
    await this.#sweeping;
    const cut = setTimeout(() => {
      for (const channel of channels) channel.socket.terminate();
    }, closeGraceMs);
    await Promise.all([...closing, ...this.#finishing]);
    clearTimeout(cut);
    this.#storeReturn[Symbol.dispose]();
    // Whoever waits on for what other centrals hear looks again, and not without a pause.
    this.#proved([]);
  }

  #all(): readonly Channel[] {
    return [...this.#channels.values()].flatMap((set) => [...set]);
  }

  #of(deploymentSiteId: number): Set<Channel> {
    return this.#channels.get(deploymentSiteId) ?? new Set();
  }

  #channelEvents(): ChannelEvents {
    const { metrics } = this.#deps;
    return {
      greeted: (channel) => this.#greeted(channel),
      journalGrew: (siteId) => this.#deps.bus.publish([siteId]),
      entriesSent: (count) => metrics.accel_central_journal_entries_sent_total.inc(count),
      receiptsStored: ({ deploymentSiteId }, receipts) =>
        this.receiptsStored(receipts, deploymentSiteId),
      answered: (channel, answer) => this.#asks.received(channel, answer),
      progressed: (_, progress) => {
        this.#progress.told(progress);
        this.#deps.others?.bus.tell({ kind: "progress", progress });
      },
    };
  }

  /** Follows the other centrals, where there are any. */
  #follow(): readonly Disposable[] {
    const { others } = this.#deps;
    if (others === undefined) return [];
    const { bus, presence } = others;
    presence.follow({
      appeared: ({ siteId, instanceId, bootId }) => {
        this.#duplicates.greeted(keyOf(siteId, instanceId), bootId, this.#deps.monotonicMs());
        this.#countDuplicates();
        this.#expected.back(siteId, instanceId);
      },
      left: ({ siteId, instanceId }, returns) => this.#instanceLeft(siteId, instanceId, returns),
      polls: () => this.#polling.all(),
    });
    return [bus.hear((message) => this.#heard(message)), bus.onMissed(() => this.#proved([]))];
  }

  #heard(message: BusMessage): void {
    switch (message.kind) {
      case "proved":
        return this.#proved(message.import_ids);
      case "progress":
        return this.#progress.told(message.progress);
      case "shut":
        for (const channel of this.#of(message.site_id)) this.#shut(channel);
        return undefined;
      default:
        return undefined; // Others listen to the rest.
    }
  }

  #greeted(channel: Channel): void {
    this.#tellPresent(channel);
    const { deploymentSiteId, instanceId = "" } = channel;
    this.#expected.back(deploymentSiteId, instanceId);
    const others = [...this.#of(deploymentSiteId)].filter(
      (other) => other !== channel && other.instanceId !== undefined,
    );
    for (const other of others) {
      if (other.instanceId === instanceId)
        other.socket.close(closeCodes.replaced, "a newer channel of this instance");
    }
    const key = keyOf(deploymentSiteId, instanceId);
    if (this.#duplicates.greeted(key, channel.bootId, this.#deps.monotonicMs()))
      this.#deps.log.warn(
        {
          code: "duplicate_agent",
          deployment_site_id: deploymentSiteId,
          instance_id: instanceId,
        },
        "two agents use one instance id and replace each other: give one of them a state directory of its own",
      );
    this.#countDuplicates();
    this.#linkChanged(deploymentSiteId);
  }

  /** Has the other centrals know of a channel, and of another agent on it if it says hello as one. */
  #tellPresent(channel: Channel): void {
    const { others } = this.#deps;
    const { deploymentSiteId: siteId, instanceId = "", bootId, socket } = channel;
    if (others === undefined) return;
    const before = this.#present.get(channel);
    if (before?.instanceId === instanceId && before.bootId === bootId) return;
    if (before !== undefined) others.presence.closed(before);
    const present: PresentChannel = {
      siteId,
      instanceId,
      bootId,
      silentMs: () => (socket.isOpen ? socket.silentMs : undefined),
      replaced: () => socket.close(closeCodes.replaced, "a newer channel of this instance"),
    };
    this.#present.set(channel, present);
    others.presence.opened(present);
  }

  #linkChanged(siteId: number): void {
    this.#deps.changes?.publish({ kind: "site", siteId, topics: ["fleet"] });
  }

  #remove(channel: Channel): void {
    this.#asks.closed(channel);
    this.#watches.get(channel)?.[Symbol.dispose]();
    this.#watches.delete(channel);
    const present = this.#present.get(channel);
    this.#present.delete(channel);
    if (present !== undefined) this.#deps.others?.presence.closed(present);
    const channels = this.#of(channel.deploymentSiteId);
    channels.delete(channel);
    if (channels.size === 0) this.#channels.delete(channel.deploymentSiteId);
    this.#deps.metrics.accel_central_channels.dec();
    const isDrained = this.#ending.signal.aborted;
    this.#instanceLeft(channel.deploymentSiteId, channel.instanceId, isDrained);
    this.#linkChanged(channel.deploymentSiteId);
  }

  /** Forgets an instance whose last channel is closed, or expects it back. */
  #instanceLeft(siteId: number, instanceId: string | undefined, returns: boolean): void {
    const isIt = (other: { readonly instanceId: string | undefined }): boolean =>
      other.instanceId === instanceId;
    const elsewhere = this.#deps.others?.presence.elsewhere(siteId) ?? [];
    if (![...this.#of(siteId)].some(isIt) && !elsewhere.some(isIt)) {
      this.#duplicates.gone(keyOf(siteId, instanceId));
      const isCertain = returns || this.#storeReturn.isAwaited;
      if (instanceId !== undefined) this.#expected.left(siteId, instanceId, isCertain);
    }
    this.#countDuplicates();
  }

  #countDuplicates(): void {
    const count = this.#duplicates.count(this.#deps.monotonicMs());
    this.#deps.metrics.accel_central_duplicate_agents.set(count);
  }

  async #sweep(): Promise<void> {
    this.#countDuplicates();
    this.#cutSilent();
    try {
      await this.#deps.store.answers();
    } catch (error) {
      if (isStoreAway(error)) return this.#expected.hold();
      throw error;
    }
    if (this.#expected.forget()) this.#proved([]);
  }

  #cutSilent(): void {
    const silenceMaxMs = this.#deps.silenceMaxMs ?? pingIntervalMs * pingMissesMax;
    for (const channels of this.#channels.values())
      for (const { socket } of channels)
        if (socket.silentMs > silenceMaxMs || socket.stuckMs > stuckMaxMs) socket.terminate();
  }
}

function keyOf(deploymentSiteId: number, instance: string | undefined): string {
  return `${deploymentSiteId} ${instance ?? ""}`;
}
