// The accelerator workers as main sees them: one port, one published state, dead and stuck threads replaced.
//
// Publishing (guarantees §3): a state is staged in every live worker; when all have acknowledged and it is durable, one shared word flips.
// After any answer from version n no request that starts later gets less than n. A worker that dies leaves the quorum; its replacement is
// staged with the state in force before it listens.

import type { Transferable } from "node:worker_threads";
import type { Health } from "../../../base/health.ts";
import type { Log } from "../../../base/log.ts";
import { createMetrics, type MetricsData, type Registry } from "../../../base/metrics.ts";
import { Mutex } from "../../../base/mutex.ts";
import type { ListenAddress } from "../../../base/settings-fields.ts";
import type { ThreadEntry } from "../../../base/thread-client.ts";
import { sleep } from "../../../base/wait.ts";
import { backoffMs } from "../../../core/backoff.ts";
import { AccelError, messageOf } from "../../../core/faults.ts";
import type { Staple } from "../../../core/serving/staple.ts";
import { nothingServed, type ServingState } from "../../../core/serving/serving-state.ts";
import type { Probe, ProbeAnswer } from "../../../core/serving/plan-probes.ts";
import { foldDeparted } from "./departed-metrics.ts";
import { PoolWords } from "./shared-words.ts";
import { TicketKeyring, type KeptTicketKeys } from "../doors/ticket-keys.ts";
import type { VisitorLimits } from "../doors/visitor-shares.ts";
import type { OriginShareLimits } from "../origin/origin-shares.ts";
import { addSums, noVisitors, type VisitorSums } from "../records/visitor-sums.ts";
import type { UpgradeLimits } from "../upgrades/open-upgrades.ts";
import type { BodyPace } from "../bodies/body-pieces.ts";
import { BudgetOwner, type BudgetShare } from "../bodies/shared-budget.ts";
import { readTicketKeys, writeTicketKeys } from "./ticket-key-file.ts";
import {
  VisitorSockets,
  type LentSockets,
  type Listens,
  type SocketKeeping,
} from "./visitor-sockets.ts";
import { partedWritesMs, WorkerHandle } from "./worker-handle.ts";
import type { BadBlob, ProxySettings } from "./worker-messages.ts";
import { askEach, askingOne, type AskProbes } from "./worker-probes.ts";

/** The bodies of requests that are taken in whole; bytes. */
export type PoolBodies = BodyPace & {
  readonly memoryMax: number;
  readonly diskMax: number;
  /** Where their files are made: it is there, and nobody else's. */
  readonly directory: string;
};

/** Without a directory there are no files. */
const bodiesDefault: PoolBodies = {
  memoryMax: 2 ** 26,
  diskMax: 0,
  directory: "",
  idleMs: 20_000,
  rateMin: 500,
};
const originSharesDefault: OriginShareLimits = { requestsMax: 512, waitingMax: 512 };
const visitorsDefault: VisitorLimits = { connectionsMax: 0, requestsMax: 0 };
/** As the settings have them if nothing else is said. */
const upgradesDefault: UpgradeLimits = { openMax: 4_096, idleMs: 600_000 };

export type WorkerPoolOptions = Listens & {
  readonly count: number;
  readonly sockets: SocketKeeping;
  /** The thread's root; gets a WorkerBoot as workerData. */
  readonly entry: ThreadEntry;
  /** Called for each thread that is started, replacements included: ports belong to one thread. */
  readonly openParts: (no: number) => {
    readonly data: unknown;
    readonly transfer: readonly Transferable[];
  };
  readonly proxies: ProxySettings;
  readonly defaultDomain: string | null;
  readonly blobsDir: string;
  readonly drainGraceMs: number;
  /** Where keys of session tickets are kept; unsaid: in memory only. Its directory is there. */
  readonly ticketFile?: string;
  /** The memory of all workers together for small files of viewsets, bytes; unsaid: none is kept. */
  readonly filesMemoryMax?: number;
  /** The memory of all workers together for whole answers, bytes; unsaid: none is kept. */
  readonly answersMemoryMax?: number;
  /** Of each worker. */
  readonly upgrades?: UpgradeLimits;
  /** Of all workers together. */
  readonly requestBodies?: PoolBodies;
  /** Of each worker and backend. */
  readonly originShares?: OriginShareLimits;
  /** Of each worker; unsaid: no visitor has limits of his own. */
  readonly visitors?: VisitorLimits;
  /** Of all workers together; unsaid: any number. */
  readonly connectionsMax?: number;
  /** Whether plain requests are answered in the lane; unsaid: they are. */
  readonly usesLane?: boolean;
  /** Told of each blob that a worker cannot read as the manifest has it. Must not throw. */
  readonly onBadBlob?: (blob: BadBlob) => void;
  /** How long a worker may make no progress. */
  readonly stuckMs?: number;
  readonly random: () => number;
  readonly registry: Registry;
  readonly health: Health;
  readonly log: Log;
  /** No thread is replaced after it; disposing drains. */
  readonly stop: AbortSignal;
};

