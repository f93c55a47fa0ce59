// Which centrals work on the store, this one among them, and which jobs this one does for all.
//
// Every 2 s a central counts its beat up in the store and looks at the beats of the others. Whoever sees one stand still at 5 looks in a row, 10 s at least, removes that
// central with its channels, and its jobs are free. A central counts on its jobs for 8 s after its last beat, by its own clock: when others may take them, it has let go. No
// clock of one host decides that with another's, and a store that was away for a while is nobody's death. At each look the clock is compared with the store's, to warn where it is wrong.

import type { Log } from "../../base/log.ts";
import type { Sealer } from "../../base/seal.ts";
import { every, sleep } from "../../base/wait.ts";
import { AccelError, messageOf } from "../../core/faults.ts";
import {
  alikeText,
  differingSettings,
  keysText,
  readAlike,
  type AlikeSettings,
  type Differing,
} from "../settings/alike.ts";
import {
  addCentral,
  beatCentral,
  byKeys,
  listCentrals,
  removeCentral,
  storeClockMs,
  takeJobs,
  type CentralSeen,
} from "../store/centrals/centrals.ts";
import type { Store, Tx } from "../store/engine/database.ts";
import type { CentralBus } from "./bus.ts";

export const beatMs = 2_000;
/** The looks at which a beat has stood still for a central that is gone. */
const stillMax = 5;
/** Below the time in which others can find that this one is gone. */
const jobsForMs = 8_000;

/** The work that one central at a time does for all. */
export const centralJobs = [
  "alerts",
  "blob-collection",
  "bot-sweep",
  "certificate-orders",
  "events",
  "first-keys",
  "fleet-activations",
  "import-deadlines",
  "outbox",
  "recoveries",
  "reports",
  "retention",
  "rollouts",
] as const;
export type CentralJob = (typeof centralJobs)[number];

export type MembershipOptions = {
  readonly store: Store;
  readonly bus: CentralBus;
  readonly central: Pick<CentralSeen, "address" | "version" | "whenStarted">;
  readonly sealer: Pick<Sealer, "seal" | "open">;
  /** What all must have alike. */
  readonly settings: AlikeSettings;
  readonly monotonicMs: () => number;
  /** The clock that is compared with the store's. */
  readonly now: () => Date;
  readonly log: Log;
  readonly beatMs?: number;
  /** Called when there are more of them, or fewer; must not throw. */
  readonly onCount?: (centrals: number) => void;
  /** Called at each look with by how much this central's clock is ahead of the store's at least, in milliseconds; must not throw. */
  readonly onClock?: ((aheadMs: number) => void) | undefined;
  /** Called at each look with those of the others that have other settings; must not throw. */
  readonly onDiffering?: ((others: readonly DifferingCentral[]) => void) | undefined;
};

/** Pure. Returns by how much a clock is ahead of the store's at least, in milliseconds, negative where it is behind. The store was asked between two looks at it. */
export function aheadMs(beforeMs: number, storeMs: number, afterMs: number): number {
  if (storeMs < beforeMs) return beforeMs - storeMs;
  return storeMs > afterMs ? afterMs - storeMs : 0;
}

export type DifferingCentral = Differing & { readonly address: string };

const keyContext = "central at a store";

/** Returns those of the centrals that have other settings, with which. Pure. */
export function differingCentrals(
  ours: AlikeSettings,
  others: readonly Pick<CentralSeen, "address" | "settings">[],
): readonly DifferingCentral[] {
  return others.flatMap(({ address, settings }) => {
    const theirs = readAlike(settings);
    if (theirs === undefined) return [];
    const differing = differingSettings(ours, theirs);
    return differing.refused.length + differing.told.length === 0
      ? []
      : [{ address, ...differing }];
  });
}

/** Returns what a central ends with that has other settings than one that works on the store; undefined where both may work. Pure. */
export function refusalBySettings(
  ours: AlikeSettings,
  other: Pick<CentralSeen, "address" | "settings">,
): AccelError | undefined {
  const [differing] = differingCentrals(ours, [other]);
  if (differing === undefined || differing.refused.length === 0) return undefined;
  return new AccelError(
    "SETTINGS_DIFFER",
    `the central at ${differing.address}, which works on the same store, has another ${keysText(differing.refused)} than this one`,
  );
}

/** A central as this one knows it. `beats`: null while this one cannot read the beats of others. */
export type CentralRow = CentralSeen & { readonly beats: boolean | null };

/** So long status names a central that ended without a word: who looks an hour behind its end is to see that it is missing. */
const goneForMs = 3_600_000;

type Ended = { readonly seen: CentralSeen; readonly atMs: number };

/** A central counts its beat up as often as others look: at one look it may just be about to. */
const stillOfLiving = 1;

/** Pure. Says of the others whether they beat. One at whose address another one was started since is gone, whatever is known of its beat. */
export function centralRows(
  others: readonly Watched[],
  own: Pick<CentralSeen, "address" | "whenStarted">,
): readonly CentralRow[] {
  const all = [own, ...others.map(({ seen }) => seen)];
  return others.map(({ seen, still }) => {
    const { address, whenStarted } = seen;
    const isFollowed = all.some((one) => one.address === address && one.whenStarted > whenStarted);
    return { ...seen, beats: still <= stillOfLiving && !isFollowed };
  });
}

