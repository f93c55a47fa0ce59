// Whether this central alone has no way to the store. The others have taken it for gone then, and their customers wait for its agents in vain.
//
//   works ── no beat for 20 s, and for 12 s others have said that they work ──▶ lone ── a beat, or nobody says so any more ──▶ works
//
// The bus goes through the store. So the others are asked by HTTP: at their own addresses, and at the one of all. While the store is away for all of them nobody says that he
// works, and nothing changes: agents would come back to nothing better. When it comes back one is the first to work: the others have the time of a whole try to follow it.
//
// A lone central is not ready, so that a balancer gives it nobody new. It sends its agents off once the address of all leads to others: before, and where nothing asks whether it
// is ready, they would come back to it, for it has the fewest.

import type { Log } from "../../base/log.ts";
import { repeating } from "../../base/wait.ts";
import { messageOf } from "../../core/faults.ts";
import type { CentralTold } from "../../wire/central-told.ts";
import type { AskCentral } from "./ask-central.ts";
import type { Membership } from "./membership.ts";

/** The others take it for gone after 10 s, and a failover takes central as long. */
const aloneAfterMs = 20_000;
/** By then whoever lost the store with this one says that it does not work. */
const askAfterMs = 8_000;
/** For so long others must have said without a break that they work. A beat is tried every 2 s, and a connection for 10 s. */
const sureMs = 12_000;
/** What another one said holds for so long where nobody says anything. */
const saidMs = 6_000;
/** So many answers in a row of others, at the address of all, say that it leads to them. */
const leadsMin = 5;

export type LoneWatchOptions = {
  /** Of this central, on the bus. */
  readonly id: string;
  readonly membership: Pick<Membership, "sinceBeatMs">;
  /** Where each of the others may be asked. */
  readonly others: () => readonly string[];
  /** The address of all. */
  readonly baseUrl: string;
  readonly ask: AskCentral;
  readonly monotonicMs: () => number;
  readonly log: Log;
  /** Called when it begins and when it is over; must not throw. */
  readonly onLone: (isLone: boolean) => void;
  /** Between two looks. */
  readonly lookMs?: number;
};

export class LoneWatch implements AsyncDisposable {
  readonly #options: LoneWatchOptions;
  readonly #senders = new Set<(stop: AbortSignal) => void>();
  readonly #looking: AsyncDisposable;
  #saidAtMs = -Infinity;
  /** Since when others have said it without a break; Infinity: they do not. */
  #saidSinceMs = Infinity;
  #leads = 0;
  #sending: AbortController | undefined;
  #isTold = false;

  constructor(options: LoneWatchOptions) {
    this.#options = options;
    this.#looking = repeating(options.lookMs ?? 1_000, async (stop) => this.look(stop), {
      onError: (error) =>
        options.log.debug({ reason: messageOf(error) }, "the other centrals could not be asked"),
    });
  }

  get isLone(): boolean {
    const { membership, monotonicMs } = this.#options;
    const nowMs = monotonicMs();
    const isSure = nowMs - this.#saidAtMs < saidMs && nowMs - this.#saidSinceMs >= sureMs;
    return isSure && membership.sinceBeatMs >= aloneAfterMs;
  }

  /** Calls the sender when agents are to be sent off; they are not any more when its signal aborts. Must not throw. */
  onSendOff(sender: (stop: AbortSignal) => void): void {
    this.#senders.add(sender);
  }

  async look(stop: AbortSignal): Promise<void> {
    const { id, membership, baseUrl, ask, others } = this.#options;
    if (membership.sinceBeatMs < askAfterMs) {
      this.#saidSinceMs = Infinity;
      return this.#tell();
    }
    const atAll = await ask(baseUrl, stop);
    const isOthers = atAll !== undefined && atAll.central !== id && atAll.works;
    const answers = isOthers
      ? [atAll]
      : [atAll, ...(await Promise.all(others().map(async (origin) => ask(origin, stop))))];
    this.#heard(answers.flatMap((told) => (told === undefined || told.central === id ? [] : told)));
    this.#tell();
    if (!this.isLone || stop.aborted) return;
    this.#leads = isOthers ? this.#leads + 1 : 0;
    if (!isOthers) this.#endSending();
    else if (this.#leads >= leadsMin) this.#send();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#looking[Symbol.asyncDispose]();
    this.#endSending();
  }

  /** Takes in what others said just now. What was said before one of them lost the store as well, or was long ago, is no part of it. */
  #heard(told: readonly CentralTold[]): void {
    const nowMs = this.#options.monotonicMs();
    if (nowMs - this.#saidAtMs >= saidMs) this.#saidSinceMs = Infinity;
    if (told.some(({ works }) => works)) {
      this.#saidAtMs = nowMs;
      this.#saidSinceMs = Math.min(this.#saidSinceMs, nowMs);
    } else if (told.length > 0) this.#saidSinceMs = Infinity;
  }

  #tell(): void {
    const { log, onLone } = this.#options;
    const { isLone } = this;
    if (!isLone) {
      this.#leads = 0;
      this.#endSending();
    }
    if (isLone === this.#isTold) return;
    this.#isTold = isLone;
    onLone(isLone);
    if (isLone)
      log.error(
        "this central alone has no way to the store: another one works, and this one is not ready",
      );
    else log.info("this central is one of those again that have the store, or none has it");
  }

  #send(): void {
    if (this.#sending !== undefined) return;
    this.#sending = new AbortController();
    for (const sender of this.#senders) sender(this.#sending.signal);
  }

  #endSending(): void {
    this.#sending?.abort();
    this.#sending = undefined;
  }
}