export type WorkerPoolStatus = {
  readonly port: number;
  /** The port of HTTPS; null if it is not served. */
  readonly tlsPort: number | null;
  readonly version: number;
  readonly wanted: number;
  /** The number of workers that take visitors. */
  readonly live: number;
  readonly replacements: number;
};

const stuckMsDefault = 5_000;
/** Looks without a heartbeat until a worker is replaced; looks and not time, for a host that was suspended has slept with its workers. */
const looksMax = 5;
/** A worker that lived so long has settled. */
const settledMs = 60_000;
const restartBackoff = { firstMs: 200, mostMs: 30_000 };
/** A thread that does not listen by then would hold up every publish. It is long, for a host that starts everything at once has little for each. */
const startWaitMs = 40_000;
/** What began while older requests were waited for has this time, since visitors wait meanwhile. */
const lastGraceMs = 5_000;
/** The time that a drained worker has to close its parts. */
const endWaitMs = 10_000;

export const poolMetrics = {
  accel_agent_workers: { kind: "gauge", help: "Accelerator workers that serve." },
  accel_agent_worker_replacements_total: {
    kind: "counter",
    help: "Accelerator workers replaced because they died or were stuck.",
  },
  accel_agent_state_version: {
    kind: "gauge",
    help: "Version of the state that the workers serve.",
  },
} as const;

/**
 * A pool without workers: what is published before `start` is what visitors meet first, so that none of them ever finds a state that is older than
 * the committed one. Throws PORT_TAKEN or ADDRESS_UNUSABLE.
 */
export async function openWorkers(options: WorkerPoolOptions): Promise<WorkerPool> {
  const { ticketFile } = options;
  const kept = ticketFile === undefined ? undefined : await readTicketKeys(ticketFile);
  return new WorkerPool(options, await VisitorSockets.open(options, options.sockets), kept);
}

/** What is left of a pool that has handed over. */
export type PartedWorkers = {
  /** Resolves when no request begins in it any more. */
  readonly quiet: Promise<void>;
  /** Resolves when its last answer is out and its threads have ended. */
  readonly ended: Promise<void>;
  /** Ends its threads at once, whatever they answer. */
  cut(): void;
};

export class WorkerPool implements AsyncDisposable {
  readonly port: number;
  readonly #options: WorkerPoolOptions;
  readonly #sockets: VisitorSockets;
  readonly #words = new PoolWords();
  readonly #bodies: PoolBodies;
  readonly #bodyDisk: BudgetOwner;
  readonly #publishing = new Mutex();
  readonly #metrics;
  /** The quorum: staged with the state in force, if not listening yet. */
  readonly #live = new Map<number, WorkerHandle>();
  /** Threads that run, those that left the quorum included. */
  readonly #running = new Set<WorkerHandle>();
  readonly #missed = new Map<WorkerHandle, { beats: number; looks: number }>();
  readonly #keeping: Promise<void>[] = [];
  readonly #stop = new AbortController();
  readonly #watch: NodeJS.Timeout;
  readonly #keyring: TicketKeyring;
  #staples: readonly Staple[] = [];
  #keeps: Promise<void> = Promise.resolve();
  #state: ServingState = nothingServed;
  #left: Promise<unknown> = Promise.resolve();
  #nextVersion = 1;
  #replacements = 0;
  #departed: MetricsData = [];
  #departedSums = noVisitors;
  #parted: PartedWorkers | undefined;