export type Watched = { readonly seen: CentralSeen; readonly still: number };

export class Membership implements AsyncDisposable {
  readonly #options: MembershipOptions;
  readonly #ending = new AbortController();
  readonly #gone = new Set<(central: string) => void>();
  readonly #back = new Set<() => void>();
  readonly #taken = new Set<(job: CentralJob) => void>();
  #others = new Map<string, Watched>();
  /** Those that ended without leaving, by their ids. */
  readonly #ended = new Map<string, Ended>();
  #jobs: ReadonlySet<string> = new Set();
  #beatAtMs = -Infinity;
  #running: Promise<void> = Promise.resolve();
  #looking: Promise<void> | undefined;
  readonly #bye: Disposable;

  private constructor(options: MembershipOptions) {
    this.#options = options;
    this.#bye = options.bus.hear((message, from) => {
      if (message.kind !== "bye") return;
      this.#ended.delete(from);
      this.#left(from);
    });
  }

  /** Joins the others. Throws what the store throws, STORE_KEY_WRONG where one of them has another key, and SETTINGS_DIFFER where one has settings that all must have alike. */
  static async join(options: MembershipOptions): Promise<Membership> {
    const { store, log } = options;
    const membership = new Membership(options);
    await membership.#refuseOthers();
    await byKeys(store, async (tx) => membership.#add(tx));
    await membership.look();
    membership.#running = every(options.beatMs ?? beatMs, async () => membership.look(), {
      stop: membership.#ending.signal,
      onError: (error) =>
        log.debug({ reason: messageOf(error) }, "the other centrals could not be looked at"),
    });
    return membership;
  }

  /** How many centrals work on the store, this one among them. */
  get count(): number {
    return this.#others.size + 1;
  }

  /** When the first of those that are there started, ms since the epoch. */
  get sinceMs(): number {
    const all = [this.#options.central, ...[...this.#others.values()].map(({ seen }) => seen)];
    return Math.min(...all.map(({ whenStarted }) => Date.parse(whenStarted)));
  }

  get others(): readonly CentralSeen[] {
    return [...this.#others.values()].map(({ seen }) => seen);
  }

  /** Those that are there, and those that ended in the last hour without being stopped; of each whether it beats. One of which another one at its address came since is told no more when it is gone. */
  get rows(): readonly CentralRow[] {
    const { central, monotonicMs } = this.#options;
    const rows = centralRows([...this.#others.values()], central);
    const there = new Set([central.address, ...rows.map(({ address }) => address)]);
    const nowMs = monotonicMs();
    const gone = [...this.#ended.values()].filter(
      ({ seen, atMs }) => nowMs - atMs < goneForMs && !there.has(seen.address),
    );
    return [
      ...(this.works ? rows : rows.map((row) => ({ ...row, beats: null }))),
      ...gone.map(({ seen }) => ({ ...seen, beats: false })),
    ];
  }

  isThere(central: string): boolean {
    return this.#others.has(central);
  }

  /** Returns whether the job is this central's now. */
  does(job: CentralJob): boolean {
    return this.#jobs.has(job) && this.works;
  }

  /** For how long no look has succeeded. */
  get sinceBeatMs(): number {
    return this.#options.monotonicMs() - this.#beatAtMs;
  }

  /** Whether none of the others can have taken this central for gone. */
  get works(): boolean {
    return this.sinceBeatMs < jobsForMs;
  }

  /** Calls the listener when a central is gone, by its own word or by its beat. */
  onGone(listener: (central: string) => void): void {
    this.#gone.add(listener);
  }

  /** Calls the listener when the others had taken this one for gone, and it has joined anew: none of its channels is written any more. */
  onRejoined(listener: () => void): void {
    this.#back.add(listener);
  }

  /** Calls the listener when this central takes a job up. */
  onTaken(listener: (job: CentralJob) => void): void {
    this.#taken.add(listener);
  }

  /** Beats, and looks at the others. Looks are made one at a time: a call during one waits for it. */
  async look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    await this.#looking;
  }

  /** Leaves: the others take up its jobs at once. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { store, bus, log } = this.#options;
    this.#ending.abort();
    await this.#running;
    this.#bye[Symbol.dispose]();
    this.#jobs = new Set();
    try {
      await byKeys(store, async (tx) => removeCentral(tx, { id: bus.id }));
      bus.tell({ kind: "bye" });
    } catch (error) {
      log.warn(
        { reason: messageOf(error) },
        "central could not leave the store; the others find out within 15 s",
      );
    }
  }

  async #look(): Promise<void> {
    const { store, bus, monotonicMs, log } = this.#options;
    const beganMs = monotonicMs();
    const { isKnown, seen } = await byKeys(store, async (tx) => {
      const isKnown = await beatCentral(tx, bus.id);
      if (!isKnown) await this.#add(tx);
      await this.#compareClock(tx);
      return { isKnown, seen: await listCentrals(tx) };
    });
    this.#watch(seen.filter(({ id }) => id !== bus.id));
    const dead = [...this.#others.values()].filter(({ still }) => still >= stillMax);
    const { removed, jobs } = await byKeys(store, async (tx) => {
      const removed: string[] = [];
      for (const { seen: one } of dead) if (await removeCentral(tx, one)) removed.push(one.id);
      return { removed, jobs: await takeJobs(tx, bus.id, centralJobs) };
    });
    for (const id of removed) log.warn({ central: id }, "another central is gone: it beat no more");
    for (const id of removed) {
      this.#noteEnded(id);
      this.#left(id);
    }
    if (!isKnown) {
      log.warn({ central: bus.id }, "the other centrals took this one for gone; it joined anew");
      for (const listener of this.#back) listener();
    }
    const before = this.#jobs;
    this.#beatAtMs = beganMs;
    this.#jobs = new Set(jobs);
    for (const job of centralJobs) {
      if (!this.#jobs.has(job) || before.has(job)) continue;
      log.info({ job }, "this central does the job for all");
      for (const listener of this.#taken) listener(job);
    }
  }

  /** Throws where a central with another key, or with other settings, is there. The row of one that died before these were changed is removed. */
  async #refuseOthers(): Promise<void> {
    const { store } = this.#options;
    const before = new Map<string, number>();
    for (let looks = 0; ; looks++) {
      const seen = await byKeys(store, async (tx) => listCentrals(tx));
      const others = seen.flatMap((one) => {
        const refusal = this.#refusalBy(one);
        return refusal === undefined ? [] : [{ ...one, refusal }];
      });
      const moved = others.find(({ id, beat }) => (before.get(id) ?? beat) !== beat);
      if (moved !== undefined) throw moved.refusal;
      if (others.length === 0) return;
      for (const other of others) {
        if (looks < stillMax) before.set(other.id, other.beat);
        else await byKeys(store, async (tx) => removeCentral(tx, other));
      }
      await sleep(this.#options.beatMs ?? beatMs, this.#ending.signal);
    }
  }

  /** Returns why this central may not join while that one works. */
  #refusalBy(seen: CentralSeen): AccelError | undefined {
    if (!this.#hasOurKey(seen))
      return new AccelError(
        "STORE_KEY_WRONG",
        `the central at ${seen.address} has another key than this one`,
        { hint: "All centrals at one store need the same `key_file`." },
      );
    return refusalBySettings(this.#options.settings, seen);
  }

  #hasOurKey({ keyProof }: CentralSeen): boolean {
    try {
      this.#options.sealer.open(keyProof, keyContext);
      return true;
    } catch {
      return false;
    }
  }

  async #add(tx: Tx): Promise<void> {
    const { bus, central, sealer } = this.#options;
    const keyProof = sealer.seal(bus.id, keyContext);
    const settings = alikeText(this.#options.settings);
    await addCentral(tx, { ...central, id: bus.id, keyProof, settings });
  }

  async #compareClock(tx: Tx): Promise<void> {
    const { now, onClock } = this.#options;
    const beforeMs = now().getTime();
    const storeMs = await storeClockMs(tx);
    onClock?.(aheadMs(beforeMs, storeMs, now().getTime()));
  }

  /** Takes over who is there, and how often each beat was seen to stand still. */
  #watch(others: readonly CentralSeen[]): void {
    const before = this.#others;
    this.#others = new Map(
      others.map((seen) => {
        const known = before.get(seen.id);
        const still = known?.seen.beat === seen.beat ? known.still + 1 : 0;
        return [seen.id, { seen, still }];
      }),
    );
    for (const { seen } of this.#others.values())
      if (!before.has(seen.id))
        this.#options.log.info(
          { central: seen.id, address: seen.address, version: seen.version },
          "another central works on the store",
        );
    for (const id of this.#others.keys()) this.#ended.delete(id);
    for (const [id, { seen, still }] of before) {
      if (this.#others.has(id)) continue;
      // Who leaves takes its row away while it beats; one whose beat stood still was removed by another one.
      if (still > stillOfLiving) this.#noteEnded(id, seen);
      this.#tellGone(id);
    }
    this.#options.onCount?.(this.count);
    this.#options.onDiffering?.(differingCentrals(this.#options.settings, others));
  }

  #noteEnded(id: string, seen = this.#others.get(id)?.seen): void {
    if (seen === undefined) return;
    const atMs = this.#options.monotonicMs();
    for (const [known, one] of this.#ended)
      if (one.seen.address === seen.address || atMs - one.atMs >= goneForMs)
        this.#ended.delete(known);
    this.#ended.set(id, { seen, atMs });
  }

  #left(central: string): void {
    if (!this.#others.delete(central)) return;
    this.#tellGone(central);
    this.#options.onCount?.(this.count);
  }

  #tellGone(central: string): void {
    this.#options.bus.forget(central);
    for (const listener of this.#gone) listener(central);
    // Its jobs are free, and what waits for them need not wait for the next beat.
    if (!this.#ending.signal.aborted) void this.#soon();
  }

  async #soon(): Promise<void> {
    try {
      await this.look();
    } catch {
      // The next beat tells.
    }
  }
}