  constructor(options: WorkerPoolOptions, sockets: VisitorSockets, kept?: KeptTicketKeys) {
    this.#options = options;
    this.#sockets = sockets;
    this.#keyring = new TicketKeyring({ kept, onMade: (keys) => this.#tellTicketKeys(keys) });
    this.port = sockets.listen.port;
    this.#bodies = options.requestBodies ?? bodiesDefault;
    this.#bodyDisk = new BudgetOwner(this.#bodies.diskMax);
    this.switchLane(options.usesLane ?? true);
    this.#words.limitConnections(options.connectionsMax ?? 0);
    this.#metrics = createMetrics(poolMetrics, options.registry);
    const lookMs = (options.stuckMs ?? stuckMsDefault) / looksMax;
    this.#watch = setInterval(() => this.#look(), lookMs);
  }

  async start(): Promise<void> {
    const numbers = Array.from({ length: this.#options.count }, (_, i) => i + 1);
    // All have been waited for when one fails: whoever disposes then finds every thread there is.
    const launched = await Promise.allSettled(numbers.map(async (no) => this.#launch(no)));
    for (const launch of launched) if (launch.status === "rejected") throw launch.reason;
    for (const launch of launched)
      if (launch.status === "fulfilled") this.#keeping.push(this.#keep(launch.value));
    await this.#sockets.keep();
    const { closed } = this.#sockets;
    if (closed.length > 0)
      this.#options.log.info({ closed }, "no setting names these addresses any more: closed");
  }

  /**
   * Builds the next state, stages it in every live worker, calls `commit` (which makes it durable, synchronously), flips. Resolves with its version when
   * it is in force. `inspect` may ask a worker about what is staged before. When one of them throws, nothing has changed and it rethrows. One at a time.
   */
  async publish(
    build: (version: number) => ServingState,
    commit?: () => void,
    inspect?: (ask: AskProbes) => Promise<void>,
  ): Promise<number> {
    return this.#publishing.run(async () => {
      const version = this.#nextVersion++;
      const state = build(version);
      await Promise.all([...this.#live.values()].map(async (handle) => handle.stage(state)));
      await inspect?.(askingOne(this.#live.values(), version));
      commit?.();
      this.#words.flip(version);
      this.#state = state;
      this.#metrics.accel_agent_state_version.set(version);
      this.#left = Promise.all([...this.#running].map(async (handle) => handle.drop(version)));
      return version;
    });
  }

  /** Stages a state in every live worker, has it inspected there, and leaves in force what is; rethrows. */
  async rehearse(
    build: (version: number) => ServingState,
    inspect: (ask: AskProbes) => Promise<void>,
  ): Promise<void> {
    return this.#publishing.run(async () => {
      const version = this.#nextVersion++;
      const state = build(version);
      await Promise.all([...this.#live.values()].map(async (handle) => handle.stage(state)));
      await inspect(askingOne(this.#live.values(), version));
    });
  }

  /** Probes the state in force; the answers are by worker. Throws VIEWSET_PROBE_LATE. */
  async probe(probes: readonly Probe[]): Promise<readonly (readonly ProbeAnswer[])[]> {
    return this.#publishing.run(async () =>
      askEach(this.#live.values(), this.#state.version, probes),
    );
  }

  /** Switches the lane on or off, in all workers, from the next request of each connection on. */
  switchLane(usesIt: boolean): void {
    this.#words.switchLane(usesIt);
  }

  /** Gives all workers the answers of OCSP that they send along with certificates. */
  staple(staples: readonly Staple[]): void {
    this.#staples = staples;
    for (const handle of this.#running) handle.takeStaples(staples);
  }

  /** Resolves when no thread reads an older state any more than the one that is in force now. */
  async left(): Promise<void> {
    await this.#left;
  }

  /** One part a worker, and one for those that are gone. Never throws; at most a second. */
  async metrics(): Promise<readonly MetricsData[]> {
    const departed = this.#departed; // One that leaves while it is asked is among the live.
    const live = [...this.#live.values()];
    return [...(await Promise.all(live.map(async (handle) => handle.metrics()))), departed];
  }

  /** What all workers have counted, those that are gone included; it never falls. Never throws; at most a second. */
  async sums(): Promise<VisitorSums> {
    const departed = this.#departedSums; // One that leaves while it is asked is among the live.
    const live = [...this.#live.values()];
    return addSums([...(await Promise.all(live.map(async (handle) => handle.sums()))), departed]);
  }

  status(): WorkerPoolStatus {
    return {
      port: this.port,
      tlsPort: this.#sockets.tlsListen?.port ?? null,
      version: this.#state.version,
      wanted: this.#options.count,
      live: this.#serving(),
      replacements: this.#replacements,
    };
  }

  /** Returns for each thread a number that moves while it is alive. */
  heartbeats(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      [...this.#live].map(([no, { heartbeat }]) => [`accelerator-${no}`, heartbeat.beats]),
    );
  }

  /** Lends the sockets to a successor. The descriptors are the caller's. Throws as VisitorSockets.lend does. */
  lend(): LentSockets {
    return this.#sockets.lend();
  }

  /** The addresses of its sockets; null: HTTPS is not served. */
  get addresses(): { readonly listen: ListenAddress; readonly tlsListen: ListenAddress | null } {
    return this.#sockets;
  }

  /** Has each answer be the last one of its connection from now on, where HTTP/1 carries it, or not any more. */
  slacken(isSlack: boolean): void {
    for (const handle of this.#live.values()) handle.slacken(isSlack);
  }

  /** Hands over: resolves when no worker accepts a visitor any more and all lanes have ended. The workers answer what is under way within the grace, writes a while longer, and end by themselves; disposing does not wait for them. */
  async part(): Promise<PartedWorkers> {
    this.#quit();
    const handles = [...this.#live.values()];
    const { drainGraceMs } = this.#options;
    await Promise.all(handles.map(async (handle) => handle.part(drainGraceMs)));
    await this.#keeps;
    const endMs = drainGraceMs + partedWritesMs + endWaitMs;
    const ended = handles.map(async (handle) => handle.end(endMs));
    this.#parted = {
      quiet: Promise.all(handles.map(async (handle) => handle.quiet)).then(() => undefined),
      ended: Promise.all([...ended, ...this.#keeping]).then(() => undefined),
      cut: () => handles.forEach((handle) => handle.abandon("cut")),
    };
    return this.#parted;
  }

  /** No thread is replaced any more. */
  #quit(): void {
    this.#stop.abort();
    clearInterval(this.#watch);
    this.#keyring[Symbol.dispose]();
  }

  /**
   * Drains: what is in flight is answered, for as long as the grace allows. Where the sockets are kept, who comes after the last worker has closed its own waits
   * for the next start; so others are served until what is in flight now has ended, here and at the agent before, and the workers close together. Where there is no
   * next start, he is refused.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#parted !== undefined) return this.#sockets[Symbol.dispose]();
    this.#quit();
    const { drainGraceMs } = this.#options;
    const handles = [...this.#live.values()];
    if (this.#sockets.areKept)
      await Promise.all(handles.map(async (handle) => handle.finish(drainGraceMs)));
    const late = this.#options.stop.aborted ? await this.#sockets.end(handles.length) : [];
    this.#sockets[Symbol.dispose]();
    const graceMs = Math.min(drainGraceMs, this.#sockets.areKept ? lastGraceMs : Infinity);
    await Promise.all(handles.map(async (handle, i) => handle.drain(graceMs, endWaitMs, late[i])));
    await Promise.all([...this.#keeping, this.#keeps]);
  }

  #tellTicketKeys(keys: KeptTicketKeys): void {
    for (const handle of this.#running) handle.takeTicketKeys(keys);
    const { ticketFile, log } = this.#options;
    if (ticketFile === undefined) return;
    this.#keeps = this.#keeps
      .then(async () => writeTicketKeys(ticketFile, keys))
      .catch((error: unknown) =>
        log.warn({ err: error }, "visitors will not resume TLS sessions behind a restart"),
      );
  }

  /** Starts a thread. Resolves when it is staged with the state in force and listens; throws when it cannot listen or dies on the way. */
  async #launch(no: number): Promise<WorkerHandle> {
    const { entry, openParts, proxies, defaultDomain, blobsDir, onBadBlob } = this.#options;
    const { listen, tlsListen } = this.#sockets;
    const shared = { poolWords: this.#words.buffer, ticketKeys: this.#keyring.keys };
    const { count, filesMemoryMax: files = 0, answersMemoryMax: answers = 0 } = this.#options;
    const filesMemoryMax = Math.floor(files / count);
    const answersMemoryMax = Math.floor(answers / count);
    const { upgrades = upgradesDefault, visitors = visitorsDefault } = this.#options;
    const { originShares = originSharesDefault } = this.#options;
    const memory = { filesMemoryMax, answersMemoryMax };
    const disk = this.#bodyDisk.share();
    const { directory, idleMs, rateMin } = this.#bodies;
    const bodyMemory = Math.floor(this.#bodies.memoryMax / count);
    const requestBodies = { memoryMax: bodyMemory, disk, directory, idleMs, rateMin };
    const served = {
      staples: this.#staples,
      defaultDomain,
      blobsDir,
      ...memory,
      upgrades,
      requestBodies,
      visitors,
      originShares,
    };
    const init = { no, ...shared, listen, tlsListen, proxies, ...served };
    const handle = new WorkerHandle(entry, init, openParts(no), onBadBlob ?? (() => {}));
    this.#running.add(handle);
    void this.#forgetEnded(handle, disk);
    const late = setTimeout(() => handle.abandon("did not start in time"), startWaitMs);
    try {
      // Under the lock: no state can be flipped to between this staging and the worker's entry into the quorum.
      const staged = await this.#publishing.run(async () => {
        const done = this.#state.version === 0 || (await handle.stage(this.#state));
        if (done && !handle.isGone) this.#live.set(no, handle);
        return done;
      });
      if (!staged || !(await handle.listen(this.#sockets.lend())))
        throw new AccelError("WORKER_FAILED", `accelerator worker ${no} ${await handle.gone}`);
    } catch (error) {
      this.#leave(handle);
      handle.abandon(messageOf(error));
      throw error;
    } finally {
      clearTimeout(late);
    }
    this.#metrics.accel_agent_workers.set(this.#serving());
    return handle;
  }

  async #forgetEnded(handle: WorkerHandle, disk: BudgetShare): Promise<void> {
    await handle.ended;
    this.#running.delete(handle);
    this.#bodyDisk.reclaim(disk);
  }

  #leave(handle: WorkerHandle): void {
    if (this.#live.get(handle.no) === handle) this.#live.delete(handle.no);
    this.#missed.delete(handle);
    this.#words.codingTurn.end(handle.no);
    this.#words.imageTurn.end(handle.no);
    this.#words.forget(handle.no);
    this.#departed = foldDeparted([this.#departed, handle.lastMetrics]);
    this.#departedSums = addSums([this.#departedSums, handle.lastSums]);
    this.#metrics.accel_agent_workers.set(this.#serving());
  }

  #serving(): number {
    return [...this.#live.values()].filter(({ serves }) => serves).length;
  }

  /** Replaces the worker whenever it is gone, until the pool stops. */
  async #keep(first: WorkerHandle): Promise<void> {
    const { random, stop } = this.#options;
    const ended = AbortSignal.any([stop, this.#stop.signal]);
    let handle: WorkerHandle | undefined = first;
    for (let failures = 0; ; failures++) {
      if (handle !== undefined) {
        const reason = await handle.gone;
        this.#leave(handle);
        if (ended.aborted) return;
        if (performance.now() - handle.startedMs > settledMs) failures = 0;
        this.#tellReplaced(handle.no, reason);
      }
      if (failures > 0) await sleep(backoffMs(failures - 1, random(), restartBackoff), ended);
      if (ended.aborted) return;
      handle = await this.#relaunch(first.no, ended);
      if (ended.aborted) await handle?.drain(0, endWaitMs);
    }
  }

  #tellReplaced(no: number, reason: string): void {
    const { log, health } = this.#options;
    log.error({ worker: no, reason }, "accelerator worker replaced");
    const text = `accelerator worker ${no} was replaced: it ${reason}`;
    health.raise("worker_replaced", "warning", text, "See the agent's log.", `${no}`);
    this.#replacements++;
    this.#metrics.accel_agent_worker_replacements_total.inc();
  }

  async #relaunch(no: number, ended: AbortSignal): Promise<WorkerHandle | undefined> {
    try {
      return await this.#launch(no);
    } catch (error) {
      if (ended.aborted) return undefined;
      const { log } = this.#options;
      log.error({ worker: no, error: messageOf(error) }, "accelerator worker cannot start");
      return undefined;
    }
  }

  #look(): void {
    for (const [no, handle] of this.#live) {
      const { beats } = handle.heartbeat;
      const missed = this.#missed.get(handle);
      // Before it listens it is starting, which #launch bounds.
      const looks = handle.serves && missed?.beats === beats ? missed.looks + 1 : 0;
      this.#missed.set(handle, { beats, looks });
      if (looks >= looksMax) handle.abandon("was stuck");
      if (performance.now() - handle.startedMs > settledMs)
        this.#options.health.settle("worker_replaced", `${no}`);
    }
  }
}
